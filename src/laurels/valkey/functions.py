"""A typed stub for each function of our library; what it does stands on top of its Lua file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from laurels.valkey.messages import (
    Counted,
    FoldHeader,
    Listed,
    PageHeader,
    PageReply,
    ReadHeader,
    Registration,
    RemoveHeader,
    Report,
    Stood,
    SubmitHeader,
    SubmitReply,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.valkey.client import Reply, Valkey, Value

_encode = msgspec.msgpack.Encoder().encode


class DefinitionChanged(Exception):
    """Valkey knows another version of the board than the caller does: `known`, or none at all."""

    def __init__(self, known: int | None) -> None:
        super().__init__(known)
        self.known = known


class MetadataKept(Exception):
    """The board has metadata, and the call did not name its keys: call again with them."""


async def submit(
    valkey: Valkey, keys: Sequence[str], header: SubmitHeader, rest: Sequence[Value]
) -> SubmitReply:
    """`rest`: the journal entry, the moments, then score and member of each submission."""
    status, *answer = await valkey.write("laurels_submit", keys, (_encode(header), *rest))
    if status == b"version":
        raise DefinitionChanged(_version(answer[0]))
    if status == b"metadata":
        raise MetadataKept
    refused, reports = answer
    return SubmitReply(
        refused={index - 1: why.decode() for index, why in zip(refused[::2], refused[1::2], strict=True)},
        reports=[Report(*report) for report in reports],
    )


async def adopt(valkey: Valkey, board_key: str, version: int) -> int:
    return int(await valkey.write("laurels_adopt", (board_key,), (version,)))


async def register(valkey: Valkey, keys: tuple[str, str], registration: Registration) -> None:
    *named, cut = registration
    await valkey.write("laurels_register", keys, (*named, cut) if cut else named)


async def remove(
    valkey: Valkey, keys: Sequence[str], header: RemoveHeader, journal: bytes, member: bytes
) -> int:
    """In how many of these windows the member was."""
    status, answer = await valkey.write("laurels_remove", keys, (_encode(header), journal, member))
    if status == b"version":
        raise DefinitionChanged(_version(answer))
    return int(answer)


async def fold(valkey: Valkey, keys: Sequence[str], header: FoldHeader) -> str:
    """The next cursor; "0" when the day is done."""
    status, answer = await valkey.write("laurels_fold", keys, (_encode(header),))
    if status == b"version":
        raise DefinitionChanged(_version(answer))
    return answer.decode()


async def _read(valkey: Valkey, function: str, keys: Sequence[str], args: Sequence[Value]) -> Reply:
    answer = await valkey.read(function, keys, args)
    if answer[0] == b"version":
        raise DefinitionChanged(_version(answer[1]))
    return answer


async def standing(
    valkey: Valkey, keys: Sequence[str], header: ReadHeader, members: Sequence[bytes]
) -> tuple[int, list[Stood | None]]:
    """How many entries there are, and each member's standing."""
    total, *found = await _read(valkey, "laurels_standing", keys, (_encode(header), *members))
    return total, [Stood(*each) if each else None for each in found]


async def count(
    valkey: Valkey, keys: Sequence[str], header: ReadHeader, places: Sequence[tuple[bytes, bytes]]
) -> tuple[int, list[Counted]]:
    """How many entries there are, and where entries at these places would stand."""
    flat = [part for place in places for part in place]
    total, *found = await _read(valkey, "laurels_count", keys, (_encode(header), *flat))
    return total, [Counted(*each) for each in found]


async def page(
    valkey: Valkey, keys: Sequence[str], header: PageHeader, rest: Sequence[Value] = ()
) -> PageReply | None:
    """A stretch of the window, best first; None when it is asked by a member who has no entry."""
    total, *answer = await _read(valkey, "laurels_page", keys, (_encode(header), *rest))
    if not answer:
        return None
    first, better, listed, metadata = answer
    members, places = listed[::2], listed[1::2]
    return PageReply(
        total, first, better, list(map(Listed, members, places, metadata or [b""] * len(members)))
    )


def _version(known: bytes) -> int | None:
    return int(known) if known else None
