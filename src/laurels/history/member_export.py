"""Everything that a project keeps about one member, as one document.

The rows of the journal may be many, so they come in parts: the first part has everything else too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from laurels.boards.keys import BoardRef
from laurels.errors import NotFound
from laurels.history.records import ExportedEntry, MemberExport
from laurels.history.store.member_export import JournalPlace, MemberExportStore
from laurels.list_cursor import read_list_cursor, write_list_cursor
from laurels.scores.page_query import check_bound
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import check_member
from laurels.valkey.functions import DefinitionChanged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laurels.boards.board import Board
    from laurels.boards.catalog import Catalog
    from laurels.boards.definition import StoredBoard
    from laurels.boards.retention import Retention
    from laurels.boards.store import BoardStore
    from laurels.journal.drain import Drain
    from laurels.people.records import Person
    from laurels.people.store import RecordStore
    from laurels.postgres.engine import Postgres
    from laurels.valkey.client import Valkey

MOST_ROWS: Final = 10_000
_SHAPE: Final = (str, int, int, int, int)


class FlowExporter(Protocol):
    """Knows what a flow keeps about a member beside its boards."""

    async def export(self, member: str) -> Mapping[str, list[dict[str, Any]]]:
        """Lists by name: `streaks`, `badges`, `days`."""
        ...


@dataclass(frozen=True)
class MemberExporter:
    valkey: Valkey
    postgres: Postgres
    catalog: Catalog
    boards: BoardStore
    retention: Retention
    drain: Drain
    people: RecordStore[Person]
    flows: Mapping[str, FlowExporter]
    """By the project of their boards."""

    async def export(self, project: str, member: str, limit: int, cursor: str | None) -> MemberExport:
        encoded = check_member(member)
        check_bound("limit", limit, 1, MOST_ROWS)
        question = (project, member)
        after = None
        if cursor is not None:
            after = JournalPlace(*read_list_cursor(question, cursor, _SHAPE))  # pyright: ignore[reportArgumentType]  # of this shape
        stored = sorted(await self.boards.boards(project), key=lambda each: each.board)
        store = MemberExportStore(self.postgres)
        rows: list[tuple[JournalPlace, dict[str, Any]]] = []
        for each in stored:
            if after is None or each.board >= after.board:
                if after is None:
                    await self.drain.finish(BoardRef(project, each.board))
                begins = after if after and after.board == each.board else None
                rows += await store.journal(each, encoded, begins, limit + 1 - len(rows))
            if len(rows) > limit:
                break
        following = write_list_cursor(question, rows[limit - 1][0]) if len(rows) > limit else None
        part = MemberExport(project, member, journal=[row for _, row in rows[:limit]], next=following)
        if after is not None:
            return part
        flow = self.flows.get(project)
        found = msgspec.structs.replace(
            part,
            person=None if "\0" in member else await self.people.get(project, member),
            entries=[entry for each in stored for entry in await self._entries(each, encoded)],
            snapshots=[row for each in stored for row in await store.snapshots(each, encoded)],
            **(await flow.export(member) if flow else {}),
        )
        if found == MemberExport(project, member):
            raise NotFound(f"{project}: nothing is known about {member!r}")
        return found

    async def _entries(self, stored: StoredBoard, member: bytes) -> list[ExportedEntry]:
        """The member's entries in all windows and groups that Valkey has."""
        ref = BoardRef(stored.project, stored.board)
        board = await self.catalog.in_force(ref)
        while True:
            try:
                return await self._entries_of(board, member)
            except DefinitionChanged as changed:
                board = await self.catalog.refresh(ref, changed.known)

    async def _entries_of(self, board: Board, member: bytes) -> list[ExportedEntry]:
        found: list[ExportedEntry] = []
        for address in await self.retention.days_first(board, board.keys.shard_of(member)):
            total, (stood,) = await ShardedWindow(self.valkey, board, address).standing((member,))
            if stood:
                score = board.ordering.parse_place(stood.place)[0]
                found.append(
                    ExportedEntry(
                        board.ref.board,
                        address.label,
                        address.slot,
                        str(address.cut),
                        str(score) if board.ordering.int64 else score,
                        stood.better + 1,
                        total,
                        msgspec.json.decode(stood.metadata) if stood.metadata else None,
                    )
                )
        return found
