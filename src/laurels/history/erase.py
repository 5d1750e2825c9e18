"""Erases a member: from live windows, the journal, snapshots, dead letters, remembered ids and answers; and
from the people of the project.

Windows that ended keep their ranks: there the entry stays, under a random name. A match writes entries of all
its players, so on boards of matches the metadata and ids of others go too, where they name the member.

A flow that owns boards first erases the member from what it keeps itself, and says which random name its
boards have to use.

The order matters. First come the live windows, with a journal entry that does not name the member; then,
once everything before it is archived, the tables. After an interruption, another run finds what is left.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from laurels.boards.keys import BoardRef
from laurels.boards.retention import WINDOWS_A_CALL, target_at
from laurels.errors import NotFound
from laurels.history.name_matcher import NameMatcher
from laurels.history.records import Erased
from laurels.history.store.erase import EraseStore
from laurels.journal.entry import erase_entry
from laurels.journal.member_fold import goes_on_without
from laurels.moments import DAY
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import check_member
from laurels.valkey import functions, hashes, sets, streams
from laurels.valkey.functions import DefinitionChanged
from laurels.valkey.messages import ReadHeader, RemoveHeader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from laurels.boards.board import Board, WindowAddress
    from laurels.boards.catalog import Catalog
    from laurels.boards.definition import StoredBoard
    from laurels.boards.retention import Retention
    from laurels.boards.store import BoardStore
    from laurels.clock import Clock
    from laurels.journal.drain import Drain
    from laurels.postgres.engine import Postgres
    from laurels.valkey.client import Valkey


class FlowEraser(Protocol):
    """Erases members from what a flow keeps beside its boards."""

    async def erase(self, user: str) -> tuple[str, int]:
        """Returns the random name, which the boards have to use too, and how many rows were renamed."""
        ...


ENTRIES_AT_ONCE: Final = 200
# How many days of ids and stored answers Valkey may still have.
DAYS: Final = 3
TOMBSTONE: Final = "~erased:"


@dataclass(frozen=True)
class Eraser:
    valkey: Valkey
    postgres: Postgres
    catalog: Catalog
    boards: BoardStore
    retention: Retention
    drain: Drain
    clock: Clock
    flows: Mapping[str, FlowEraser]
    """By the project of their boards."""
    forget_person: Callable[[str, str], Awaitable[bool]]
    """Called with the project and the member; returns whether there was such a person."""

    async def erase(self, project: str, member: str, board: str | None = None) -> Erased:
        """Erases the member; safe to repeat. Later submissions under the name count as a new member's.

        Raises `Conflict` and does nothing while a board that a flow owns has the member, since the flow would
        enter it again.
        """
        encoded = check_member(member)
        stored = await self.boards.boards(project)
        if board is not None:
            stored = [each for each in stored if each.board == board]
        flow = None if board is not None else self.flows.get(project)
        user = _uuid(member) if flow else None
        for each in stored:
            if user is None or each.owner != "campus":
                await self._check_owner(each, encoded, is_named=board is not None)
        rows, named = 0, None
        if flow and user:
            encoded = user.encode()
            stand_in, renamed = await flow.erase(user)
            named, rows = stand_in.encode(), renamed
            stored = await self.boards.boards(project)  # what was waiting may have made boards
        if board is None and "\0" not in member:
            rows += await self.forget_person(project, user or member)
        if not stored and not rows:
            raise NotFound(
                f"there is no board {project}/{board}" if board else f"there is no project {project}"
            )
        boards = windows = 0
        for each in stored:
            ref = BoardRef(each.project, each.board)
            found, changed = await self._erase(ref, each.id, encoded, named if each.owner else None)
            boards += bool(found or changed)
            windows, rows = windows + found, rows + changed
        return Erased(boards, windows, rows)

    async def _check_owner(self, stored: StoredBoard, member: bytes, *, is_named: bool) -> None:
        if stored.owner is None:
            return
        board = await self.catalog.in_force(BoardRef(stored.project, stored.board))
        if is_named:
            board.require_writer(None)
        for address in await self.retention.days_first(board, board.keys.shard_of(member)):
            _, (stood,) = await ShardedWindow(self.valkey, board, address).standing((member,), brief=True)
            if stood:
                board.require_writer(None)

    async def _erase(
        self, ref: BoardRef, board_id: int, member: bytes, named: bytes | None
    ) -> tuple[int, int]:
        board = await self.catalog.in_force(ref)
        shard = board.keys.shard_of(member)
        named = named or _stand_in()
        while board.keys.shard_of(named) != shard:  # reads of the new name look in its shard
            named = _stand_in()
        store = EraseStore(self.postgres)
        await self.drain.finish(ref)
        today = self.clock() // DAY
        ids = await store.ids(board_id, member, (today - DAYS) * DAY)
        while True:
            try:
                found = await self._leave(board, shard, member, named)
                break
            except DefinitionChanged as changed:
                board = await self.catalog.refresh(ref, changed.known)
        await self.drain.finish(ref)
        mentions = NameMatcher(member.decode())
        if board.is_rated:
            # PostgreSQL's texts cannot hold U+0000.
            forms = [form for form in mentions.forms if "\0" not in form]
            await store.forget_mentions(board_id, member, forms, mentions.in_json, mentions.in_text)
            await self._forget_metadata(board, shard, mentions)
        rows = await store.rename(board_id, member, named)
        await self._forget(board, shard, member, ids)
        return found, rows

    async def _leave(self, board: Board, shard: int, member: bytes, named: bytes) -> int:
        """Removes the member from current windows and renames it in ended ones. Returns how many had it."""
        now = self.clock()
        shape = board.shape(metadata=True)
        reading = ReadHeader(shape, board.version)
        journaled = 1 if board.definition.archive.journal else 2
        header = RemoveHeader(shape, board.version, journaled, rated=int(board.is_rated))
        names = ("board", "journal", *(("ratings",) if board.is_rated else ()))
        entry = erase_entry(secrets.token_urlsafe(16), now, board.version, named)
        found = 0
        done: set[WindowAddress] = set()
        addresses = await self.retention.days_first(board, shard)
        while addresses or header.journal:
            leaving: list[WindowAddress] = []
            staying: list[WindowAddress] = []
            for address in addresses:
                if target := target_at(board, address):
                    is_leaving = goes_on_without(board, target.zoned, target.slot, now)
                    (leaving if is_leaving else staying).append(address)
            for keys in _calls(board, shard, staying, ("board",)):
                found += await functions.rename(self.valkey, keys, reading, member, named)
            for keys in _calls(board, shard, leaving, names) or [_named(board, shard, names)]:
                found += await functions.remove(self.valkey, keys, header, (entry, member))
                header.journal = 0
            # A rolling window that was completed meanwhile may have taken the member from its days.
            done |= {*addresses}
            listed = await self.retention.days_first(board, shard)
            addresses = [address for address in listed if address not in done]
        return found

    async def _forget(self, board: Board, shard: int, member: bytes, ids: list[bytes]) -> None:
        """Deletes dead letters, remembered ids, and answers stored under idempotency keys."""
        mentions = NameMatcher(member.decode())
        for known in board.keys.generations(shard, "ids"):
            if ids:
                await self.valkey.run(sets.remove(known, ids))
            if board.is_rated or not board.definition.archive.journal:
                await self._forget_ids(known, mentions)
        for answers in board.keys.generations(0, "once"):
            await self._forget_answers(answers, member)
        await self._forget_dead(board.keys.of_board(shard, "dead"), member)

    async def _forget_metadata(self, board: Board, shard: int, mentions: NameMatcher) -> None:
        """Deletes others' metadata that names the member, in all windows."""
        async for address in self.retention.addresses(board, shard):
            key = f"{board.window_key(shard, address)}|metadata"
            async for pairs in hashes.scan(self.valkey, key, ENTRIES_AT_ONCE):
                lost = [name for name, value in pairs if mentions.in_json(value)]
                if lost:
                    await self.valkey.run(hashes.delete(key, lost))

    async def _forget_ids(self, key: str, mentions: NameMatcher) -> None:
        """Deletes ids that name the member, also those of other members' submissions."""
        async for ids in sets.scan(self.valkey, key, ENTRIES_AT_ONCE):
            lost = [each for each in ids if mentions.in_text(each)]
            if lost:
                await self.valkey.run(sets.remove(key, lost))

    async def _forget_answers(self, key: str, member: bytes) -> None:
        forms = _written(member)
        async for pairs in hashes.scan(self.valkey, key, ENTRIES_AT_ONCE):
            lost = [name for name, value in pairs if any(each in name or each in value for each in forms)]
            if lost:
                await self.valkey.run(hashes.delete(key, lost))

    async def _forget_dead(self, key: str, member: bytes) -> None:
        after = "-"
        forms = _written(member)
        while True:
            entries = await self.valkey.run(streams.entries(key, after, count=ENTRIES_AT_ONCE))
            for name, fields in entries:
                if any(each in value for value in fields.values() for each in forms):
                    await self.valkey.run(streams.delete(key, name))
            if len(entries) < ENTRIES_AT_ONCE:
                return
            after = f"({entries[-1][0].decode()}"


def _uuid(member: str) -> str | None:
    """In lower case, as flows know their users; None for another member."""
    try:
        return str(UUID(member))
    except ValueError:
        return None


def _stand_in() -> bytes:
    return f"{TOMBSTONE}{secrets.token_hex(16)}".encode()


def _written(member: bytes) -> set[bytes]:
    return {member, *(form.encode() for form in NameMatcher(member.decode()).forms)}


def _named(board: Board, shard: int, names: tuple[str, ...]) -> list[str]:
    return [board.keys.of_board(shard, name) for name in names]


def _calls(
    board: Board, shard: int, addresses: list[WindowAddress], names: tuple[str, ...]
) -> list[list[str]]:
    """The keys of each call, for as many windows as fit."""
    calls: list[list[str]] = []
    for first in range(0, len(addresses), WINDOWS_A_CALL):
        keys = _named(board, shard, names)
        for address in addresses[first : first + WINDOWS_A_CALL]:
            keys += board.keys.parts(board.window_key(shard, address), metadata=True)
        calls.append(keys)
    return calls
