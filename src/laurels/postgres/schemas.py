"""The two schemas with tables: Laurels' own, and the default one, where the application's tables are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from laurels.errors import StartupError
from laurels.postgres.tables import SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Connection


def ensure_own_schema(connection: Connection) -> None:
    """Creates the schema. A role that may not create one can use a schema that exists."""
    asked = text(
        "SELECT to_regnamespace(:own) IS NULL AS is_missing, "
        "current_user AS role, current_database() AS database, "
        "has_database_privilege(current_database(), 'CREATE') AS may_create"
    )
    found = connection.execute(asked, {"own": SCHEMA}).one()
    if not found.is_missing:
        return
    if not found.may_create:
        raise StartupError(
            f"the role {found.role} may not create the schema {SCHEMA} in the database {found.database}; "
            f'let its owner run: CREATE SCHEMA {SCHEMA} AUTHORIZATION "{found.role}"'
        )
    connection.exec_driver_sql(f"CREATE SCHEMA {SCHEMA}")


def path_without_own_schema(connection: Connection) -> str | None:
    """The search_path that a role called `laurels` needs; None if it has it, and for every other role.

    Its schema would be the default one ("$user") for everything that connects as this role: an application's
    Alembic would find our `alembic_version`, and its new tables would be among ours.
    """
    asked = text("SELECT current_setting('search_path') FROM (SELECT) AS one WHERE current_user = :own")
    path = connection.execute(asked, {"own": SCHEMA}).scalar_one_or_none() or ""
    names = [name.strip() for name in path.split(",")]
    others = [name for name in names if name != '"$user"']
    return ", ".join(others) if len(others) < len(names) else None


def set_path(connection: Connection, path: str) -> None:
    """Sets the search_path of the role's next sessions in this database."""
    database = connection.execute(text("SELECT quote_ident(current_database())")).scalar_one()
    connection.exec_driver_sql(f"ALTER ROLE CURRENT_USER IN DATABASE {database} SET search_path = {path}")


def default_schema(connection: Connection) -> str:
    """Where the tables are that a document names plainly; quoted.

    Laurels' own counts only if there is no other: in a first session, a role called `laurels` has it first.
    """
    asked = text(
        "SELECT quote_ident(name) FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (name, place) "
        "ORDER BY name = :own, place LIMIT 1"
    )
    found = connection.execute(asked, {"own": SCHEMA}).scalar_one_or_none()
    if found is None:
        raise StartupError(
            "the search_path of Laurels' role names no schema that exists; set it: "
            "ALTER ROLE … SET search_path = public"
        )
    return found
