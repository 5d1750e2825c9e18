"""Alembic's autogenerate for indexes: `import laurels.index.alembic` in `env.py`.

A migration then has `op.create_leaderboard(…)` and `op.drop_leaderboard(…)` for indexes that were added to
models, changed or removed, and their reverses. The operations are plain data, which need no model and no
connection. Tables of Laurels are never proposed for dropping.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from alembic.autogenerate import comparators, renderers
from alembic.operations import MigrateOperation, Operations
from alembic.operations.ops import DropIndexOp, ModifyTableOps
from alembic.util import DispatchPriority
from sqlalchemy import MetaData

from laurels.index.declare import declared, models_of
from laurels.index.description import ColumnKind, Description
from laurels.index.installed import installed
from laurels.index.triggers import INDEXES_FOR, SCHEMA, ddl_of, removal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from alembic.autogenerate.api import AutogenContext
    from alembic.operations.ops import UpgradeOps
    from sqlalchemy import Connection

    from laurels.index.installed import Installed
    from laurels.index.positions import OnUpdate

# Those of the indexes, and of Laurels itself where it shares the database.
OUR_SCHEMAS: Final = {SCHEMA, "laurels"}
# On tables of the application, which come and go with the triggers.
OUR_INDEXES: Final = re.compile(rf"laurels_[0-9a-f]{{16}}_({'|'.join(INDEXES_FOR)})")


@Operations.register_operation("create_leaderboard")
class CreateLeaderboard(MigrateOperation):
    """Installs the triggers of an index, or replaces them."""

    def __init__(self, description: Description, replaces: Description | None = None) -> None:
        self.description = description
        self.replaces = replaces

    @classmethod
    def create_leaderboard(  # noqa: PLR0913  # the fields of a description
        cls,
        operations: Operations,
        table: str,
        score: str,
        *,
        key: Mapping[str, ColumnKind],
        group_by: Mapping[str, ColumnKind] | None = None,
        member: Mapping[str, ColumnKind] | None = None,
        at: str | None = None,
        name: str | None = None,
        schema: str | None = None,
        on_update: OnUpdate = "move",
        best_of_all_time: bool = False,
        notify: bool = True,
    ) -> None:
        """Installs the index `name` (by default that of its score) on a table, or replaces its triggers.

        `key`, `group_by`, `member`: the columns and their kinds: integer, text, uuid, date or boolean.
        `notify`: whether a commit wakes the process that maintains the index.
        """
        described = Description(
            table=table,
            score=score,
            key=dict(key),
            group_by=dict(group_by or {}),
            member=dict(member or {}),
            at=at,
            name=name,
            schema=schema,
            on_update=on_update,
            best_of_all_time=best_of_all_time,
            notify=notify,
        )
        operations.invoke(cls(described))

    def reverse(self) -> MigrateOperation:
        if self.replaces:
            return CreateLeaderboard(self.replaces, self.description)
        return DropLeaderboard(self.description.index_name, self.description)

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return ("change_leaderboard" if self.replaces else "add_leaderboard", self.description.index_name)


@Operations.register_operation("drop_leaderboard")
class DropLeaderboard(MigrateOperation):
    """Removes the triggers of an index and its pending changes."""

    def __init__(self, name: str, description: Description | None = None) -> None:
        self.name = name
        self.description = description

    @classmethod
    def drop_leaderboard(cls, operations: Operations, name: str) -> None:
        """Removes an index by its name in the database: `game_scores.score`."""
        operations.invoke(cls(name))

    def reverse(self) -> MigrateOperation:
        return CreateLeaderboard(self.description) if self.description else NothingToRestore(self.name)

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return ("remove_leaderboard", self.name)


class NothingToRestore(MigrateOperation):
    """Reverses the removal of an index of which the database had no description."""

    def __init__(self, name: str) -> None:
        self.name = name

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return ("nothing_to_restore", self.name)


@Operations.implementation_for(CreateLeaderboard)
def _create(operations: Operations, operation: CreateLeaderboard) -> None:
    description = operation.description
    _run(operations, ddl_of(description.declared(), notify=description.notify))


@Operations.implementation_for(DropLeaderboard)
def _drop(operations: Operations, operation: DropLeaderboard) -> None:
    _run(operations, removal_of(operation.name))


def _run(operations: Operations, statements: Iterable[str]) -> None:
    context = operations.get_context()
    for statement in statements:
        if context.as_sql:
            context.impl.static_output(f"{statement};\n")
        else:
            # As they are: a colon or a percent sign would else begin a parameter.
            operations.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


@renderers.dispatch_for(CreateLeaderboard)
def _render_create(_: AutogenContext, operation: CreateLeaderboard) -> str:
    fields = operation.description.fields()
    given = [repr(fields.pop("table")), repr(fields.pop("score"))]
    given += [f"{name}={value!r}" for name, value in fields.items()]
    return f"op.create_leaderboard({', '.join(given)})"


@renderers.dispatch_for(DropLeaderboard)
def _render_drop(_: AutogenContext, operation: DropLeaderboard) -> str:
    return f"op.drop_leaderboard({operation.name!r})"


@renderers.dispatch_for(NothingToRestore)
def _render_nothing(_: AutogenContext, operation: NothingToRestore) -> str:
    return f"pass  # {operation.name} had no triggers left"


@comparators.dispatch_for("schema", qualifier="postgresql", priority=DispatchPriority.LAST)
def _compare(context: AutogenContext, upgrade: UpgradeOps, schemas: set[str | None]) -> None:
    """Leaderboards are dropped before other changes, and created after them; a downgrade reverses that."""
    connection, default = _database(context)
    metadata: Any = context.metadata
    given: list[MetaData] = [metadata] if isinstance(metadata, MetaData) else list(metadata)
    own = {(table.schema or default, table.name) for each in given for table in each.tables.values()}
    upgrade.ops = list(_of_application(upgrade.ops, own, default))
    wanted = {index.name: index for model in models_of(*given) for index in declared(model)}
    there = installed(connection)
    for name, found in there.items():
        if name not in wanted and _is_included(context, found, schemas, default):
            upgrade.ops.insert(0, DropLeaderboard(name, found.description))
    for name, index in wanted.items():
        found = there.get(name)
        if found is None or not found.is_of(index):
            before = found and found.description
            notify = before.notify if before else True
            upgrade.ops.append(CreateLeaderboard(Description.of(index, notify=notify), before))


def _database(context: AutogenContext) -> tuple[Connection, str | None]:
    """The connection, which autogenerate always has, and its default schema."""
    if context.connection is None:
        raise TypeError("autogenerate has no connection")
    return context.connection, context.connection.dialect.default_schema_name


def _of_application(
    operations: Iterable[MigrateOperation], own: set[tuple[str | None, str]], default: str | None
) -> Iterator[MigrateOperation]:
    """The operations that do not change what is Laurels'."""
    for operation in operations:
        schema = getattr(operation, "schema", None) or default
        if schema in OUR_SCHEMAS and (schema, getattr(operation, "table_name", "")) not in own:
            continue
        if isinstance(operation, ModifyTableOps):
            operation.ops = [each for each in operation.ops if not _drops_ours(each)]
            if operation.is_empty():
                continue
        if not _drops_ours(operation):
            yield operation


def _drops_ours(operation: MigrateOperation) -> bool:
    return isinstance(operation, DropIndexOp) and bool(OUR_INDEXES.fullmatch(str(operation.index_name)))


def _is_included(
    context: AutogenContext, found: Installed, schemas: set[str | None], default: str | None
) -> bool:
    """Whether autogenerate looks at the table of this index, by `include_schemas` and `include_name`."""
    description = found.description
    if description is None:
        return True
    schema = None if description.schema == default else description.schema
    return schema in schemas and context.run_name_filters(description.table, "table", {"schema_name": schema})
