"""What a flow asks its driver to do, and what it gets back. Pure.

A flow is a generator without a connection, a clock or an `await`: it yields steps and receives their results.
A driver performs the steps, blocking or awaiting; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

Answer = TypeVar("Answer")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    """Percent-encoded, with its query; from the address of the server on."""
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of any status."""

    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer, or not all of it: the connection could not be made, broke, or was silent for too long."""

    why: str


@dataclass(frozen=True, slots=True)
class Send:
    """Sends the request; gets a `Reply` or `Lost`."""

    request: Request
    timeout: float
    """Seconds that connecting, writing, or waiting for more to read may each take."""
    silence: float | None = None
    """Seconds without a byte that end a streamed body. If given, `Read` gets the body of a good answer."""


@dataclass(frozen=True, slots=True)
class Read:
    """Gets the next bytes of the streamed body, `b""` at its end; or `Lost`."""


@dataclass(frozen=True, slots=True)
class Take:
    """Gets a list of the next items that the caller gives, empty at the end."""

    items: Any
    """An iterator; an async one only for `AsyncClient`."""
    most: int


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Give(Generic[Item]):
    """Hands one item to the caller, who may stop there."""

    item: Item


Step: TypeAlias = Send | Read | Take | Pause
# The type of what a flow receives depends on the step; the flow states it where it receives it.
Flow: TypeAlias = Generator[Step, Any, Answer]
Stream: TypeAlias = Generator[Step | Give[Item], Any, None]


def giving(flow: Flow[Answer]) -> Stream[Answer]:
    """The flow as a stream of one item: its answer."""
    yield Give((yield from flow))
