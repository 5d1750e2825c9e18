from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from topologies import on_node

from laurels.errors import NotFound
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from raw_valkey import RawValkey

    from laurels.clock import FixedClock
    from laurels.sync import Laurels

NewBoard = Callable[..., str]
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"order": "asc"},
    {"score": "int64"},
    {"ties": "earliest"},
    {"ties": "member", "order": "asc"},
]
# On a cluster the shards lie on several primaries, which makes no difference to how entries are ordered.
PLACES = [*(("node", layout) for layout in LAYOUTS), ("cluster", LAYOUTS[0])]


@pytest.fixture
def twins(
    request: pytest.FixtureRequest, engine: Laurels, new_board: NewBoard, clock: FixedClock
) -> tuple[str, str]:
    """The same 60 entries, many of them equal, on one shard and on seven."""
    chance = random.Random(11)  # noqa: S311  # no secret
    one, seven = (new_board(aggregate="last", shards=shards, **request.param) for shards in (1, 7))
    for first in range(0, 60, 10):
        batch = [Submission(f"m{number}", chance.randint(0, 15)) for number in range(first, first + 10)]
        for board in (one, seven):
            assert engine.submit_many(board, batch).accepted == 10
        clock.now += 1
    return one, seven


@pytest.mark.parametrize(("valkey_url", "twins"), PLACES, indirect=True)
class TestSevenShardsAreAsOne:
    def test_a_submissions_ranks_are_global(self, engine: Laurels, twins: tuple[str, str]):
        chance = random.Random(5)  # noqa: S311  # no secret
        for _ in range(25):
            member, score = f"m{chance.randint(0, 70)}", chance.randint(0, 20)
            one, seven = (engine.submit(board, member, score) for board in twins)
            for told in ("score", "previous_score", "rank", "previous_rank", "applied"):
                assert getattr(one, told) == getattr(seven, told)

    def test_every_rank_can_be_jumped_to(self, engine: Laurels, twins: tuple[str, str]):
        for rank in range(1, 63):
            one, seven = (engine.page(board, rank=rank, limit=5) for board in twins)
            assert (one.total, one.entries) == (seven.total, seven.entries)
            assert (one.next is None, one.previous is None) == (seven.next is None, seven.previous is None)

    @pytest.mark.parametrize("start", ["top", "bottom"])
    def test_pages_go_both_ways(self, engine: Laurels, twins: tuple[str, str], start: Any):  # noqa: ANN401  # a literal
        one, seven = (engine.page(board, limit=9, start=start) for board in twins)
        while True:
            assert one.entries == seven.entries
            assert (one.next is None) == (seven.next is None)
            if one.next is None or seven.next is None:
                break
            one, seven = (
                engine.page(board, limit=9, cursor=cursor)
                for board, cursor in zip(twins, (one.next, seven.next), strict=True)
            )
        while one.previous and seven.previous:
            one, seven = (
                engine.page(board, limit=9, cursor=cursor)
                for board, cursor in zip(twins, (one.previous, seven.previous), strict=True)
            )
            assert one.entries == seven.entries
        assert one.previous == seven.previous

    def test_standings_and_neighbourhoods_agree(self, engine: Laurels, twins: tuple[str, str]):
        for number in range(60):
            one, seven = (engine.standing(board, f"m{number}") for board in twins)
            assert one == seven
        for member in ("m0", "m17", "m59"):
            for above, below in ((0, 0), (3, 2), (100, 100)):
                pages = [engine.around(board, member, above, below) for board in twins]
                assert pages[0].entries == pages[1].entries
        for board in twins:
            with pytest.raises(NotFound):
                engine.around(board, "nobody")

    def test_percentiles_distributions_and_friends_agree(self, engine: Laurels, twins: tuple[str, str]):
        one, seven = twins
        for share in (0, 0.01, 0.07, 0.25, 0.5, 0.99, 1):
            assert engine.percentile(one, share) == engine.percentile(seven, share)
        for buckets in (1, 4, 20):
            assert engine.distribution(one, buckets) == engine.distribution(seven, buckets)
        friends = [f"m{number}" for number in range(0, 90, 3)]
        assert engine.among(one, friends) == engine.among(seven, friends)

    def test_removal_reaches_the_right_shard(self, engine: Laurels, twins: tuple[str, str]):
        for board in twins:
            assert engine.remove(board, "m7")
            assert not engine.remove(board, "m7")
        one, seven = (engine.page(board) for board in twins)
        assert one.total == 59
        assert one.entries == seven.entries


@on_node
def test_members_are_spread_and_a_drop_leaves_none(engine: Laurels, new_board: NewBoard, raw: RawValkey):
    board = new_board(shards=7, windows=[{"period": "daily"}, {"period": "all_time"}])
    engine.submit_many(board, [Submission(f"m{number}", number) for number in range(700)])
    sizes = [raw.client.zcard(f"lb:{{{board}/{shard}}}:all_time") for shard in range(7)]
    assert sum(sizes) == 700
    assert min(sizes) > 50
    assert [window.entries for window in engine.windows(board)] == [700, 700]
    engine.drop(board, allow_drop="all")
    assert raw.keys(board) == []
