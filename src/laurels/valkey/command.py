"""A command as a value: its words, and how to parse its reply.

`Valkey.run` sends one command, `Valkey.run_all` many in few round trips. The modules `keyspace`, `strings`,
`hashes`, `lists`, `sets`, `sorted_sets`, `streams` and `server` make them, grouped as in Valkey's
documentation. They hold only commands that may be repeated without harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from laurels.valkey.client import Reply, Value

Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Command(Generic[Result_co]):
    words: tuple[Value, ...]
    parse: Callable[[Reply], Result_co]


def as_is(reply: Reply) -> Reply:
    return reply


def optional_texts(reply: Reply) -> list[str | None]:
    return [None if each is None else each.decode() for each in reply]


def pairs(reply: Reply) -> list[tuple[bytes, bytes]]:
    """Names and values of a reply: a map, a list of pairs, or a flat list."""
    if hasattr(reply, "items"):
        return list(reply.items())
    if reply and isinstance(reply[0], list | tuple):
        return [(name, value) for name, value in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))
