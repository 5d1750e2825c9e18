"""A typed stub for each function of the library. The head of its Lua file describes the function."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from laurels.valkey.messages import (
    ClaimReply,
    ConvertHeader,
    CountReply,
    EntryReply,
    Fence,
    FoldHeader,
    HitReply,
    IndexHeader,
    MatchHeader,
    MetadataHeader,
    PageHeader,
    PageReply,
    PlaceHeader,
    PlayerRanks,
    ReadHeader,
    Registration,
    RemoveHeader,
    Report,
    ScanHeader,
    StaleStates,
    StandingReply,
    SubmitHeader,
    SubmitReply,
)
from laurels.valkey.refusals import taken_key

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence

    from laurels.valkey.client import Reply, Valkey, Value
    from laurels.valkey.messages import ClaimRequest, Durability, Guard, Settlement

_encode = msgspec.msgpack.Encoder().encode

# Between two attempts while a fence keeps writers off the board.
FENCED_SECONDS: Final = 0.005


class DefinitionChanged(Exception):
    """Valkey has another version of the board than the caller: `known`, or None."""

    def __init__(self, known: int | None) -> None:
        super().__init__(known)
        self.known = known


class FenceLapsed(Exception):
    """The caller's fence is over, so others may have written."""


class CursorMoved(Exception):
    """The cursor of the index has moved: another process applied changes, or Valkey lost some."""


class MetadataKept(Exception):
    """The board has metadata, and the call lacks the keys of metadata: repeat it with them."""


_ERRORS: Final = {b"lapsed": FenceLapsed, b"metadata": MetadataKept, b"moved": CursorMoved}
"""By the status of a reply."""


async def submit(
    valkey: Valkey,
    keys: Sequence[str],
    header: SubmitHeader,
    rest: Sequence[Value],
    durability: Durability = "fast",
) -> SubmitReply:
    """`rest`: the journal entry, the moments, then score and member of each submission."""
    args = (_encode(header), *rest)
    with _announced(valkey, keys[1], header.journal):
        _, refused, reports = await _write(valkey, "laurels_submit", keys, args, durability)
    return SubmitReply(
        refused={index - 1: why.decode() for index, why in zip(refused[::2], refused[1::2], strict=True)},
        reports=[Report(*report) if len(report) > 1 else report[0] for report in reports],
    )


async def match(
    valkey: Valkey,
    keys: Sequence[str],
    header: MatchHeader,
    rest: Sequence[Value],
    durability: Durability = "fast",
) -> list[PlayerRanks] | StaleStates:
    """The ranks of each player; or `StaleStates`, and nothing was written. `rest`: as for `submit`, then
    member, expected state and new state of each player.
    """
    args = (_encode(header), *rest)
    with _announced(valkey, keys[1], header.journal):
        status, *answer = await _write(valkey, "laurels_match", keys, args, durability)
    if status == b"stale":
        return StaleStates(*answer)
    (ranks,) = answer
    return list(map(PlayerRanks, ranks[::2], ranks[1::2]))


async def adopt(valkey: Valkey, keys: Sequence[str], version: int) -> int:
    return int(await valkey.write("laurels_adopt", keys, (version,)))


async def convert(valkey: Valkey, keys: Sequence[str], header: ConvertHeader) -> tuple[str, int]:
    """The next cursor, and how many members are left."""
    cursor, left = await valkey.write("laurels_convert", keys, (_encode(header),))
    return cursor.decode(), left


async def retire(valkey: Valkey, board_key: str, number: int) -> bool:
    """Whether the board's keys are still to be deleted under this number."""
    return bool(await valkey.write("laurels_retire", (board_key,), (number,)))


async def retired(valkey: Valkey, board_key: str, number: int, seconds: int) -> None:
    await valkey.write("laurels_retired", (board_key,), (number, seconds))


async def register(
    valkey: Valkey, keys: Sequence[str], version: int, registrations: Sequence[Registration]
) -> None:
    """`keys`: the board and its list of windows; then for each window its list of groups, and its own keys
    where a template names them. Raises `KeyTaken` when another program has one of these.
    """
    words = (version, *(word for registration in registrations for word in registration))
    status, *answer = await _write(valkey, "laurels_register", keys, words)
    if status == b"taken":
        number, what = answer
        raise taken_key(str(keys[int(number) - 1]), what.decode())


async def remove(
    valkey: Valkey,
    keys: Sequence[str],
    header: RemoveHeader,
    rest: tuple[bytes, bytes],
    durability: Durability = "fast",
) -> int:
    """The number of these windows that had the member. `rest`: the journal entry, and the member."""
    args = (_encode(header), *rest)
    with _announced(valkey, keys[1], header.journal):
        return int((await _write(valkey, "laurels_remove", keys, args, durability))[1])


async def set_metadata(
    valkey: Valkey,
    keys: Sequence[str],
    header: MetadataHeader,
    rest: tuple[bytes, bytes],
    durability: Durability = "fast",
) -> int | None:
    """How many of these windows have the member; None for a repeated id. `rest`: journal entry, member."""
    args = (_encode(header), *rest)
    with _announced(valkey, keys[1], header.journal):
        status, *answer = await _write(valkey, "laurels_set_metadata", keys, args, durability)
    return None if status == b"duplicate" else int(answer[0])


async def confirm(valkey: Valkey, keys: Sequence[str], calls: Sequence[str], durability: Durability) -> int:
    """How many of these calls Valkey does not know to have run."""
    return int(await valkey.write("laurels_confirm", keys, calls, durability))


async def bury(valkey: Valkey, dead_letters: str, name: str, fields: Sequence[Value]) -> None:
    await valkey.write("laurels_bury", (dead_letters,), (name, *fields))


async def exhume(valkey: Valkey, dead_letters: str, journal: str, name: str) -> bool:
    """Whether the dead letter existed."""
    with _announced(valkey, journal, 1):
        return bool(await valkey.write("laurels_exhume", (dead_letters, journal), (name,)))


async def announce(valkey: Valkey, key: str, names: Collection[str], *, only_new: bool = False) -> int:
    return int(await valkey.write("laurels_announce", (key,), ("NX" if only_new else "", *names)))


async def looked_at(valkey: Valkey, key: str, words: Sequence[Value]) -> int:
    """`words`: for each name the name, the score that it had, and the next one or ''."""
    return int(await valkey.write("laurels_looked_at", (key,), words))


async def keeps(valkey: Valkey, journal: str, name: str, value: bytes, durability: Durability) -> bool:
    """Whether the journal has this entry. Raises unless it is this durable."""
    return bool(await valkey.write("laurels_keeps", (journal,), (name, value), durability))


async def lift(valkey: Valkey, journal: str, floor: str, ids: Sequence[str]) -> int:
    return int(await valkey.write("laurels_lift", (journal,), (floor, *ids)))


async def fold(valkey: Valkey, keys: Sequence[str], header: FoldHeader) -> str:
    """The next cursor; "0" when the day is done."""
    return (await _write(valkey, "laurels_fold", keys, (_encode(header),)))[1].decode()


async def set_aside(
    valkey: Valkey, keys: Mapping[str, str], many: int, seconds: int, guard: Guard
) -> list[bytes]:
    """`keys`: the new name of each key. Returns the new names of large keys; small ones were deleted."""
    board_key, *expected = guard
    words = (many, seconds, *expected)
    return (await _write(valkey, "laurels_set_aside", (board_key, *keys, *keys.values()), words))[1:]


async def retire_generation(
    valkey: Valkey, keys: Sequence[str], kind: str, many: int, seconds: int
) -> list[bytes]:
    """Sets the oldest generation aside if it is about to be dropped; returns its new name if it was large."""
    return (await valkey.write("laurels_retire_generation", keys, (kind, many, seconds)))[1:]


async def list_aside(valkey: Valkey, registry: str, names: Sequence[Value]) -> None:
    await valkey.write("laurels_list_aside", (registry,), names)


async def begin_session(valkey: Valkey, key: str, value: bytes, seconds: int) -> None:
    await valkey.write("laurels_session", (key,), (value, seconds))


async def empty(valkey: Valkey, key: str, cursor: str, count: int) -> str:
    """Empties a key that was set aside. Returns the next cursor, "" when nothing is left."""
    return (await valkey.write("laurels_empty", (key,), (cursor, count))).decode()


async def fence(valkey: Valkey, keys: tuple[str, str], version: int, wanted: Fence) -> str:
    """Keeps writers off the board, once no other fence does. Returns the id of the journal's last entry."""
    return (await _write(valkey, "laurels_fence", keys, (version, *wanted)))[1].decode()


async def switch(valkey: Valkey, keys: Sequence[str], held: tuple[str, int], seconds: Sequence[int]) -> None:
    """`held`: the token of the fence, and the milliseconds that it is prolonged by."""
    await _write(valkey, "laurels_switch", keys, (*held, *seconds))


async def unfence(valkey: Valkey, board_key: str, token: str, *, metadata: bool = False) -> None:
    await _write(valkey, "laurels_unfence", (board_key,), (token, int(metadata)))


async def place(valkey: Valkey, keys: Sequence[str], header: PlaceHeader, rest: Sequence[Value]) -> int:
    """The number of entries in the window after. `rest`: the journal entry, then place and member of each."""
    args = (_encode(header), *rest)
    with _announced(valkey, keys[1], header.journal):
        return int((await _write(valkey, "laurels_place", keys, args))[1])


async def rename(valkey: Valkey, keys: Sequence[str], header: ReadHeader, member: bytes, named: bytes) -> int:
    """The number of these windows that had the member."""
    return int((await _write(valkey, "laurels_rename", keys, (_encode(header), member, named)))[1])


async def index(valkey: Valkey, keys: Sequence[str], header: IndexHeader, rest: Sequence[Value]) -> None:
    """`rest`: the rows, then place and member of each change, window by window."""
    await _write(valkey, "laurels_index", keys, (_encode(header), *rest))


async def hit(valkey: Valkey, keys: Sequence[str], most: int, milliseconds: int) -> list[HitReply]:
    """A hit on each key. On a cluster each is a call of its own, since the keys are in different slots."""
    args = most, milliseconds
    if not valkey.is_cluster:
        return [HitReply(*each) for each in await valkey.write("laurels_hit", keys, args)]
    replies = await asyncio.gather(*(valkey.write("laurels_hit", (key,), args) for key in keys))
    return [HitReply(*each) for (each,) in replies]


async def claim(valkey: Valkey, keys: Sequence[str], wanted: ClaimRequest) -> ClaimReply:
    return ClaimReply(*await valkey.write("laurels_claim", keys, wanted))


async def settle(valkey: Valkey, keys: Sequence[str], settlement: Settlement) -> bool:
    """Whether the claim was still the owner's."""
    return bool(await valkey.write("laurels_settle", keys, settlement))


async def _read(valkey: Valkey, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
    return _checked(await valkey.read(function, keys, args))


async def standing(
    valkey: Valkey, keys: Sequence[str], header: ReadHeader, members: Sequence[bytes]
) -> tuple[int, list[StandingReply | None]]:
    """The number of entries, and each member's standing."""
    total, *found = await _read(valkey, "laurels_standing", keys, (_encode(header), *members))
    return total, [StandingReply(*each) if each else None for each in found]


async def count(
    valkey: Valkey, keys: Sequence[str], header: ReadHeader, places: Sequence[tuple[bytes, bytes]]
) -> tuple[int, list[CountReply]]:
    """The number of entries, and where entries at these places would stand."""
    flat = [part for place in places for part in place]
    total, *found = await _read(valkey, "laurels_count", keys, (_encode(header), *flat))
    return total, [CountReply(*each) for each in found]


async def page(
    valkey: Valkey, keys: Sequence[str], header: PageHeader, rest: Sequence[Value] = ()
) -> PageReply | None:
    """A page of the window, best first; None if it is asked around a member without an entry."""
    total, *answer = await _read(valkey, "laurels_page", keys, (_encode(header), *rest))
    if not answer:
        return None
    first, better, listed, metadata = answer
    members, places = listed[::2], listed[1::2]
    return PageReply(
        total, first, better, list(map(EntryReply, members, places, metadata or [b""] * len(members)))
    )


async def scan(valkey: Valkey, keys: Sequence[str], header: ScanHeader) -> tuple[str, list[EntryReply]]:
    """The next cursor, "0" at the end; and some entries in no order."""
    _, cursor, listed, metadata = await _read(valkey, "laurels_scan", keys, (_encode(header),))
    members, places = listed[::2], listed[1::2]
    return cursor.decode(), list(map(EntryReply, members, places, metadata or [b""] * len(members)))


@contextmanager
def _announced(valkey: Valkey, journal: str, how: int) -> Generator[None]:
    """Announces the journal after a call that may append to it. `how`: the header's `journal`."""
    try:
        yield
    finally:
        if how == 1:
            valkey.announcer.journal(journal)


async def _write(
    valkey: Valkey,
    function: str,
    keys: Sequence[str],
    args: Sequence[Value],
    durability: Durability = "fast",
) -> Reply:
    """Writes once no fence keeps writers off the board. Raises what the status of the reply says."""
    while True:
        answer = await valkey.write(function, keys, args, durability)
        error = _ERRORS.get(answer[0])
        if error:
            raise error
        if answer[0] != b"fenced":
            return _checked(answer)
        await asyncio.sleep(FENCED_SECONDS)


def _checked(answer: Reply) -> Reply:
    if answer[0] == b"version":
        raise DefinitionChanged(int(answer[1]) if answer[1] else None)
    return answer
