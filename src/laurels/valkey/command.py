"""A command of Valkey as a value: its words, and what its reply means.

`Valkey.run` sends one, `Valkey.run_all` sends many in as few round trips as possible. The modules beside this
one make them: `keyspace`, `strings`, `hashes`, `lists`, `sets`, `sorted_sets`, `streams` and `server`, as
Valkey's own documentation groups its commands. Only commands whose repetition changes nothing belong there.
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
    """A map, the pairs of a map, or a flat list of names and values."""
    if hasattr(reply, "items"):
        return list(reply.items())
    if reply and isinstance(reply[0], list | tuple):
        return [(name, value) for name, value in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))
