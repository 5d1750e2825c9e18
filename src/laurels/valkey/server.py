"""Commands about the server itself, and scripts of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.valkey.command import Command, as_is, pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.valkey.client import Reply, Value


def ping() -> Command[bool]:
    return Command(("PING",), bool)


def setting(name: str) -> Command[str | None]:
    """Of CONFIG GET, which managed servers may refuse."""

    def parse(reply: Reply) -> str | None:
        value = dict(pairs(reply)).get(name.encode())
        return value.decode() if value else None

    return Command(("CONFIG", "GET", name), parse)


def evaluate(script: bytes, keys: Sequence[str], args: Sequence[Value]) -> Command[Reply]:
    return Command(("EVAL", script, len(keys), *keys, *args), as_is)
