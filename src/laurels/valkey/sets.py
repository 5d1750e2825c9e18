"""Commands on sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.valkey.command import Command

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from laurels.valkey.client import Reply, Valkey, Value


def add(key: str, members: Iterable[Value]) -> Command[int]:
    return Command(("SADD", key, *members), int)


def remove(key: str, members: Iterable[Value]) -> Command[int]:
    return Command(("SREM", key, *members), int)


def members(key: str) -> Command[set[str]]:
    return Command(("SMEMBERS", key), _texts)


def are_members(key: str, members: Iterable[Value]) -> Command[list[bool]]:
    return Command(("SMISMEMBER", key, *members), lambda reply: list(map(bool, reply)))


def random_members(key: str, count: int) -> Command[set[str]]:
    return Command(("SRANDMEMBER", key, count), _texts)


def cardinality(key: str) -> Command[int]:
    return Command(("SCARD", key), int)


def intersection_cardinality(one: str, other: str) -> Command[int]:
    """Of two sets in one slot."""
    return Command(("SINTERCARD", 2, one, other), int)


async def union_cardinalities(valkey: Valkey, pairs: Iterable[tuple[str, str]]) -> list[int]:
    """The size of the union of each pair of sets. The sets of a pair lie in one slot."""
    sizes = await valkey.run_all(
        command
        for one, other in pairs
        for command in (cardinality(one), cardinality(other), intersection_cardinality(one, other))
    )
    return [sizes[i] + sizes[i + 1] - sizes[i + 2] for i in range(0, len(sizes), 3)]


async def scan(valkey: Valkey, key: str, count: int) -> AsyncGenerator[set[str]]:
    """Yields members, some at a time, in no order; one may come twice."""
    async for listed in valkey.scan("SSCAN", key, count):
        yield _texts(listed)


def _texts(reply: Reply) -> set[str]:
    return {each.decode() for each in reply}
