"""Figures for an operator: load, the progress of the archive, and dead letters."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from laurels.boards.keys import board_of
from laurels.errors import NotFound, Unavailable
from laurels.journal.entry import StreamId, UnreadableEntry, read_entry
from laurels.journal.store.rows import JournalStore
from laurels.moments import Timestamp, datetime_of
from laurels.postgres.figures import PostgresFigures, read_figures
from laurels.valkey import functions, requirements
from laurels.valkey.names import EVENTS
from laurels.valkey.streams import delete, length, newest_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laurels.boards.store import BoardStore
    from laurels.journal.store.rows import Stream
    from laurels.journal.streams import JournalStreams
    from laurels.postgres.engine import Postgres
    from laurels.valkey.client import Valkey

# How long the same figures are shown again.
FRESH_SECONDS: Final = 1.0
# How many boards are listed: those with the longest journals.
MOST_BOARDS: Final = 100
# The stream of campus events that cannot be counted.
CAMPUS_LETTERS: Final = f"{EVENTS}lb.dead"
CAMPUS: Final = "campus"
# `BOARD.SHARD.ID` or `campus.ID`, the id that of an entry of a stream.
_LETTER: Final = re.compile(rf"(?:[0-9]{{1,18}}\.[0-9]{{1,5}}|{CAMPUS})\.[0-9]{{1,19}}-[0-9]{{1,19}}")
SHOWN_MEMBERS: Final = 5
SHOWN_BYTES: Final = 48
SHOWN_CHARACTERS: Final = 500

Source = Literal["journal", "campus"]


@dataclass(frozen=True)
class ValkeyFigures:
    """Over all primaries. `commands`: how many it has run since it started."""

    name: str
    version: str
    nodes: int
    memory_bytes: int
    memory_limit_bytes: int | None
    commands: int
    clients: int


@dataclass(frozen=True)
class JournalFigures:
    """Counts calls: one call carries up to some hundreds of submissions."""

    recorded: int
    """Archived and waiting calls, over the existing boards."""
    waiting: int
    """Calls that are not archived yet."""
    bytes: int
    watermark: Timestamp
    """Everything recorded before is archived."""
    age_seconds: float
    dead_letters: int


@dataclass(frozen=True)
class BoardFigures:
    project: str
    board: str
    recorded: int
    waiting: int
    watermark: Timestamp


@dataclass(frozen=True)
class Figures:
    at: Timestamp
    valkey: ValkeyFigures
    postgres: PostgresFigures | None
    """None while it does not answer."""
    journal: JournalFigures
    boards: tuple[BoardFigures, ...]
    """By the length of the journal, longest first, then by name."""


@dataclass(frozen=True)
class DeadLetter:
    id: str
    source: Source
    board: str | None
    """None for an event of a campus."""
    recorded_at: Timestamp
    why: str
    summary: str
    """The content, as far as it can be read."""


@dataclass(frozen=True)
class DeadLetters:
    total: int
    letters: tuple[DeadLetter, ...]
    """Newest first."""


class OperatorStatus:
    def __init__(
        self, valkey: Valkey, postgres: Postgres, boards: BoardStore, streams: JournalStreams
    ) -> None:
        self._valkey = valkey
        self._postgres = postgres
        self._boards = boards
        self._journal = JournalStore(postgres)
        self._journal_streams = streams
        self._figures: tuple[float, Figures] | None = None
        self._archived: tuple[int, dict[int, int]] = 0, {}

    async def takes_writes(self) -> bool:
        """False if Valkey is out of memory. Raises `Unavailable` if it refuses writes for another reason."""
        return await requirements.takes_writes(self._valkey)

    async def figures(self) -> Figures:
        """The figures, at most `FRESH_SECONDS` old."""
        now = time.monotonic()
        if self._figures is None or now >= self._figures[0] + FRESH_SECONDS:
            self._figures = now, await self._read_figures()
        return self._figures[1]

    async def dead_letters(self, limit: int) -> DeadLetters:
        """Journal entries that could not be archived, and campus events that could not be counted."""
        counts = await self._journal_streams.letters()
        sources: list[Stream | None] = [*counts]
        if of_campuses := await self._valkey.run(length(CAMPUS_LETTERS)):
            sources.append(None)
        listed = await self._valkey.run_all(newest_entries(_letters(each), limit) for each in sources)
        found = [
            _letter(stream, StreamId.parse(name), fields)
            for stream, entries in zip(sources, listed, strict=True)
            for name, fields in entries
        ]
        found.sort(key=lambda letter: letter.recorded_at, reverse=True)
        return DeadLetters(sum(counts.values()) + of_campuses, tuple(found[:limit]))

    async def retry(self, letter: str) -> None:
        """Puts a journal entry back at the end of the journal, to be archived. Raises `NotFound`."""
        stream, name = await self._located(letter)
        if stream is None:
            raise NotFound(f"{letter} is an event of a campus: send it again from its source")
        if not await functions.exhume(self._valkey, stream.dead_letters, stream.key, name):
            raise NotFound(f"there is no dead letter {letter}")

    async def discard(self, letter: str) -> None:
        """Raises `NotFound`."""
        stream, name = await self._located(letter)
        if not await self._valkey.run(delete(_letters(stream), name)):
            raise NotFound(f"there is no dead letter {letter}")

    async def _located(self, letter: str) -> tuple[Stream | None, str]:
        """The journal of the letter, or None for a campus event; and the letter's id in its stream."""
        of, _, name = letter.rpartition(".")
        if _LETTER.fullmatch(letter):
            if of == CAMPUS:
                return None, name
            stored = await self._boards.by_id(int(of.partition(".")[0]))
            for stream in self._journal_streams.of_stored(stored) if stored else ():
                if of == _place(stream):
                    return stream, name
        raise NotFound(f"there is no dead letter {letter}")

    async def _read_figures(self) -> Figures:
        backlog = await self._journal_streams.backlog()
        waiting = await self._journal_streams.waiting(known=True)
        oldest = await self._journal_streams.oldest(waiting)
        at = datetime_of(await self._valkey.now())
        of_boards: dict[int, BoardFigures] = {}
        for stream, count in waiting.items():
            ref = board_of(stream.key)
            before = of_boards.get(stream.board_id) or BoardFigures(*ref, 0, 0, at)
            upto = oldest[stream].recorded_at if stream in oldest else at
            of_boards[stream.board_id] = replace(
                before, waiting=before.waiting + count, watermark=min(before.watermark, upto)
            )
        await self._read_archived(of_boards, at)
        total, archived = self._archived
        listed = [
            replace(each, recorded=archived.get(board_id, 0) + each.waiting)
            for board_id, each in of_boards.items()
        ]
        listed.sort(key=lambda each: (-each.waiting, each.project, each.board))
        journal = JournalFigures(
            recorded=total + backlog.calls,
            waiting=backlog.calls,
            bytes=backlog.bytes,
            watermark=at if backlog.oldest is None else datetime_of(backlog.oldest),
            age_seconds=backlog.age_seconds,
            dead_letters=backlog.dead_letters,
        )
        return Figures(
            at,
            await self._valkey_figures(),
            await self._postgres_figures(),
            journal,
            tuple(listed[:MOST_BOARDS]),
        )

    async def _read_archived(self, of_boards: dict[int, BoardFigures], at: Timestamp) -> None:
        """Adds boards without a backlog until there are enough, and reads how many calls are archived.
        Without PostgreSQL, adds none and keeps what was read last.
        """
        with suppress(Unavailable):
            if len(of_boards) < MOST_BOARDS:
                for stored in await self._boards.first(MOST_BOARDS):
                    if stored.definition.archive.journal:
                        quiet = BoardFigures(stored.project, stored.board, 0, 0, at)
                        of_boards.setdefault(stored.id, quiet)
            self._archived = await self._journal.archived_calls(of_boards)

    async def _postgres_figures(self) -> PostgresFigures | None:
        try:
            return await read_figures(self._postgres)
        except Unavailable:
            return None

    async def _valkey_figures(self) -> ValkeyFigures:
        infos = await self._valkey.infos("default")
        limits = [int(each.get("maxmemory", 0)) for each in infos]
        is_valkey = "valkey_version" in infos[0]
        return ValkeyFigures(
            name="Valkey" if is_valkey else "Redis",
            version=infos[0].get("valkey_version" if is_valkey else "redis_version", ""),
            nodes=len(infos),
            memory_bytes=_total(infos, "used_memory"),
            memory_limit_bytes=sum(limits) if all(limits) else None,
            commands=_total(infos, "total_commands_processed"),
            clients=_total(infos, "connected_clients"),
        )


def _total(infos: Iterable[Mapping[str, str]], name: str) -> int:
    return sum(int(each.get(name, 0)) for each in infos)


def _place(stream: Stream | None) -> str:
    """The part of a letter's id that names its stream."""
    return CAMPUS if stream is None else f"{stream.board_id}.{stream.shard}"


def _letters(stream: Stream | None) -> str:
    return CAMPUS_LETTERS if stream is None else stream.dead_letters


def _letter(stream: Stream | None, name: StreamId, fields: Mapping[bytes, bytes]) -> DeadLetter:
    text = {key.decode("utf-8", "replace"): value for key, value in fields.items()}
    why = text.get("why" if stream else "reason", b"").decode("utf-8", "replace")
    return DeadLetter(
        id=f"{_place(stream)}.{name}",
        source="journal" if stream else "campus",
        board=str(board_of(stream.key)) if stream else None,
        recorded_at=name.recorded_at,
        why=why[:SHOWN_CHARACTERS],
        summary=_of_journal(name, fields) if stream else _of_campus(text),
    )


def _of_journal(name: StreamId, fields: Mapping[bytes, bytes]) -> str:
    body = fields.get(b"body", b"")
    try:
        entry = read_entry(name, fields)
    except UnreadableEntry:
        return f"{len(body)} bytes: {body[:SHOWN_BYTES].hex(' ')}{'…' if len(body) > SHOWN_BYTES else ''}"
    names = [row.member.decode("utf-8", "replace") for row in entry.rows[:SHOWN_MEMBERS]]
    more = f" and {len(entry.rows) - SHOWN_MEMBERS} more" if len(entry.rows) > SHOWN_MEMBERS else ""
    return f"{entry.kind} of {', '.join(names)}{more}"[:SHOWN_CHARACTERS]


def _of_campus(fields: Mapping[str, bytes]) -> str:
    shown = (
        f"{name} {value.decode('utf-8', 'replace')}" for name, value in fields.items() if name != "reason"
    )
    return ", ".join(shown)[:SHOWN_CHARACTERS]
