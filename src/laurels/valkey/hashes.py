"""Commands on hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.valkey.command import Command, as_is, pairs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

    from laurels.valkey.client import Valkey, Value


def get(key: str, field: str) -> Command[bytes | None]:
    return Command(("HGET", key, field), as_is)


def get_many(key: str, fields: Iterable[Value]) -> Command[list[bytes | None]]:
    return Command(("HMGET", key, *fields), as_is)


def get_all(key: str) -> Command[dict[bytes, bytes]]:
    return Command(("HGETALL", key), lambda reply: dict(pairs(reply)))


def get_texts(key: str) -> Command[dict[str, str]]:
    """The whole hash, as text."""
    return Command(
        ("HGETALL", key), lambda reply: {name.decode(): value.decode() for name, value in pairs(reply)}
    )


def put(key: str, fields: Mapping[str, Value] | Mapping[bytes, Value]) -> Command[int]:
    """How many fields are new."""
    return Command(("HSET", key, *(word for pair in fields.items() for word in pair)), int)


def delete(key: str, fields: Iterable[Value]) -> Command[int]:
    return Command(("HDEL", key, *fields), int)


def length(key: str) -> Command[int]:
    return Command(("HLEN", key), int)


async def scan(valkey: Valkey, key: str, count: int) -> AsyncGenerator[list[tuple[bytes, bytes]]]:
    """Yields fields and values, some at a time, in no order; one may come twice."""
    async for listed in valkey.scan("HSCAN", key, count):
        yield pairs(listed)
