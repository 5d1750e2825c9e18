"""Captures what statements on a partitioned table cannot: writes to a partition by its own name, TRUNCATE of
one, and partitions that are attached, detached or dropped.

A trigger for statements fires for the table that a statement names. So each partition has triggers of its
own, which do nothing once it is detached. One function, which runs with the rights of the role that installed
the index, compares the partitions with those that it knows:

- a new one gets triggers; its rows are captured unless they are known, because it may have been attached
- the rows of a detached one are captured as gone
- of a dropped one nothing is left to capture: the index is rebuilt, and keeps the moments of its records

`install` runs it, and so does every round of an index on a partitioned table.
"""

# ruff: noqa: S608  # as in `triggers`, whose quoting this uses

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

# Ends of the names of functions.
FOLLOWS: Final = "partitions"
EMPTIED: Final = "emptied"

TABLE: Final = """CREATE TABLE IF NOT EXISTS laurels_index.partitions (
    index text NOT NULL,
    partition oid NOT NULL,
    PRIMARY KEY (index, partition)
)"""

# Begins the body of a capturing function. Only triggers of partitions have an argument.
UNLESS_DETACHED: Final = """
    IF TG_NARGS > 0 AND NOT EXISTS (
        SELECT FROM pg_partition_ancestors(TG_RELID) a JOIN pg_trigger t ON t.tgrelid = a.relid
        WHERE t.tgname = TG_ARGV[0] AND t.tgnargs = 0
    ) THEN
        RETURN NULL;
    END IF;"""


class Captured(NamedTuple):
    """The SQL of an index that its functions for partitions are made of."""

    function: str
    name: str
    """The name of the index, as a literal."""
    table: str
    settings: str
    seen: dict[str, str]
    """The transition tables of each event's trigger."""
    now: str
    """The moment of the write in microseconds."""
    put: str
    """Captures the rows `n` of `{part}` that are indexed and not known yet."""
    gone: str
    """Captures the rows `o` of `{part}` as gone."""
    gone_only: str
    """As `gone`, without those whose key is in the table, `{own}`."""


def statements(captured: Captured) -> list[str]:
    """Nothing happens for a table that is not partitioned."""
    function = f"laurels_index.{captured.function}"
    is_partitioned = f"(SELECT relkind = 'p' FROM pg_class WHERE oid = {_literal(captured.table)}::regclass)"
    made = [
        (
            f"CREATE OR REPLACE FUNCTION {function}_{EMPTIED}() RETURNS trigger LANGUAGE plpgsql "
            f"{captured.settings} AS $emptied${_emptied(captured)}$emptied$"
        ),
        (
            f"CREATE OR REPLACE FUNCTION {function}_{FOLLOWS}() RETURNS void LANGUAGE plpgsql "
            f"{captured.settings} AS $follows${_follows(captured)}$follows$"
        ),
    ]
    executed = "\n".join(f"EXECUTE $made${statement}$made$;" for statement in made)
    followed = f"PERFORM {function}_{FOLLOWS}();"
    return [f"DO $laurels$ BEGIN IF {is_partitioned} THEN\n{executed}\n{followed}\nEND IF; END $laurels$"]


def removal(function: str) -> list[str]:
    return [f"DROP FUNCTION IF EXISTS laurels_index.{function}_{end}() CASCADE" for end in (EMPTIED, FOLLOWS)]


async def is_partitioned(connection: AsyncConnection, function: str) -> bool:
    """Whether an index is on a partitioned table, by its function."""
    asked = text("SELECT to_regprocedure(:follows) IS NOT NULL")
    given = {"follows": f"laurels_index.{function}_{FOLLOWS}()"}
    return (await connection.execute(asked, given)).scalar_one()


async def follow(connection: AsyncConnection, function: str) -> None:
    """Captures what has happened to the partitions."""
    await connection.execute(text(f"SELECT laurels_index.{function}_{FOLLOWS}()"))


def _emptied(captured: Captured) -> str:
    return f"""
DECLARE
    written bigint := {captured.now};
BEGIN{UNLESS_DETACHED}
    EXECUTE {_formatted(captured.gone, "TG_RELID")} USING written;
    RETURN NULL;
END"""


def _follows(captured: Captured) -> str:
    known = f"laurels_index.partitions WHERE index = {captured.name}"
    function = captured.function
    triggers = "\n".join(
        f"""        EXECUTE format($$CREATE OR REPLACE TRIGGER {function}_{change.lower()}
            AFTER {change} ON %s {seen} FOR EACH STATEMENT EXECUTE FUNCTION
            laurels_index.{function}('{function}_insert')$$, part::regclass);"""
        for change, seen in captured.seen.items()
        if change != "TRUNCATE"
    )
    return f"""
DECLARE
    written bigint := {captured.now};
    own oid := (SELECT tgrelid FROM pg_trigger WHERE tgname = '{function}_insert' AND tgnargs = 0);
    part oid;
    is_first boolean;
    dropped boolean := false;
BEGIN
    IF NOT EXISTS (
        (SELECT relid FROM pg_partition_tree(own) EXCEPT SELECT partition FROM {known})
        UNION ALL (SELECT partition FROM {known} EXCEPT SELECT relid FROM pg_partition_tree(own))
    ) THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('laurels_index partitions:' || {captured.name}, 0));
    is_first := NOT EXISTS (SELECT FROM {known} AND partition = own);
    IF is_first THEN
        DELETE FROM {known};
        INSERT INTO laurels_index.partitions VALUES ({captured.name}, own);
    END IF;
    FOR part IN SELECT partition FROM {known} EXCEPT SELECT relid FROM pg_partition_tree(own) LOOP
        IF EXISTS (SELECT FROM pg_class WHERE oid = part) THEN
            EXECUTE {_formatted(captured.gone_only, "part")} USING written;
        ELSE
            dropped := true;
        END IF;
        DELETE FROM {known} AND partition = part;
    END LOOP;
    FOR part IN
        SELECT relid FROM pg_partition_tree(own) WHERE level > 0
        EXCEPT SELECT partition FROM {known}
    LOOP
{triggers}
        IF (SELECT relkind <> 'p' FROM pg_class WHERE oid = part) THEN
            EXECUTE format($$CREATE OR REPLACE TRIGGER {function}_{EMPTIED} BEFORE TRUNCATE ON %s
                FOR EACH STATEMENT EXECUTE FUNCTION
                laurels_index.{function}_{EMPTIED}('{function}_insert')$$, part::regclass);
            IF NOT is_first THEN
                EXECUTE {_formatted(captured.put, "part")} USING written;
            END IF;
        END IF;
        INSERT INTO laurels_index.partitions VALUES ({captured.name}, part);
    END LOOP;
    IF dropped THEN
        UPDATE laurels_index.indexes SET built_as = '' WHERE index = {captured.name};
    END IF;
END"""


def _formatted(statement: str, part: str) -> str:
    """An expression of PL/pgSQL: the statement on one partition."""
    template = statement.replace("%", "%%").replace("{part}", "%1$s").replace("{own}", "%2$s")
    own = ", own::regclass" if "{own}" in statement else ""
    return f"format({_literal(template)}, {part}::regclass{own})"


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
