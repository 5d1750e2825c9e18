"""Commands on sorted sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.valkey.command import Command, pairs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from laurels.valkey.client import Reply, Valkey, Value


def cardinality(key: str) -> Command[int]:
    return Command(("ZCARD", key), int)


def add(key: str, member: Value, score: int) -> Command[int]:
    """How many members are new."""
    return Command(("ZADD", key, score, member), int)


def scores(key: str, members: Iterable[Value]) -> Command[list[float | None]]:
    return Command(("ZMSCORE", key, *members), _scores)


def remove(key: str, members: Iterable[Value]) -> Command[int]:
    return Command(("ZREM", key, *members), int)


def members_by_descending_score(key: str) -> Command[list[str]]:
    return Command(("ZREVRANGE", key, 0, -1), lambda reply: [each.decode() for each in reply])


def lowest_scores(key: str, count: int) -> Command[list[tuple[str, float]]]:
    """The members with the lowest scores, lowest first."""
    return Command(
        ("ZRANGE", key, 0, count - 1, "WITHSCORES"),
        lambda reply: [(member.decode(), score) for member, score in _scored(reply)],
    )


def up_to(key: str, highest: Value, skip: int = 0, count: int = -1) -> Command[list[tuple[str, int]]]:
    """The members with whole scores up to this one, lowest first, without the first `skip`."""
    return Command(
        ("ZRANGE", key, "-inf", highest, "BYSCORE", "LIMIT", skip, count, "WITHSCORES"),
        lambda reply: [(member.decode(), int(score)) for member, score in _scored(reply)],
    )


async def scan(valkey: Valkey, key: str, count: int) -> AsyncGenerator[list[tuple[bytes, float]]]:
    """Yields members and scores, some at a time, in no order; one may come twice."""
    async for listed in valkey.scan("ZSCAN", key, count):
        yield _scored(listed)


def _scored(reply: Reply) -> list[tuple[bytes, float]]:
    return [(member, float(score)) for member, score in pairs(reply)]


def _scores(reply: Reply) -> list[float | None]:
    return [None if score is None else float(score) for score in reply]
