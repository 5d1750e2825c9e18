"""Streams whose entries have ids of their own, so that sending them again is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis import exceptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.valkey.client import Valkey, Value


async def append_numbered(
    valkey: Valkey, stream: str, entries: Sequence[tuple[int, dict[str, Value]]], most: int
) -> int:
    """Adds entries in the order of their numbers; the number of the stream's last entry.

    One whose number the stream is past is there already: every sender sends all, in order. About `most`
    entries are kept.
    """
    try:
        await valkey.commands(
            [
                (
                    "XADD",
                    stream,
                    "MAXLEN",
                    "~",
                    most,
                    f"{number}-0",
                    *(word for pair in fields.items() for word in pair),
                )
                for number, fields in entries
            ]
        )
    except exceptions.ResponseError as error:
        if "equal or smaller" not in str(error):
            raise
    return await last_number(valkey, stream)


async def last_number(valkey: Valkey, stream: str) -> int:
    """0 for a stream that never had an entry."""
    return int((await valkey.newest(stream)).partition("-")[0])
