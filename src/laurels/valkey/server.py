"""Commands about the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.valkey.command import Command, pairs

if TYPE_CHECKING:
    from laurels.valkey.client import Reply


def ping() -> Command[bool]:
    return Command(("PING",), bool)


def setting(name: str) -> Command[str | None]:
    """Of CONFIG GET, which managed servers may refuse."""

    def parse(reply: Reply) -> str | None:
        value = dict(pairs(reply)).get(name.encode())
        return value.decode() if value else None

    return Command(("CONFIG", "GET", name), parse)
