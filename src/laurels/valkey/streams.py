"""Streams whose entries have ids of their own, so that sending them again adds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.valkey import activity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.valkey.client import Valkey, Value


async def append_numbered(
    valkey: Valkey, stream: str, entries: Sequence[tuple[int, dict[str, Value]]], most: int
) -> int:
    """Adds entries in the order of their numbers, as durably as the deployment writes; the number of the
    stream's last entry.

    One whose number the stream is past is there already: every sender sends all, in order. About `most`
    entries are kept.
    """
    flat = [(number, [_word(word) for pair in fields.items() for word in pair]) for number, fields in entries]
    return await activity.number(valkey, stream, most, flat)


async def last_number(valkey: Valkey, stream: str) -> int:
    """0 for a stream that never had an entry."""
    return int((await valkey.newest(stream)).partition("-")[0])


def _word(value: Value) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
