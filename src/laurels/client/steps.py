"""What a flow asks its driver to do, and what it gets back.

A flow is a generator without a client, a clock or an `await`: it yields steps and receives what came of them.
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
    """An answer, whatever it says."""

    status: int
    headers: Mapping[str, str]
    """Found by their names in lower case."""
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
    """Seconds: how long each of connecting, writing and the wait for more to read may take."""
    silence: float | None = None
    """Seconds: if given, the body of a good answer is left to `Read`, and may be silent for so long."""


@dataclass(frozen=True, slots=True)
class Read:
    """Gets the next bytes of the streamed body, none at its end; or `Lost`."""


@dataclass(frozen=True, slots=True)
class Take:
    """Gets a list of the next things that the caller gives, empty at the end."""

    most: int


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Give(Generic[Item]):
    """Hands one item to the caller, who may never ask for the next."""

    item: Item


Step: TypeAlias = Send | Read | Take | Pause
# What is sent in depends on the step; where it arrives it is given its type.
Flow: TypeAlias = Generator[Step, Any, Answer]
Stream: TypeAlias = Generator[Step | Give[Item], Any, None]
