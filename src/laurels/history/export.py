"""Exports boards to a file and imports them again: the entries as they are, window by window.

An import reads the file twice: first to check that it is complete and fits the boards, then to place its
entries. The journal records each placed entry, so that a rebuild has it. Placing it again changes nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from laurels.boards.board import WindowAddress
from laurels.boards.definition import parse_definition
from laurels.boards.keys import BoardRef, parse_cut
from laurels.boards.ordering import Position, Score
from laurels.boards.retention import target_at
from laurels.errors import Conflict, InvalidInput, NotFound
from laurels.history.export_file import (
    FORMAT,
    FORMAT_VERSION,
    BoardLine,
    EntryLine,
    ExportWriter,
    Manifest,
    WindowLine,
)
from laurels.journal.entry import place_entry
from laurels.moments import datetime_of
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import check_member, member_text
from laurels.scores.submit import cuts_a_call
from laurels.valkey import functions, keyspace, strings
from laurels.valkey.functions import DefinitionChanged
from laurels.valkey.messages import PlaceHeader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable

    from laurels.boards.board import Board, Target
    from laurels.boards.catalog import Catalog
    from laurels.boards.define import Definer
    from laurels.boards.retention import Retention
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.scores.rolling import Rolling
    from laurels.valkey.client import Valkey, Value

    Progress = Callable[[int, int], None]
    ReadLine = Manifest | BoardLine | WindowLine | EntryLine

PAGE: Final = 1000


class ImportCounts(msgspec.Struct, frozen=True):
    """What was imported. `passed`: entries skipped because their window has expired or the board does
    not have it.
    """

    boards: list[str]
    windows: int
    entries: int
    passed: int = 0


@dataclass(frozen=True)
class _ImportedEntry:
    member: bytes
    score: Score
    moment: int
    metadata: str


@dataclass(frozen=True)
class BoardFiles:
    valkey: Valkey
    catalog: Catalog
    definer: Definer
    retention: Retention
    rolling: Rolling
    clock: Clock

    async def export(
        self, refs: list[BoardRef], window: tuple[str, str] | None = None, progress: Progress | None = None
    ) -> AsyncGenerator[bytes]:
        """The lines of a file with these boards, or with one window of each."""
        writer = ExportWriter()
        made_at = datetime_of(self.clock()).isoformat()
        yield writer.line(Manifest(FORMAT, FORMAT_VERSION, list(map(str, refs)), made_at))
        for ref in refs:
            board = await self.catalog.in_force(ref)
            definition = board.definition.model_dump(mode="json", exclude_defaults=True)
            yield writer.line(BoardLine(str(ref), definition))
            for address in await self._addresses(board, window):
                yield writer.line(WindowLine(address.label, address.slot, address.cut.named))
                async for line in self._entries(board, address):
                    yield writer.line(line)
                    if progress and writer.entries % PAGE == 0:
                        progress(writer.entries, writer.entries)
        yield writer.ending()

    async def _addresses(self, board: Board, window: tuple[str, str] | None) -> list[WindowAddress]:
        found: dict[WindowAddress, None] = {}
        now = self.clock()
        for shard in range(board.keys.shards):
            async for address in self.retention.addresses(board, shard):
                target = target_at(board, address)
                until = target.zoned.held_until(target.slot) if target else None
                is_over = until is not None and now >= until
                if target and not is_over:
                    found[address] = None
        if window is not None:
            found = {each: None for each in found if (each.label, each.slot) == window}
            if not found:
                raise NotFound(f"{board.ref} has no window {':'.join(window)} with entries")
        return sorted(found, key=lambda each: (each.label, each.slot, str(each.cut)))

    async def _entries(self, board: Board, address: WindowAddress) -> AsyncIterator[EntryLine]:
        window = ShardedWindow(self.valkey, board, address)
        reply = await window.from_start(0, PAGE)
        ordinal = rank = 0
        before: Score | None = None
        while reply.entries:
            for listed in reply.entries:
                score, moment = board.ordering.parse_place(listed.place)
                ordinal += 1
                if board.ordering.unique or score != before:
                    rank, before = ordinal, score
                member, metadata = member_text(listed.member), listed.metadata.decode()
                yield EntryLine(member, repr(score), rank, moment, metadata)
            last = reply.entries[-1]
            reply = await window.after(Position(last.place, last.member), PAGE)

    async def check(self, lines: Iterable[ReadLine], into: BoardRef | None = None) -> ImportCounts:
        """Checks that the file is complete, and that each board fits its definition or does not exist yet."""
        boards: list[str] = []
        windows = entries = 0
        for line in lines:
            if isinstance(line, BoardLine):
                ref = into or BoardRef.parse(line.board)
                if into and boards:
                    raise InvalidInput("the file has several boards, so they cannot go into one board")
                boards.append(str(ref))
                await self._check_definition(ref, line.definition)
            windows += isinstance(line, WindowLine)
            entries += isinstance(line, EntryLine)
        return ImportCounts(boards, windows, entries)

    async def _check_definition(self, ref: BoardRef, fields: dict[str, Any]) -> None:
        definition = parse_definition(fields)
        try:
            board = await self.catalog.in_force(ref)
        except NotFound:
            return
        board.require_writer(None)
        for name in ("score", "ties", "order", "aggregate", "groups"):
            if getattr(board.definition, name) != getattr(definition, name):
                raise Conflict(f"{ref} exists with another {name}; import into another board (--into)")

    async def place(
        self, lines: Iterable[ReadLine], into: BoardRef | None = None, progress: Progress | None = None
    ) -> ImportCounts:
        """Places the entries of a file that `check` accepted. Defines missing boards first."""
        placing = _Import(self, into, progress)
        for line in lines:
            if isinstance(line, EntryLine):
                await placing.entry(line)
            elif isinstance(line, WindowLine):
                await placing.window(line)
            elif isinstance(line, BoardLine):
                await placing.board(line)
        return await placing.finish()

    async def place_pairs(
        self, ref: BoardRef, period: str | None, pairs: AsyncIterator[list[tuple[bytes, float]]]
    ) -> ImportCounts:
        """Places the members and scores of a plain sorted set in the current window of a board."""
        board = await self.catalog.in_force(ref)
        board.require_writer(None)
        now = self.clock()
        zoned = board.zoned_window(period)
        if zoned.how != "direct":
            raise InvalidInput.at("period", f"{zoned.label!r} is computed from other windows; name another")
        slot = zoned.calendar.at(now)
        target = target_at(board, WindowAddress(zoned.label, slot.text, parse_cut(None, board.definition)))
        entries = 0
        async for some in pairs:
            held = [_pair(board, member, score, now) for member, score in some]
            size = cuts_a_call(board)
            for first in range(0, len(held), size):
                if target:
                    await self.put(board, target, held[first : first + size])
            entries += len(held)
        await self.complete(board)
        return ImportCounts([str(ref)], 1, entries)

    async def defined(self, ref: BoardRef, fields: dict[str, Any]) -> Board:
        try:
            return await self.catalog.in_force(ref)
        except NotFound:
            definition = parse_definition(fields).model_copy(update={"feeds": ()})
            await self.definer.define(ref, definition)
            return await self.catalog.in_force(ref)

    def target(self, board: Board, line: WindowLine) -> Target | None:
        """The window of the line; None if it has expired or the board does not have it."""
        group = ",".join(f"{name}={_escaped(value)}" for name, value in line.groups.items())
        try:
            target = target_at(
                board, WindowAddress(line.period, line.slot, parse_cut(group, board.definition))
            )
        except InvalidInput:
            return None
        until = target.zoned.held_until(target.slot) if target else None
        return None if target is None or (until is not None and self.clock() >= until) else target

    async def put(self, board: Board, target: Target, entries: list[_ImportedEntry]) -> None:
        by_shard: dict[int, dict[bytes, _ImportedEntry]] = {}
        for each in entries:
            by_shard.setdefault(board.keys.shard_of(each.member), {})[each.member] = each
        for shard, of_shard in by_shard.items():
            try:
                await self._place_in(board, shard, target, list(of_shard.values()))
            except DefinitionChanged as changed:
                await self.catalog.refresh(board.ref, changed.known)
                raise Conflict(
                    f"the definition of {board.ref} changed during the import; run it again"
                ) from changed

    async def _place_in(
        self, board: Board, shard: int, target: Target, entries: list[_ImportedEntry]
    ) -> None:
        now = self.clock()
        await self.catalog.register(board, shard, [target], now)
        address = target.address
        groups = address.cut.named or None
        header = PlaceHeader(
            board.shape(metadata=True),
            board.version,
            1 if board.definition.archive.journal else 2,
            target.seconds_to_live(now),
            [each.metadata for each in entries],
        )
        placed = [(each.member, each.score, each.moment, each.metadata) for each in entries]
        rest: list[Value] = [
            place_entry(secrets.token_urlsafe(16), now, board.version, (address.token, groups), placed)
        ]
        for each in entries:
            rest += (board.ordering.place(each.score, each.moment), each.member)
        names = [board.keys.of_board(shard, name) for name in ("board", "journal")]
        window = board.keys.parts(board.window_key(shard, address), metadata=True)
        await functions.place(self.valkey, [*names, *window], header, rest)

    async def complete(self, board: Board | None) -> None:
        """Recomputes rolling windows from their days; if the days have expired, they stay as placed."""
        if board is None or not any(
            zoned.how == "fold" for zoned in board.zoned_windows(board.definition.timezone)
        ):
            return
        markers: dict[str, Target] = {}
        for shard in range(board.keys.shards):
            async for address in self.retention.addresses(board, shard):
                target = target_at(board, address)
                if target and target.zoned.how == "fold":
                    name = f"built:{address.token}:{target.zoned.zone}"
                    markers[board.keys.of_board(shard, name)] = target
        self.rolling.forget(board)
        for marker in markers:
            await self.valkey.run(keyspace.unlink(marker))
        for marker, target in markers.items():
            try:
                await self.rolling.ensure(board, target.zoned, target.slot)
            except NotFound:
                seconds = target.seconds_to_live(self.clock())
                await self.valkey.run(strings.put(marker, 1, seconds=seconds))
        await self.rolling.turn_over(board, self.clock())


class _Import:
    """The import of one file: it places as many entries at a time as fit a call."""

    def __init__(self, files: BoardFiles, into: BoardRef | None, progress: Progress | None) -> None:
        self._files = files
        self._into = into
        self._progress = progress
        self._board: Board | None = None
        self._target: Target | None = None
        self._held: list[_ImportedEntry] = []
        self._boards: list[str] = []
        self._windows = self._entries = self._passed = 0

    async def board(self, line: BoardLine) -> None:
        await self._flush()
        await self._files.complete(self._board)
        ref = self._into or BoardRef.parse(line.board)
        self._board, self._target = await self._files.defined(ref, line.definition), None
        self._boards.append(str(ref))

    async def window(self, line: WindowLine) -> None:
        await self._flush()
        self._target = self._files.target(self._board, line) if self._board else None
        self._windows += self._target is not None

    async def entry(self, line: EntryLine) -> None:
        if self._board is None or self._target is None:
            self._passed += 1
            return
        self._held.append(_read(self._board, line, self._files.clock()))
        self._entries += 1
        if len(self._held) >= cuts_a_call(self._board):
            await self._flush()

    async def finish(self) -> ImportCounts:
        await self._flush()
        await self._files.complete(self._board)
        return ImportCounts(self._boards, self._windows, self._entries, self._passed)

    async def _flush(self) -> None:
        held, self._held = self._held, []
        if self._board and self._target and held:
            await self._files.put(self._board, self._target, held)
            if self._progress:
                self._progress(self._entries, self._entries)


def _read(board: Board, line: EntryLine, now: Moment) -> _ImportedEntry:
    try:
        given: int | float = int(line.score) if board.ordering.int64 else float(line.score)
    except ValueError as error:
        raise InvalidInput.at("score", f"{line.score!r} is not a number") from error
    moment = now if line.at is None else line.at
    return _ImportedEntry(check_member(line.member), board.ordering.parse_score(given), moment, line.metadata)


def _pair(board: Board, member: bytes, score: float, now: Moment) -> _ImportedEntry:
    try:
        name = member.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput.at("member", f"{member!r} is not UTF-8") from error
    if board.ordering.int64 and not score.is_integer():
        raise InvalidInput.at("score", f"{score} is not a whole number, as the int64 board requires")
    exact = int(score) if board.ordering.int64 else score
    return _ImportedEntry(check_member(name), board.ordering.parse_score(exact), now, "")


def _escaped(value: str) -> str:
    return value.translate({ord(each): f"%{ord(each):02X}" for each in "%,="})
