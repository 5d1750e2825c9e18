"""The five use cases of the index: their numbers are those that a plain sort of their records gives."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import defaultdict
from contextlib import AsyncExitStack
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from cli_processes import environment
from places import fast_place, folder_that_anybody_may_pass
from rich.console import Console
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from examples.index import activity, contest, game, regional, streamers
from examples.index.place import Place, on
from examples.index.play import EXAMPLES, main
from laurels.index import Leaderboard, RankedList, fuse, leaderboard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from laurels.embedded import Endpoints

ROOT = Path(__file__).parents[2]


def ranked(scores: Mapping[Any, int]) -> list[tuple[Any, int]]:
    """Best first, ties by key."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


@pytest.fixture(scope="module")
async def places(own_endpoints: Endpoints) -> AsyncGenerator[dict[str, Place]]:
    """Every example, played; each on a clock of its own, which stands where the example ends."""
    async with AsyncExitStack() as stack:
        made: dict[str, Place] = {}
        for name, example in EXAMPLES.items():
            place = on(example, own_endpoints.valkey_url, own_endpoints.postgres_url)
            made[name] = await stack.enter_async_context(place)
            await example.play(made[name])
        yield made


@pytest.mark.usefixtures("places")
class TestGame:
    def best(self, day: int) -> dict[str, int]:
        """The best score of each player on a day of January 2024; of who plays later, none."""
        last = {played.player: played.at.day for played in game.games()}
        best: dict[str, int] = {}
        for played in game.games():
            if played.at.day == day == last[played.player]:
                best[played.player] = max(played.score, best.get(played.player, 0))
        return best

    async def test_the_ten_best_of_today(self):
        expected = ranked(self.best(28))
        found = await leaderboard(game.GameScore).top(10)
        assert [(entry.item.player, entry.score) for entry in found] == expected[:10]
        assert [entry.rank for entry in found] == list(range(1, 11))

    async def test_my_rank_and_that_of_everybody_else(self):
        today = leaderboard(game.GameScore)
        expected = {player: rank for rank, (player, _) in enumerate(ranked(self.best(28)), start=1)}
        assert game.ME in expected
        assert {player: await today.rank(player) for player in expected} == expected
        assert await today.rank("nobody") is None
        assert await today.count() == len(expected)

    async def test_the_windows_are_numbered_as_documented(self):
        windows = await leaderboard(game.GameScore).windows()
        assert [window.id for window in windows] == [19750, 19749]
        assert windows[1].entries == len(self.best(27)) > 0


@pytest.mark.usefixtures("places")
class TestRegional:
    def scores(self, region: str | None = None, city: str | None = None) -> dict[str, int]:
        """After Osaka has become Tokyo."""
        return {
            row["player"]: row["score"]
            for row in regional.scores()
            if row["region"] is not None
            and region in {None, row["region"]}
            and city in {None, "tokyo" if row["city"] == "osaka" else row["city"]}
        }

    @pytest.mark.parametrize("group", [(), ("asia",), ("europe",), ("asia", "tokyo"), ("americas", "lima")])
    async def test_each_region_and_city_is_ranked_by_itself(self, group: tuple[str, ...]):
        expected = ranked(self.scores(*group))
        ranking = leaderboard(regional.RegionalScore).group(*group)
        found = await ranking.top(1000)
        assert [(entry.item.player, entry.score) for entry in found] == expected
        assert [entry.item.player for entry in await ranking.bottom(1000)] == [
            key for key, _ in expected[::-1]
        ]

    async def test_nobody_is_left_in_osaka(self):
        assert await leaderboard(regional.RegionalScore).group("asia", "osaka").count() == 0
        assert (
            self.scores("asia", "tokyo").items()
            > {row["player"]: row["score"] for row in regional.scores() if row["city"] == "osaka"}.items()
        )

    async def test_player_without_a_region_is_not_ranked(self):
        silent = [row["player"] for row in regional.scores() if row["region"] is None]
        assert silent
        ranks = [await leaderboard(regional.RegionalScore).rank(player) for player in silent]
        assert set(ranks) == {None}


@pytest.mark.usefixtures("places")
class TestContest:
    def weeks(self) -> list[dict[str, int]]:
        """The points of each user, week by week, the newest first."""
        weeks: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for day in contest.days():
            for user, points in contest.points_of(day).items():
                weeks[contest.week_of(day)][user] += points
        return [weeks[week] for week in sorted(weeks, reverse=True)]

    async def test_this_week_and_those_before(self):
        ranking = leaderboard(contest.ContestEntry)
        windows = await ranking.windows()
        assert len(windows) == len(self.weeks()) == 4
        for window, points in zip(windows, self.weeks(), strict=True):
            found = await ranking.window(window).top(100)
            assert {entry.item.user: entry.score for entry in found} == points
            assert [entry.score for entry in found] == sorted(points.values(), reverse=True)

    async def test_last_weeks_results_are_final(self):
        ranking = leaderboard(contest.ContestEntry)
        this, last = (await ranking.windows())[:2]
        assert last.ends_at == this.starts_at
        assert this.starts_at is not None
        assert this.starts_at <= contest.NOW
        winner = (await ranking.window(last).top(1))[0]
        assert winner.score == max(self.weeks()[1].values())


@pytest.mark.usefixtures("places")
class TestStreamers:
    def by_viewers(self) -> list[int]:
        rows = streamers.streamers()
        return [key for key, _ in ranked({row["id"]: row["viewers"] for row in rows})]

    def likeness(self) -> dict[int, float]:
        wanted = streamers.interest()
        found: dict[int, float] = {}
        for row in streamers.streamers():
            product = sum(one * two for one, two in zip(row["embedding"], wanted, strict=True))
            found[row["id"]] = product / math.hypot(*row["embedding"]) / math.hypot(*wanted)
        return found

    async def test_popular_or_alike_by_the_hand_formula(self):
        found = await streamers.popular_and_alike()
        assert [each.rank for each in found] == list(range(1, 11))
        popular, likeness = self.by_viewers(), self.likeness()
        for each in found:
            viewers, alike = each.parts
            expected = sum(1 / (60 + part.rank) for part in each.parts if part)
            assert math.isclose(each.score, expected, rel_tol=1e-12)
            assert viewers is None or popular[viewers.rank - 1] == each.item.id
            assert (viewers is None) == (each.item.id not in popular[:100])
            assert alike is None or alike.score == pytest.approx(likeness[each.item.id], abs=1e-5)
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)

    async def test_alike_among_the_popular_is_exact(self):
        found = await streamers.alike_among_the_popular()
        likeness = self.likeness()
        nearest = sorted(self.by_viewers()[:100], key=lambda key: -likeness[key])[:10]
        by_likeness = sorted(found, key=lambda each: each.parts[1].rank if each.parts[1] else 0)
        assert [each.item.id for each in by_likeness] == nearest
        assert {each.item.topic for each in found} <= set(streamers.LIKES)

    async def test_the_line_of_the_contract_finds_streamers(self, places: dict[str, Place]):
        popular = await fuse(Leaderboard(streamers.Streamer.viewers).top(3)).rrf()
        assert [each.item.id for each in popular] == self.by_viewers()[:3]
        async with AsyncSession(places["streamers"].engine) as session:
            followed = (await session.scalars(select(streamers.Streamer.id).limit(5))).all()
        own = await fuse(RankedList(followed, of=streamers.Streamer))
        assert [each.item.id for each in own] == list(followed)


@pytest.mark.usefixtures("places")
class TestActivity:
    async def test_each_of_the_last_24_hours_is_as_it_was(self):
        ranking = leaderboard(activity.UserActivity)
        windows = await ranking.windows()
        hours = [activity.BEGIN + number * activity.HOUR for number in range(activity.HOURS)][::-1][:24]
        assert [window.starts_at for window in windows] == hours
        for window, hour in zip(windows, hours, strict=True):
            found = await ranking.window(window).entries(50)
            assert [(entry.key, entry.score) for entry in found] == ranked(activity.actions_of(hour))[:50]
            assert window.entries == len(activity.actions_of(hour))

    async def test_the_most_active_of_this_hour_are_records(self):
        expected = ranked(activity.actions_of(activity.BEGIN + (activity.HOURS - 1) * activity.HOUR))
        found = await leaderboard(activity.UserActivity).top(50)
        assert [(entry.item.user, entry.item.actions) for entry in found] == expected[:50]


@pytest.mark.parametrize(
    ("name", "shown"),
    {
        "game": f"{game.ME} is #",
        "regional": "#32 in asia",
        "contest": "Last week, from 16 October",
        "streamers": "Popular, and about chess and rockets",
        "activity": "24 hours can be asked for",
    }.items(),
)
@pytest.mark.usefixtures("places")
async def test_each_example_shows_tables(name: str, shown: str):
    printed = StringIO()
    Console(width=200, file=printed).print(*await EXAMPLES[name].tables())
    assert shown in " ".join(printed.getvalue().split())


def test_script_plays_the_named_examples():
    with folder_that_anybody_may_pass(fast_place()) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "examples.index.play", "regional"],
            cwd=ROOT,
            env={**environment(), "TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "Tokyo today" in done.stdout
    assert "Today's best" not in done.stdout


def test_an_example_that_there_is_not_is_named():
    with pytest.raises(typer.BadParameter, match="golf: there are game, regional, contest"):
        main(["golf"])
