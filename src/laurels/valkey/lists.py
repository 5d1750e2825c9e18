"""Commands on lists."""

from __future__ import annotations

from laurels.valkey.command import Command


def first_texts(key: str, count: int) -> Command[list[str]]:
    return Command(("LRANGE", key, 0, count - 1), lambda reply: [each.decode() for each in reply])


def texts(key: str) -> Command[list[str]]:
    """The whole list."""
    return first_texts(key, 0)


def append(key: str, text: str) -> Command[int]:
    """Returns the length of the list."""
    return Command(("RPUSH", key, text), int)


def remove(key: str, text: str) -> Command[int]:
    """Removes all that are equal; returns how many."""
    return Command(("LREM", key, 0, text), int)
