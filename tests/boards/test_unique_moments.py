"""Submissions that arrive together rank in the order of their arrival."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from laurels import Laurels as AsyncLaurels
from laurels.boards.unique_moments import REMEMBERED, UniqueMoments
from laurels.clock import FixedClock
from laurels.moments import SECOND, datetime_of
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Callable

    from laurels.embedded import Endpoints
    from laurels.sync import Laurels

MEMBERS = ["m", "c", "z", "a", "k", "b"]


def test_a_moment_that_is_taken_gives_the_next_free_one() -> None:
    moments = UniqueMoments()
    assert [moments.next_free(each) for each in (7, 7, 8, 7, 20)] == [7, 8, 9, 10, 20]


def test_a_stated_moment_stays_in_its_second() -> None:
    moments = UniqueMoments()
    last = SECOND - 2
    assert [moments.next_stated(last) for _ in range(4)] == [last, last + 1, last, last]


def test_a_stated_moment_is_remembered_for_as_long_as_it_is_used() -> None:
    moments = UniqueMoments()
    taken = [moments.next_stated(0) for _ in range(3 * REMEMBERED)]
    assert taken == list(range(3 * REMEMBERED))


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("late", [None, timedelta(minutes=1)])
def test_ties_of_a_batch_go_by_arrival(
    engine: Laurels, new_board: Callable[..., str], clock: FixedClock, late: timedelta | None, shards: int
) -> None:
    board = new_board(ties="earliest", shards=shards)
    at = None if late is None else datetime_of(clock.now) - late
    engine.submit_many(board, [Submission(member, 5, at=at) for member in MEMBERS])
    assert _listed(engine, board) == MEMBERS


def test_a_batch_of_several_calls_ties_by_arrival(engine: Laurels, new_board: Callable[..., str]) -> None:
    board = new_board(ties="earliest")
    members = [f"{number * 7919 % 1000:03}" for number in range(1000)]
    engine.submit_many(board, [Submission(member, 5) for member in members])
    assert [entry.member for entry in engine.page(board, limit=1000).entries] == members


async def test_ties_of_single_scores_sent_together_go_by_arrival(endpoints: Endpoints) -> None:
    async with AsyncLaurels(
        valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=FixedClock(10**15)
    ) as laurels:
        await laurels.define("arrivals/together", {"ties": "earliest"})
        await asyncio.gather(*(laurels.submit("arrivals/together", member, 5) for member in MEMBERS))
        assert [entry.member for entry in (await laurels.page("arrivals/together")).entries] == MEMBERS
        await laurels.drop("arrivals/together", allow_drop="all")


def test_a_fed_board_ties_by_arrival_too(engine: Laurels, new_board: Callable[..., str]) -> None:
    fed = new_board(ties="earliest")
    feeder = new_board(feeds=[fed])
    engine.submit_many(feeder, [Submission(member, 5) for member in MEMBERS])
    assert _listed(engine, fed) == MEMBERS


def _listed(engine: Laurels, board: str) -> list[str]:
    return [entry.member for entry in engine.page(board).entries]
