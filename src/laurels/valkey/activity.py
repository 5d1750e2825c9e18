"""Activity in Valkey: a typed stub for each function of `activity.lua`, and the plain reads beside them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.valkey.client import Reply, Valkey

_encode = msgspec.msgpack.Encoder().encode


class ActivityCall(NamedTuple):
    """One call for one shard of users."""

    keys: Sequence[str]
    message: Sequence[Any]
    """As `activity.lua` describes it."""


class AccrualReply(NamedTuple):
    """What became of a call: applied, or where the cursor stands instead; `` for none."""

    cursor: str | None = None
    changed: int = 0


class JoinedGroup(NamedTuple):
    cursor: str
    """The last entry that was applied."""
    entries: int
    """How many were."""


class GroupBacklog(NamedTuple):
    applied: int
    waiting: int
    oldest: str
    """The id of the oldest entry that waits; `` for none."""


async def accrue(valkey: Valkey, calls: Sequence[ActivityCall]) -> list[AccrualReply]:
    """Each call by itself; all of them at once, as durably as the deployment writes. One that is sent again
    changes nothing.
    """
    answers = await _call_all(valkey, "laurels_accrue", calls)
    return [
        AccrualReply(cursor=answer.decode()) if status == b"cursor" else AccrualReply(changed=int(answer))
        for status, answer in answers
    ]


async def release(valkey: Valkey, call: ActivityCall) -> bool:
    """Whether it was applied: not when what waited had been released before."""
    answer = await valkey.write("laurels_release", call.keys, (_encode(call.message),), valkey.durability)
    return answer[0] == b"ok"


async def unmark(valkey: Valkey, changed: str, marks: Sequence[tuple[str, int]]) -> int:
    """How many marks were removed: those that still have their number."""
    flat = [word for mark in marks for word in mark]
    return int(await valkey.write("laurels_unmark", (changed,), flat))


async def discard(
    valkey: Valkey, keys: tuple[str, str], stream: str, most: int, dead: Sequence[tuple[str, str, str]]
) -> int:
    """How many were kept that had not been before. `dead`: id, reason and payload of each."""
    flat = [word for each in dead for word in each]
    return int(await valkey.write("laurels_discard", keys, (stream, most, *flat)))


async def join(valkey: Valkey, stream: str, group: str) -> JoinedGroup | None:
    """None when there is no such stream."""
    answer = await valkey.write("laurels_join", (stream,), (group,))
    return JoinedGroup(answer[0].decode(), int(answer[1])) if answer else None


async def advance(valkey: Valkey, stream: str, group: str, moved: tuple[str, str, int]) -> bool:
    """Whether the group moved. `moved`: from which id to which, and over how many entries."""
    return bool(await valkey.write("laurels_advance", (stream,), (group, *moved)))


async def backlog(valkey: Valkey, stream: str, group: str) -> GroupBacklog:
    applied, waiting, oldest = await valkey.read("laurels_backlog", (stream,), (group,))
    return GroupBacklog(int(applied), int(waiting), oldest.decode())


async def attend(valkey: Valkey, workers: str, worker: str, milliseconds: int) -> list[str]:
    """Every worker heard of within that time, in order."""
    answer = await valkey.write("laurels_attend", (workers,), (worker, milliseconds))
    return sorted(name.decode() for name in answer)


async def _call_all(valkey: Valkey, function: str, calls: Sequence[ActivityCall]) -> list[Reply]:
    """Down one connection where one node has them all: whoever waits behind the last waits for all."""
    if valkey.is_cluster:
        return await asyncio.gather(*(_write(valkey, function, call) for call in calls))
    *some, last = calls
    answers = await valkey.commands(
        [("FCALL", function, len(call.keys), *call.keys, _encode(call.message)) for call in some]
    )
    return [*answers, await _write(valkey, function, last)]


async def _write(valkey: Valkey, function: str, call: ActivityCall) -> Reply:
    return await valkey.write(function, call.keys, (_encode(call.message),), valkey.durability)
