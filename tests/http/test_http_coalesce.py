"""Identical concurrent reads: asked once for all who wait, and never answered with what was before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from laurels.errors import NotFound
from laurels.http.coalesce import Coalescer

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx


class World:
    """What can be asked: which moment it is, once somebody lets it be answered."""

    def __init__(self) -> None:
        self.moment = 0
        self.asked: list[asyncio.Event] = []
        self.coalescer = Coalescer[int]()
        self.at_an_end: Callable[[], None] = lambda: None

    async def look(self) -> int:
        let = asyncio.Event()
        self.asked.append(let)
        moment = self.moment
        await let.wait()
        self.at_an_end()
        if moment < 0:
            raise NotFound("nothing was before the beginning")
        return moment

    async def ask(self, what: str = "moment") -> int:
        return await self.coalescer.ask(what, self.look)

    async def came(self, count: int) -> list[asyncio.Task[int]]:
        """So many more, who all ask now."""
        asking = [asyncio.create_task(self.ask()) for _ in range(count)]
        await self.all_did_what_they_can()
        return asking

    async def all_did_what_they_can(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_who_comes_alone_asks_at_once_and_leaves_nothing():
    world = World()
    (only,) = await world.came(1)
    world.asked[0].set()
    assert await only == 0
    world.moment = 1
    (another,) = await world.came(1)
    assert len(world.asked) == 2
    world.asked[1].set()
    assert await another == 1


async def test_who_comes_meanwhile_shares_the_next_question_and_hears_nothing_older_than_their_own():
    world = World()
    first = await world.came(1)
    world.moment = 1
    second = await world.came(5)
    assert len(world.asked) == 1
    world.asked[0].set()
    await asyncio.gather(*first)
    await world.all_did_what_they_can()
    assert len(world.asked) == 2
    world.moment = 2
    third = await world.came(3)
    world.asked[1].set()
    await world.all_did_what_they_can()
    world.asked[2].set()
    assert [await each for each in (*first, *second, *third)] == [0, *[1] * 5, *[2] * 3]
    assert len(world.asked) == 3


async def test_who_comes_between_two_questions_joins_the_one_that_has_not_begun():
    world = World()
    await world.came(1)
    second = await world.came(1)
    # It runs before the one that waits hears of the end.
    world.at_an_end = lambda: second.append(asyncio.create_task(world.ask()))
    world.asked[0].set()
    await world.all_did_what_they_can()
    world.at_an_end = lambda: None
    world.asked[1].set()
    assert [await each for each in second] == [0, 0]
    assert len(world.asked) == 2


async def test_a_failure_is_told_to_all_who_waited_and_to_nobody_else():
    world = World()
    first = await world.came(1)
    world.moment = -1
    second = await world.came(3)
    world.asked[0].set()
    await asyncio.gather(*first)
    await world.all_did_what_they_can()
    world.moment = 2
    third = await world.came(1)
    world.asked[1].set()
    for each in second:
        with pytest.raises(NotFound):
            await each
    await world.all_did_what_they_can()
    world.asked[2].set()
    assert await third[0] == 2


async def test_who_leaves_does_not_take_the_answer_from_the_others():
    world = World()
    first = await world.came(1)
    second = await world.came(3)
    first[0].cancel()
    second[0].cancel()
    await world.all_did_what_they_can()
    world.asked[-1].set()
    assert [await each for each in second[1:]] == [0, 0]


async def test_other_questions_do_not_wait():
    world = World()
    await world.came(2)
    other = asyncio.create_task(world.ask("another"))
    await world.all_did_what_they_can()
    assert len(world.asked) == 2
    world.asked[1].set()
    assert await other == 0
    world.asked[0].set()
    await world.all_did_what_they_can()
    world.asked[-1].set()


async def test_everybody_reads_their_own_writes_while_all_read_the_same_page(
    client: httpx.AsyncClient, board: str
):
    async def write_and_read(number: int) -> None:
        for round_ in range(5):
            score = {"member": f"m{number}", "score": 10 * round_ + 1}
            assert (await client.post(f"{board}/scores", json=score)).is_success
            page = (await client.get(f"{board}/entries")).json()
            assert {entry["member"]: entry["score"] for entry in page["entries"]}[f"m{number}"] == score[
                "score"
            ]

    await asyncio.gather(*map(write_and_read, range(40)))


async def test_addresses_that_differ_only_in_what_is_encoded_are_not_alike(
    client: httpx.AsyncClient, board: str
):
    """`a%2Faround` is a member, `a/around` its neighbours: decoded, both are the same."""
    for member in ("a%2Faround", "a"):
        await client.post(f"{board}/scores", json={"member": member.replace("%2F", "/"), "score": 5})
    paths = [f"{board}/entries/a%2Faround", f"{board}/entries/a/around"] * 10
    answers = await asyncio.gather(*map(client.get, paths))
    assert ["entries" in answer.json() for answer in answers] == [False, True] * 10
