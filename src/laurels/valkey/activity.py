"""A typed stub for each function of `lua/activity.lua`."""

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


class GroupBacklog(NamedTuple):
    applied: int
    waiting: int
    oldest: str
    """The id of the oldest entry that waits; "" for none."""


async def accrue(valkey: Valkey, calls: Sequence[ActivityCall]) -> list[str | None]:
    """Sends all calls at once, as durably as the deployment writes. Sending a call again changes nothing.

    Returns None for each applied call, and the present cursor (`` for none) for each refused one.
    """
    answers = await _call_all(valkey, "laurels_accrue", calls)
    return [answer.decode() if status == b"cursor" else None for status, answer in answers]


async def release(valkey: Valkey, call: ActivityCall) -> bool:
    """Applies parked effects; False if they were released before."""
    return (await _write(valkey, "laurels_release", call))[0] == b"ok"


async def unmark(valkey: Valkey, changed: str, marks: Sequence[tuple[str, int]]) -> int:
    """Removes the marks that still have their number; returns how many."""
    flat = [word for mark in marks for word in mark]
    return int(await valkey.write("laurels_unmark", (changed,), flat))


async def discard(
    valkey: Valkey, keys: tuple[str, str], stream: str, most: int, dead: Sequence[tuple[str, str, str]]
) -> None:
    """Adds dead letters, unless they are there already. `dead`: id, reason and payload of each."""
    flat = [word for each in dead for word in each]
    await valkey.write("laurels_discard", keys, (stream, most, *flat))


async def join(valkey: Valkey, stream: str, group: str) -> str | None:
    """Makes the group if there is none; the id of the last applied entry, None without a stream."""
    answer = await valkey.write("laurels_join", (stream,), (group,))
    return answer[0].decode() if answer else None


async def advance(valkey: Valkey, stream: str, group: str, moved: tuple[str, str, int]) -> bool:
    """Whether the group moved. `moved`: from id, to id, number of entries between them."""
    return bool(await valkey.write("laurels_advance", (stream,), (group, *moved)))


async def backlog(valkey: Valkey, stream: str, group: str) -> GroupBacklog:
    applied, waiting, oldest = await valkey.read("laurels_backlog", (stream,), (group,))
    return GroupBacklog(int(applied), int(waiting), oldest.decode())


async def attend(valkey: Valkey, workers: str, worker: str, milliseconds: int) -> list[str]:
    """Notes a heartbeat; returns the workers with one within these milliseconds, sorted."""
    answer = await valkey.write("laurels_attend", (workers,), (worker, milliseconds))
    return sorted(name.decode() for name in answer)


async def _call_all(valkey: Valkey, function: str, calls: Sequence[ActivityCall]) -> list[Reply]:
    """Pipelines the calls on one node, so that waiting for the durability of the last covers all."""
    if valkey.is_cluster:
        return await asyncio.gather(*(_write(valkey, function, call) for call in calls))
    *some, last = calls
    answers = await valkey.commands(
        [("FCALL", function, len(call.keys), *call.keys, _encode(call.message)) for call in some]
    )
    return [*answers, await _write(valkey, function, last)]


async def _write(valkey: Valkey, function: str, call: ActivityCall) -> Reply:
    return await valkey.write(function, call.keys, (_encode(call.message),), valkey.durability)
