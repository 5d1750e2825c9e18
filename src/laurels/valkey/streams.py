"""Commands on streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from redis import exceptions

from laurels.valkey.command import Command, pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laurels.valkey.client import Reply, Valkey, Value

    StreamEntry = tuple[bytes, dict[bytes, bytes]]
    """The id of an entry, and its fields."""

_encode = msgspec.msgpack.Encoder().encode


def stream_entries(reply: Reply) -> list[StreamEntry]:
    return [(name, dict(pairs(fields))) for name, fields in reply or ()]


def add(stream: str, fields: Mapping[str, Value]) -> Command[str]:
    """Returns the id that Valkey gives the entry."""
    return Command(("XADD", stream, "*", *(word for pair in fields.items() for word in pair)), bytes.decode)


def entries(
    stream: str, first: str = "-", last: str = "+", *, count: int | None = None
) -> Command[list[StreamEntry]]:
    """From one id to another, inclusive unless they begin with `(`."""
    return Command(("XRANGE", stream, first, last, *_at_most(count)), stream_entries)


def newest_entries(stream: str, count: int) -> Command[list[StreamEntry]]:
    """The newest first."""
    return Command(("XREVRANGE", stream, "+", "-", *_at_most(count)), stream_entries)


def length(stream: str) -> Command[int]:
    return Command(("XLEN", stream), int)


def delete(stream: str, entry: str | bytes) -> Command[bool]:
    """Whether the entry existed."""
    return Command(("XDEL", stream, entry), bool)


def trim_before(stream: str, entry: str) -> Command[int]:
    """Removes the entries before this id; returns how many."""
    return Command(("XTRIM", stream, "MINID", "=", entry), int)


async def last_id(valkey: Valkey, stream: str) -> str:
    """The id of the last entry that the stream ever had, trimmed or not; `0-0` for none."""
    try:
        described = await valkey.run(_description(stream))
    except exceptions.ResponseError as error:
        if "no such key" not in str(error):
            raise
        return "0-0"
    return described[b"last-generated-id"].decode()


async def last_number(valkey: Valkey, stream: str) -> int:
    """The number of the last entry that `append_numbered` added; 0 for none."""
    return int((await last_id(valkey, stream)).partition("-")[0])


async def append_numbered(
    valkey: Valkey, stream: str, entries: Sequence[tuple[int, Mapping[str, Value]]], most: int
) -> int:
    """Adds entries under their numbers, as durably as the deployment writes; returns the stream's last
    number.

    Skips entries whose number the stream has passed, so a sender may repeat all of them in order. Keeps about
    `most` entries.
    """
    numbered = [
        (number, [_text(word) for pair in fields.items() for word in pair]) for number, fields in entries
    ]
    return int(await valkey.write("laurels_number", (stream,), (most, _encode(numbered)), valkey.durability))


async def wait_for_entry(valkey: Valkey, stream: str, after: str, seconds: float) -> None:
    """Returns once the stream has an entry after this id, or after these seconds."""
    milliseconds = max(1, int(seconds * 1000))
    await valkey.command("XREAD", "COUNT", 1, "BLOCK", milliseconds, "STREAMS", stream, after, wait=seconds)


def _at_most(count: int | None) -> tuple[Value, ...]:
    return () if count is None else ("COUNT", count)


def _description(stream: str) -> Command[dict[bytes, bytes]]:
    return Command(("XINFO", "STREAM", stream), lambda reply: dict(pairs(reply)))


def _text(value: Value) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
