"""PostgreSQL's version, size and journal rows, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from laurels.postgres.tables import SCHEMA

if TYPE_CHECKING:
    from laurels.postgres.engine import Postgres

# PostgreSQL's statistics count the rows of all processes. They lag by a second and begin at 0 after a crash.
_FIGURES: Final = text(
    "SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS bytes, "
    "(SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables "
    "WHERE schemaname = :schema AND relname ~ '^journal_[0-9]{4}_[0-9]{2}$') AS rows"
).bindparams(schema=SCHEMA)


@dataclass(frozen=True)
class PostgresFigures:
    version: str
    bytes: int
    """Of the whole database."""
    rows: int
    """Rows ever added to the journal."""


async def read_figures(postgres: Postgres) -> PostgresFigures:
    async with postgres.reading() as connection:
        row = (await connection.execute(_FIGURES)).one()
    return PostgresFigures(str(row.version).partition(" ")[0], int(row.bytes), int(row.rows))
