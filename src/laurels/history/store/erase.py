"""Renames an erased member in the tables, and deletes what names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import JSON, Text, cast, func, null, or_, select, text, tuple_, update

from laurels.postgres.tables import journal, snapshot_entries, snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from laurels.moments import Moment
    from laurels.postgres.engine import Postgres

# How many rows one transaction changes.
ROWS_AT_ONCE: Final = 5000
# How long a search through a board may take.
LONGEST_SECONDS: Final = 60.0

_IDENTITY: Final = (
    journal.c.board_id, journal.c.recorded_at, journal.c.seq, journal.c.shard, journal.c.index,
)  # fmt: skip


class EraseStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def ids(self, board_id: int, member: bytes, since: Moment) -> list[bytes]:
        """The ids that clients gave to the member's submissions since then, without those of matches."""
        asked = select(journal.c.id).where(
            journal.c.board_id == board_id,
            journal.c.member == member,
            journal.c.kind != "match",
            journal.c.now >= since,
            journal.c.id.is_not(None),
        )
        async with self._postgres.reading() as connection:
            return [bytes(each) for each in (await connection.execute(asked)).scalars()]

    async def rename(self, board_id: int, member: bytes, named: bytes) -> int:
        """Renames the member in all rows of the board, without id and metadata. Returns how many rows."""
        of_member = (
            select(*_IDENTITY)
            .where(journal.c.board_id == board_id, journal.c.member == member)
            .limit(ROWS_AT_ONCE)
        )
        changed = 0
        while True:
            async with self._postgres.writing() as connection:
                rows = await connection.execute(
                    update(journal)
                    .where(tuple_(*_IDENTITY).in_(of_member))
                    .values(member=named, id=null(), metadata=null())
                )
            changed += rows.rowcount
            if rows.rowcount < ROWS_AT_ONCE:
                break
        taken = select(snapshots.c.id).where(snapshots.c.board_id == board_id)
        async with self._postgres.writing() as connection:
            entries = await connection.execute(
                update(snapshot_entries)
                .where(snapshot_entries.c.snapshot.in_(taken), snapshot_entries.c.member == member)
                .values(member=named, metadata=null())
            )
        return changed + entries.rowcount

    async def forget_mentions(
        self,
        board_id: int,
        member: bytes,
        forms: Collection[str],
        in_json: Callable[[str], bool],
        in_text: Callable[[str], bool],
    ) -> None:
        """Deletes metadata and ids that name the member from all rows of the board.

        `forms`: the forms of the name in JSON, which find candidates. `in_json` decides for metadata, and
        `in_text` for ids.
        """
        written = cast(journal.c.metadata, Text)
        in_id = func.pg_catalog.position(journal.c.id, member) > 0
        mentions = or_(in_id, *(written.contains(form, autoescape=True) for form in forms))
        asked = select(*_IDENTITY, journal.c.id, written).where(journal.c.board_id == board_id, mentions)
        in_metadata: list[tuple[object, ...]] = []
        in_ids: list[tuple[object, ...]] = []
        async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
            await connection.execute(text(f"SET LOCAL statement_timeout = '{LONGEST_SECONDS:g}s'"))
            rows: Any = await connection.execute(asked)
            for *identity, given, metadata in rows:
                if metadata is not None and in_json(metadata):
                    in_metadata.append(tuple(identity))
                if given is not None and in_text(bytes(given).decode()):
                    in_ids.append(tuple(identity))
        # JSON null, not SQL's: in a replay, it removes metadata that an earlier submission gave the entry.
        for found, values in ((in_metadata, {"metadata": JSON.NULL}), (in_ids, {"id": null()})):
            for first in range(0, len(found), ROWS_AT_ONCE):
                some = tuple_(*_IDENTITY).in_(found[first : first + ROWS_AT_ONCE])
                async with self._postgres.writing() as connection:
                    await connection.execute(update(journal).where(some).values(values))
        await self._forget_in_snapshots(board_id, forms, in_json)

    async def _forget_in_snapshots(
        self, board_id: int, forms: Collection[str], in_json: Callable[[str], bool]
    ) -> None:
        taken = select(snapshots.c.id).where(snapshots.c.board_id == board_id)
        columns, written = snapshot_entries.c, cast(snapshot_entries.c.metadata, Text)
        asked = select(columns.snapshot, columns.ordinal, written).where(
            columns.snapshot.in_(taken), or_(*(written.contains(form, autoescape=True) for form in forms))
        )
        async with self._postgres.writing(seconds=LONGEST_SECONDS) as connection:
            await connection.execute(text(f"SET LOCAL statement_timeout = '{LONGEST_SECONDS:g}s'"))
            rows = await connection.execute(asked)
            found = [(snapshot, ordinal) for snapshot, ordinal, metadata in rows if in_json(metadata)]
        for first in range(0, len(found), ROWS_AT_ONCE):
            some = tuple_(columns.snapshot, columns.ordinal).in_(found[first : first + ROWS_AT_ONCE])
            async with self._postgres.writing() as connection:
                await connection.execute(update(snapshot_entries).where(some).values(metadata=null()))
