"""Commands on lists."""

from __future__ import annotations

from laurels.valkey.command import Command


def first_texts(key: str, count: int) -> Command[list[str]]:
    return Command(("LRANGE", key, 0, count - 1), lambda reply: [each.decode() for each in reply])
