"""Commands on keys of any type."""

from __future__ import annotations

from laurels.valkey.command import Command


def exists(key: str) -> Command[bool]:
    return Command(("EXISTS", key), bool)


def kind(key: str) -> Command[str]:
    """The type of the key; `none` if it does not exist."""
    return Command(("TYPE", key), bytes.decode)


def expire(key: str, seconds: int, *, if_persistent: bool = False) -> Command[bool]:
    """`if_persistent`: only if the key has no expiry yet."""
    return Command(("EXPIRE", key, seconds, *(("NX",) if if_persistent else ())), bool)


def rename(key: str, to: str) -> Command[bool]:
    """Both lie in one slot."""
    return Command(("RENAME", key, to), bool)


def persist(key: str) -> Command[bool]:
    return Command(("PERSIST", key), bool)


def memory_usage(key: str) -> Command[int]:
    """In bytes."""
    return Command(("MEMORY", "USAGE", key), lambda size: size or 0)


def delete(key: str) -> Command[bool]:
    return Command(("DEL", key), bool)


def unlink(*keys: str) -> Command[int]:
    return Command(("UNLINK", *keys), int)
