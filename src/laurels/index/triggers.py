"""The DDL that captures changes: triggers that write to the outbox in the transaction of the change.

Each index has one function and four triggers, which run at the end of each statement over all rows that it
changed. So writes of other programs count too, a thousand rows cost one insert, and an UPDATE may swap keys.
A row is captured when its score, a group, the timestamp or the key has changed; an update of other columns
costs only the comparison.

`SET LOCAL laurels.now = '2025-10-24T12:00:00Z'` sets the moment of a transaction's writes, for imports,
examples and tests.
"""

# ruff: noqa: S608  # DDL takes no parameters: names are quoted by SQLAlchemy, texts by `_literal`

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Date, event, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from laurels.errors import InvalidInput, StartupError
from laurels.index.declare import declared, digest, models_of, plain_type
from laurels.moments import datetime_of

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection

    from laurels.clock import Clock
    from laurels.index.declare import DeclaredIndex

SCHEMA: Final = "laurels_index"
CHANNEL: Final = "laurels_index"
# The longest member of a board. Records with longer keys are not indexed.
KEY_BYTES: Final = 256
# The longest other column: a UUID. An integer has 20 with its sign, a date 10.
OTHER_KEY_BYTES: Final = 36
EVENTS: Final = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")

_TABLES: Final = (
    # IF NOT EXISTS needs the privilege to create schemas even where there is one.
    f"DO $$ BEGIN IF to_regnamespace('{SCHEMA}') IS NULL THEN CREATE SCHEMA {SCHEMA}; END IF; END $$",
    f"""CREATE TABLE IF NOT EXISTS {SCHEMA}.outbox (
    index text NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    key text,
    op text NOT NULL CHECK (op IN ('put', 'nil', 'gone', 'clear')),
    score bigint,
    groups text[],
    member text,
    moment bigint NOT NULL,
    old_score bigint,
    old_groups text[],
    old_member text,
    old_moment bigint,
    written timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (index, seq)
)""",
    f"""CREATE TABLE IF NOT EXISTS {SCHEMA}.moments (
    moment bigint NOT NULL,
    index integer NOT NULL,
    key text NOT NULL,
    PRIMARY KEY (index, key)
)""",
    f"""CREATE TABLE IF NOT EXISTS {SCHEMA}.positions (
    index integer NOT NULL,
    key text NOT NULL,
    position bytea NOT NULL,
    PRIMARY KEY (index, key)
)""",
    f"""CREATE TABLE IF NOT EXISTS {SCHEMA}.indexes (
    index text PRIMARY KEY,
    number integer GENERATED ALWAYS AS IDENTITY,
    calls bigint NOT NULL DEFAULT 0,
    built_as text NOT NULL DEFAULT '',
    building bytea
)""",
)

# Other parameter styles would double a percent sign in a name.
_quoted = postgresql.dialect(paramstyle="named").identifier_preparer


def ddl(model: type[Any], *, notify: bool = True) -> list[str]:
    """The statements that install a model's indexes; each may be run again.

    `notify`: whether a commit wakes the process that maintains the index. PostgreSQL serializes commits that
    notify; without it, changes are applied within a second.
    """
    statements: list[str] = list(_TABLES)
    for index in declared(model):
        statements += _statements(index, notify=notify)
    return statements


async def install(on: AsyncEngine | AsyncConnection, *models: object, notify: bool = True) -> None:
    """Installs the indexes of these models, declarative bases or metadata, in one transaction."""
    await _run(on, installation(*models, notify=notify))


async def uninstall(on: AsyncEngine | AsyncConnection, *models: object) -> None:
    """Removes the triggers and the changes that are not applied yet; the boards stay."""
    await _run(on, removal(*models))


def installation(*models: object, notify: bool = True) -> list[str]:
    """The statements that install the indexes of these models, declarative bases or metadata."""
    return list(dict.fromkeys(each for model in _named(models) for each in ddl(model, notify=notify)))


def removal(*models: object) -> list[str]:
    """The statements that remove them."""
    removals = [each for model in _named(models) for index in declared(model) for each in _removal(index)]
    return [*_TABLES, *removals]


async def uninstall_index(connection: AsyncConnection, index: DeclaredIndex[Any]) -> None:
    """Removes the triggers of one index, and the changes that are not applied yet."""
    await _run(connection, _removal(index))


def _named(models: tuple[object, ...]) -> list[type[Any]]:
    found = models_of(*models)
    if not found:
        raise InvalidInput.at("models", "none of them declares a leaderboard in `__leaderboards__`")
    return found


async def _run(on: AsyncEngine | AsyncConnection, statements: list[str]) -> None:
    if isinstance(on, AsyncEngine):
        async with on.begin() as connection:
            await _run(connection, statements)
        return
    for statement in statements:
        await on.exec_driver_sql(statement, execution_options={"no_parameters": True})


def follow_clock(engine: AsyncEngine, clock: Clock) -> None:
    """Makes every transaction of this engine write at the clock's moment, for examples and tests."""

    def set_moment(connection: Connection) -> None:
        now = datetime_of(clock()).isoformat()
        connection.exec_driver_sql(f"SET LOCAL laurels.now = '{now}'")

    event.listen(engine.sync_engine, "begin", set_moment)


async def check_installed(connection: AsyncConnection, index: DeclaredIndex[Any]) -> None:
    """Raises `StartupError` unless the triggers of this declaration are installed and enabled."""
    asked = text(
        "SELECT count(*) FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid "
        "WHERE tgrelid = to_regclass(:table) AND tgname LIKE :prefix AND tgenabled IN ('O', 'A') "
        "AND obj_description(tgfoid, 'pg_proc') = :described"
    )
    values = {
        "table": _quoted.format_table(index.table),
        "prefix": f"{_function(index)}%",
        "described": _described(index),
    }
    is_installed = (await connection.execute(asked, values)).scalar_one() == len(EVENTS)
    for name in member_indexes(index):
        valid = text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:index)")
        found = await connection.execute(valid, {"index": f"{_schema(index)}{name}"})
        is_installed = is_installed and bool(found.scalar_one_or_none())
    if not is_installed:
        raise StartupError(
            f"the leaderboard {index.name} is not installed in this database as {index.model.__name__} "
            f"declares it: run `await laurels.index.install(engine, {index.model.__name__})`, or a migration "
            "with `ddl`"
        )


async def is_installed(connection: AsyncConnection, index: DeclaredIndex[Any]) -> bool:
    """Whether `check_installed` finds nothing wrong."""
    try:
        await check_installed(connection, index)
    except StartupError:
        return False
    return True


def key_text(index: DeclaredIndex[Any], row: str) -> str:
    """The key of a row as text: the text of one column, or a JSON list of several."""
    columns = [column_text(row, column) for column in index.key]
    return columns[0] if len(columns) == 1 else f"to_jsonb(ARRAY[{', '.join(columns)}])::text"


def is_indexed(index: DeclaredIndex[Any], row: str) -> str:
    """Whether a row is indexed: it has a score, a member that fits, a group at each level, and a moment."""
    ranked = index.key if index.member is None else (index.member,)
    named = () if index.member is None else (index.member,)
    needed = [f"{of_row(row, column)} IS NOT NULL" for column in (index.score, *named, *index.groups)]
    if index.at is not None:
        needed.append(f"isfinite({of_row(row, index.at)})")
    texts = [
        f"octet_length({of_row(row, column)})"
        for column, kind in zip(ranked, index.members.kinds, strict=True)
        if kind == "text"
    ]
    if texts:
        others = sum(OTHER_KEY_BYTES for kind in index.members.kinds if kind != "text") + len(ranked) - 1
        needed.append(f"{' + '.join(texts)} <= {KEY_BYTES - others}")
    return " AND ".join(needed)


def row_moment(index: DeclaredIndex[Any], row: str) -> str | None:
    """The timestamp of a row in microseconds; None if the moment of the write counts."""
    return None if index.at is None else _microseconds(of_row(row, index.at))


def row_groups(index: DeclaredIndex[Any], row: str) -> str:
    return f"ARRAY[{', '.join(column_text(row, column) for column in index.groups)}]::text[]"


def row_score(index: DeclaredIndex[Any], row: str) -> str:
    return f"{of_row(row, index.score)}::bigint"


def row_member(index: DeclaredIndex[Any], row: str) -> str:
    """The member of a row as text; NULL where each record is ranked."""
    return "NULL::text" if index.member is None else column_text(row, index.member)


def table_name(index: DeclaredIndex[Any]) -> str:
    return _quoted.format_table(index.table)


def _schema(index: DeclaredIndex[Any]) -> str:
    return f"{_quoted.quote(index.table.schema)}." if index.table.schema else ""


def of_row(row: str, column: Column[Any]) -> str:
    return f"{row}.{_quoted.quote(column.name)}"


def column_text(row: str, column: Column[Any]) -> str:
    """A value as text, the same under every DateStyle of a session."""
    value = of_row(row, column)
    return (
        f"to_char({value}, 'YYYY-MM-DD')" if isinstance(plain_type(column.type), Date) else f"{value}::text"
    )


def _microseconds(timestamp: str) -> str:
    """A timestamp in microseconds, UTC if it has no zone. The cap fits a bigint and is past every window."""
    return f"least(extract(epoch FROM {timestamp}) * 1000000, 9e18)::bigint"


def _function(index: DeclaredIndex[Any]) -> str:
    return function_of(index.name)


def function_of(name: str) -> str:
    """The function that captures the changes of an index, by the name of the index."""
    return f"laurels_{digest(name)}"


def number_of(name: str) -> str:
    """The number of an index, in SQL, by an expression for its name. What is stored of records has it."""
    return f"(SELECT number FROM {SCHEMA}.indexes WHERE index = {name})"


def removal_of(name: str) -> list[str]:
    """The statements that remove what the database has of an index, except its indexes on a table."""
    return [
        f"DROP FUNCTION IF EXISTS {SCHEMA}.{function_of(name)}() CASCADE",
        *(
            f"DELETE FROM {SCHEMA}.{table} WHERE index = {number_of(_literal(name))}"
            for table in ("positions", "moments")
        ),
        *(f"DELETE FROM {SCHEMA}.{table} WHERE index = {_literal(name)}" for table in ("outbox", "indexes")),
    ]


def _described(index: DeclaredIndex[Any]) -> str:
    """The function's comment: its index, and a digest of its body that does not depend on `notify`."""
    return f"leaderboard {index.name}, {digest(_body(index, notify=True))}"


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _body(index: DeclaredIndex[Any], *, notify: bool) -> str:
    name = _literal(index.name)
    columns = "index, key, op, score, groups, member, moment, old_score, old_groups, old_member, old_moment"
    insert = f"INSERT INTO {SCHEMA}.outbox ({columns})"
    moment = row_moment(index, "n") or "written"
    put = f"{row_score(index, 'n')}, {row_groups(index, 'n')}, {row_member(index, 'n')}"
    nothing, new = "NULL, NULL, NULL", "NULL, NULL, NULL, NULL"
    old = _old(index)
    same_key = " AND ".join(f"{of_row('o', column)} = {of_row('n', column)}" for column in index.key)
    optional = [column for column in (index.member, index.at) if column is not None]
    watched = [index.score, *index.groups, *optional]
    differs = " OR ".join(f"{of_row('o', each)} IS DISTINCT FROM {of_row('n', each)}" for each in watched)
    is_new = f"{of_row('o', index.key[0])} IS NULL"
    indexed = f"({is_indexed(index, 'n')})"
    wake = f"IF changed THEN PERFORM pg_notify('{CHANNEL}', ''); END IF;" if notify else ""
    now = "coalesce(nullif(current_setting('laurels.now', true), '')::timestamptz, clock_timestamp())"
    return f"""
DECLARE
    written bigint := {_microseconds(now)};
    changed boolean := false;
BEGIN
    IF TG_OP = 'INSERT' THEN
        {insert}
        SELECT {name}, {key_text(index, "n")}, 'put', {put}, {moment}, {new} FROM after_it n WHERE {indexed};
        changed := FOUND;
    ELSIF TG_OP = 'UPDATE' THEN
        {insert}
        SELECT {name}, {key_text(index, "o")}, 'gone', {nothing}, written, {old} FROM before_it o
        WHERE NOT EXISTS (SELECT FROM after_it n WHERE {same_key});
        changed := FOUND;
        {insert}
        SELECT {name}, {key_text(index, "n")}, CASE WHEN {indexed} THEN 'put' ELSE 'nil' END,
               {put}, coalesce(CASE WHEN {indexed} THEN {moment} END, written), {old}
        FROM after_it n LEFT JOIN before_it o ON {same_key}
        WHERE ({is_new} AND {indexed}) OR (NOT {is_new} AND ({differs}));
        changed := changed OR FOUND;
    ELSIF TG_OP = 'DELETE' THEN
        {insert}
        SELECT {name}, {key_text(index, "o")}, 'gone', {nothing}, written, {old} FROM before_it o;
        changed := FOUND;
    ELSE
        {insert} VALUES ({name}, NULL, 'clear', {nothing}, written, {new});
        changed := true;
    END IF;
    {wake}
    RETURN NULL;
END"""


def _old(index: DeclaredIndex[Any]) -> str:
    """The former values of a row that was indexed, where its entries follow from them."""
    if index.index.on_update == "keep":
        return "NULL, NULL, NULL, NULL"
    values = (row_score(index, "o"), row_groups(index, "o"), row_member(index, "o"), row_moment(index, "o"))
    was_indexed = is_indexed(index, "o")
    return ", ".join(f"CASE WHEN {was_indexed} THEN {value} END" if value else "NULL" for value in values)


# Transition tables have no statistics, and PostgreSQL caches the plan of the first statement. Without this
# setting, that plan would loop over all rows of a large UPDATE for each of them.
_SETTINGS: Final = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_nestloop = off"

_SEEN: Final = {
    "INSERT": "REFERENCING NEW TABLE AS after_it",
    "UPDATE": "REFERENCING OLD TABLE AS before_it NEW TABLE AS after_it",
    "DELETE": "REFERENCING OLD TABLE AS before_it",
    "TRUNCATE": "",
}


def _statements(index: DeclaredIndex[Any], *, notify: bool) -> list[str]:
    function = _function(index)
    table = table_name(index)
    return [
        *(
            f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({', '.join(columns)})"
            for name, columns in member_indexes(index).items()
        ),
        (
            f"CREATE OR REPLACE FUNCTION {SCHEMA}.{function}() RETURNS trigger LANGUAGE plpgsql {_SETTINGS} "
            f"AS $laurels${_body(index, notify=notify)}$laurels$"
        ),
        f"COMMENT ON FUNCTION {SCHEMA}.{function}() IS {_literal(_described(index))}",
        *(
            f"CREATE OR REPLACE TRIGGER {function}_{change.lower()} AFTER {change} ON {table} {seen} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.{function}()"
            for change, seen in _SEEN.items()
        ),
        f"INSERT INTO {SCHEMA}.indexes (index) VALUES ({_literal(index.name)}) ON CONFLICT DO NOTHING",
    ]


def member_indexes(index: DeclaredIndex[Any]) -> dict[str, list[str]]:
    """The indexes on the table that find a member's records, by name."""
    if index.member is None:
        return {}
    name, member, score = _function(index), _quoted.quote(index.member.name), _quoted.quote(index.score.name)
    found: dict[str, list[str]] = {}
    if index.at is not None:
        found[f"{name}_member"] = [member, _quoted.quote(index.at.name), score]
    if index.aggregate == "best" and "all_time" in index.index.all_windows:
        found[f"{name}_best"] = [member, score]
    return found or {f"{name}_member": [member]}


def _removal(index: DeclaredIndex[Any]) -> list[str]:
    dropped = [f"DROP INDEX IF EXISTS {_schema(index)}{name}" for name in member_indexes(index)]
    return [*removal_of(index.name), *dropped]
