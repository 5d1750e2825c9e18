"""Framedle as its leaderboard architecture says: names, lifetimes, sums, ranks and snapshots."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from sqlalchemy import NullPool, create_engine, text

from examples.framedle import play as framedle
from examples.stage import opened
from laurels.access.store.api_keys import EVERY_PROJECT, SCOPES
from laurels.cli.boards_file import read_boards
from laurels.errors import Conflict, NotFound
from laurels.http.app import create_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from raw_valkey import RawValkey

    from examples.framedle.play import Duel, Play
    from examples.stage import Stage
    from laurels.embedded import Endpoints
    from laurels.engine import Laurels
    from laurels.scores.results import Entry, Friend
    from laurels.scores.submission import Submission

DAY = timedelta(days=1)
FRAME = "framedle/daily_frame"
FRAME_KEY = "lb:daily_frame:2025-02-22"
WEEKS = {
    f"2025-W{week:02}": datetime.fromisocalendar(2025, week, 1).replace(tzinfo=UTC) for week in range(6, 10)
}
# Real seconds that may pass between a write and the look at its expiry, on a busy machine.
SLACK = timedelta(seconds=60)

Scores = dict[str, float]


@dataclass
class Month:
    """The four weeks, played once, and what was seen on the way."""

    stage: Stage
    raw: RawValkey
    expiry: dict[str, datetime | None] = field(default_factory=dict[str, datetime | None])
    """When each key will be gone, by the clock of the play; None: never. Seen after its first write."""
    sums: list[tuple[datetime, str, Scores, Scores]] = field(
        default_factory=list[tuple[datetime, str, Scores, Scores]]
    )
    """At each moment, for each mode and for a country: the week as it is, and the union of its days."""

    @property
    def laurels(self) -> Laurels:
        return self.stage.laurels

    def look(self, now: datetime) -> None:
        for key in windows(self.raw):
            if key not in self.expiry:
                left = self.raw.client.pttl(key)
                self.expiry[key] = None if left == -1 else now + timedelta(milliseconds=left)
        for mode in framedle.MODES:
            for scope in ("", ":country:BR"):
                key = week_key(mode, now, scope)
                self.sums.append((now, key, scores(self.raw, key), union(self.raw, mode, now, scope)))


def windows(raw: RawValkey) -> list[str]:
    """Every key but those that a board, or Laurels, has for itself."""
    return [key.decode() for key in raw.keys("") if b"{" not in key and not key.startswith(b"laurels:")]


def scores(raw: RawValkey, key: str) -> Scores:
    return {member.decode(): score for member, score in raw.client.zrange(key, 0, -1, withscores=True)}


def best_first(raw: RawValkey, key: str, start: int, end: int) -> list[tuple[str, float]]:
    listed = raw.client.zrevrange(key, start, end, withscores=True)
    return [(member.decode(), score) for member, score in listed]


def week_key(mode: str, now: datetime, scope: str = "") -> str:
    year, week, _ = now.isocalendar()
    return f"lb:{mode}:week:{year}-W{week:02}{scope}"


def union(raw: RawValkey, mode: str, now: datetime, scope: str = "") -> Scores:
    """The document's own way: ZUNIONSTORE of the week's days with AGGREGATE SUM, into another key."""
    monday = now - now.weekday() * DAY
    days = [f"lb:{mode}:{monday + number * DAY:%Y-%m-%d}{scope}" for number in range(7)]
    raw.client.zunionstore("{union}", days, aggregate="SUM")
    united = scores(raw, "{union}")
    raw.client.delete("{union}")
    return united


def pairs(entries: list[Entry] | list[Friend]) -> list[tuple[str, float]]:
    return [(entry.member, entry.score) for entry in entries]


@pytest.fixture(scope="module")
async def played(own_endpoints: Endpoints, raw: RawValkey) -> AsyncGenerator[Month]:
    async with opened(
        framedle.BEGIN, valkey_url=own_endpoints.valkey_url, postgres_url=own_endpoints.postgres_url
    ) as stage:
        month = Month(stage, raw)
        async for now in framedle.play(stage):
            month.look(now)
        yield month


@pytest.fixture
def month(played: Month) -> Month:
    """When the four weeks are over."""
    played.stage.turn_to(framedle.END + timedelta(seconds=10))
    return played


@pytest.fixture
def evening(played: Month) -> Month:
    """Late on 22 February: what was played since is not of that day or of its week's days before."""
    played.stage.turn_to(framedle.EVENING)
    return played


@pytest.fixture
async def client(month: Month) -> AsyncGenerator[httpx.AsyncClient]:
    _, key = await month.laurels.keys.create(EVERY_PROJECT, SCOPES)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(month.laurels)),
        base_url="http://laurels.test/v1/projects/framedle/boards",
        headers={"Authorization": f"Bearer {key}"},
    ) as client:
        yield client


@pytest.fixture(scope="module")
def plays() -> dict[datetime, list[Play]]:
    days = (framedle.BEGIN + number * DAY for number in range(framedle.DAYS))
    return {day: framedle.plays_of(day) for day in days}


def counted(mode: str, plays: list[Play]) -> Scores:
    """The first score of each on a day, or the best where one may try again."""
    found: Scores = {}
    for play in (each for each in plays if each.mode == mode):
        before = found.get(play.player.name, float(play.score))
        found[play.player.name] = max(before, play.score) if mode == "speed_round" else before
    return found


class TestKeys:
    @pytest.mark.parametrize(
        "key",
        [
            "lb:daily_frame:2025-02-22",
            "lb:daily_frame:week:2025-W08",
            "lb:alltime:xp",
            "lb:daily_frame:2025-02-22:country:BR",
            "lb:duels:elo",
        ],
    )
    def test_have_the_documented_names_and_are_plain_sorted_sets(self, month: Month, key: str):
        assert month.raw.client.type(key) == b"zset"
        assert month.raw.client.zcard(key) > 0

    def test_are_those_of_the_convention_and_no_others(self, month: Month, plays: dict[datetime, list[Play]]):
        expected = {"lb:alltime:xp", "lb:duels:elo"}
        for day, played in plays.items():
            for play in played:
                for key in (f"lb:{play.mode}:{day:%Y-%m-%d}", week_key(play.mode, day)):
                    expected |= {key, f"{key}:country:{play.player.country}"}
        assert set(windows(month.raw)) == expected

    @pytest.mark.parametrize("mode", framedle.MODES)
    def test_hold_one_play_a_day_or_the_best_of_many(
        self, month: Month, plays: dict[datetime, list[Play]], mode: str
    ):
        for day, played in plays.items():
            key = f"lb:{mode}:{day:%Y-%m-%d}"
            assert scores(month.raw, key) == counted(mode, played)
            brazil = counted(mode, [play for play in played if play.player.country == "BR"])
            assert scores(month.raw, f"{key}:country:BR") == brazil

    def test_hold_the_sum_of_everything_as_all_time_xp(self, month: Month, plays: dict[datetime, list[Play]]):
        total: dict[str, float] = defaultdict(float)
        for played in plays.values():
            for play in played:
                total[play.player.name] += play.score
        assert scores(month.raw, "lb:alltime:xp") == total


class TestTheBoards:
    @pytest.mark.usefixtures("month")
    def test_are_what_laurels_apply_makes_of_the_file(self, applied: Callable[..., dict[str, str]]):
        kinds = applied(framedle.BOARDS)
        assert kinds.keys() == {f"framedle/{name}" for name in (*framedle.MODES, "xp", "duels")}
        assert set(kinds.values()) == {"unchanged"}

    async def test_that_are_there_already_are_left_alone(self, month: Month):
        with pytest.raises(Conflict, match="already"):
            await month.stage.apply(framedle.BOARDS)


class TestLifetimes:
    def test_of_days_and_their_countries_are_7_days_from_the_days_end(self, month: Month):
        days = {key: key.split(":")[2] for key in month.expiry if key.split(":")[2].startswith("2025-")}
        assert len(set(days.values())) == framedle.DAYS
        for key, day in days.items():
            ends = datetime.fromisoformat(f"{day}T00:00:00Z") + DAY
            assert close(month.expiry[key], ends + 7 * DAY), key

    def test_of_weeks_are_30_days_from_the_weeks_end(self, month: Month):
        weeks = {key: key.split(":")[3] for key in month.expiry if ":week:" in key}
        assert set(weeks.values()) == WEEKS.keys()
        for key, week in weeks.items():
            assert close(month.expiry[key], WEEKS[week] + 37 * DAY), key

    def test_are_never_shorter_than_documented(self, month: Month):
        """EXPIRE 7 days at each write: the last play of a day may come in its last second."""
        seconds = 7 * 24 * 60 * 60
        expiry = month.expiry[FRAME_KEY]
        assert expiry is not None
        assert expiry - framedle.EVENING >= timedelta(seconds=seconds) - SLACK

    @pytest.mark.parametrize("key", ["lb:alltime:xp", "lb:duels:elo"])
    def test_of_xp_and_elo_have_no_end(self, month: Month, key: str):
        assert month.raw.client.ttl(key) == -1
        assert month.expiry[key] is None

    async def test_end_for_readers_at_the_same_moment(self, played: Month):
        ends = framedle.THE_DAY + 8 * DAY
        played.stage.turn_to(ends - timedelta(microseconds=1))
        assert (await played.laurels.page(FRAME, slot="2025-02-22")).total > 0
        played.stage.turn_to(ends)
        with pytest.raises(NotFound, match="no longer kept"):
            await played.laurels.page(FRAME, slot="2025-02-22")


def close(moment: datetime | None, expected: datetime) -> bool:
    return moment is not None and expected - SLACK <= moment <= expected + timedelta(seconds=1)


class TestTheWeeklyAggregate:
    def test_is_the_union_of_the_days_with_aggregate_sum_at_every_moment(self, month: Month):
        assert len(month.sums) == framedle.DAYS * 5 * len(framedle.MODES) * 2
        assert sum(bool(week) for _, _, week, _ in month.sums) > len(month.sums) / 2
        assert [(now, key) for now, key, week, days in month.sums if week != days] == []

    def test_grows_during_the_week(self, month: Month):
        totals = [
            sum(week.values()) for _, key, week, _ in month.sums if key == "lb:daily_frame:week:2025-W08"
        ]
        assert all(earlier <= later for earlier, later in pairwise(totals))
        assert len(set(totals)) == 1 + 7 * 4  # none yet, and then more every six hours

    async def test_holds_after_every_single_submission_also_of_the_day_before(self, month: Month):
        """A mode of its own, from Monday to Sunday; every seventh play is told of only on the next day."""
        definition = read_boards(framedle.BOARDS)[FRAME].model_copy(update={"feeds": ()})
        monday, board = framedle.END, "sums/one_week"
        await month.laurels.define(board, definition)
        try:
            for number in range(8):
                midnight = monday + number * DAY
                late = (
                    [play.submission for play in framedle.plays_of(midnight - DAY)[:60:7]] if number else []
                )
                own = [
                    play.submission
                    for index, play in enumerate(framedle.plays_of(midnight)[:60])
                    if index % 7 and number < 7
                ]
                month.stage.turn_to(midnight)
                await self.submit_each(month, board, late)
                month.stage.turn_to(midnight + DAY - timedelta(seconds=1))
                await self.submit_each(month, board, own)
            assert len(scores(month.raw, week_key("one_week", monday))) > 100
        finally:
            await month.laurels.drop(board, allow_drop="all")

    async def submit_each(self, month: Month, board: str, submissions: list[Submission]) -> None:
        monday = framedle.END
        for each in submissions:
            await month.laurels.submit(board, each.member, each.score, at=each.at, groups=each.groups)
            for scope in ("", ":country:BR"):
                week = scores(month.raw, week_key("one_week", monday, scope))
                assert week == union(month.raw, "one_week", monday, scope)


class TestRanks:
    async def test_come_with_five_above_five_below_and_the_total(self, evening: Month):
        client, total = evening.raw.client, evening.raw.client.zcard(FRAME_KEY)
        for member in scores(evening.raw, FRAME_KEY):
            rank = client.zrevrank(FRAME_KEY, member)
            surrounding = best_first(evening.raw, FRAME_KEY, max(0, rank - 5), rank + 5)
            around = await evening.laurels.around(FRAME, member, above=5, below=5)
            standing = await evening.laurels.standing(FRAME, member)
            assert (pairs(around.entries), around.total) == (surrounding, total)
            assert (standing.ordinal, standing.total) == (rank + 1, total)

    async def test_of_equal_scores_are_equal(self, evening: Month):
        held = scores(evening.raw, FRAME_KEY)
        for entry in (await evening.laurels.page(FRAME, limit=1000)).entries:
            assert entry.rank == 1 + sum(score > entry.score for score in held.values())

    async def test_of_the_top_100_are_those_of_the_sorted_set(self, evening: Month):
        page = await evening.laurels.page(FRAME, limit=100)
        assert pairs(page.entries) == best_first(evening.raw, FRAME_KEY, 0, 99)
        assert len(page.entries) == 100
        weekly = await evening.laurels.page(
            "framedle/speed_round", period="weekly", slot="2025-w07", limit=100
        )
        assert pairs(weekly.entries) == best_first(evening.raw, "lb:speed_round:week:2025-W07", 0, 99)

    async def test_in_a_country_are_among_its_players(self, evening: Month):
        page = await evening.laurels.page(FRAME, group="country=BR")
        assert pairs(page.entries) == best_first(evening.raw, f"{FRAME_KEY}:country:BR", 0, -1)
        countries = {player.name: player.country for player in framedle.players()}
        assert {countries[entry.member] for entry in page.entries} == {"BR"}
        last = page.entries[-1]
        standing = await evening.laurels.standing(FRAME, last.member, group="country=BR")
        assert (standing.rank, standing.total) == (last.rank, page.total)

    async def test_among_friends_are_by_their_scores_without_those_who_did_not_play(self, evening: Month):
        friends = [player.name for player in framedle.players()[:40]]
        found = {name: evening.raw.client.zscore(FRAME_KEY, name) for name in friends}
        among = await evening.laurels.among(FRAME, friends)
        assert among.absent == [name for name, score in found.items() if score is None]
        there = {name: score for name, score in found.items() if score is not None}
        assert dict(pairs(among.entries)) == there
        assert [entry.score for entry in among.entries] == sorted(there.values(), reverse=True)


class TestDuels:
    def test_have_the_ratings_of_the_documented_formula(self, month: Month):
        """K 32 from 1000; a win is 1, a draw 0.5, a loss 0."""
        elo: Scores = {}
        for duel in all_duels():
            a, b = duel.players
            elo_a, elo_b = elo.get(a, 1000.0), elo.get(b, 1000.0)
            result = 0.5 if duel.winner is None else float(duel.winner == a)
            expected_a = 1 / (1 + 10 ** ((elo_b - elo_a) / 400))
            expected_b = 1 / (1 + 10 ** ((elo_a - elo_b) / 400))
            elo[a] = elo_a + 32 * (result - expected_a)
            elo[b] = elo_b + 32 * (1 - result - expected_b)
        assert scores(month.raw, "lb:duels:elo") == pytest.approx(elo, abs=1e-9)

    def test_leave_the_sum_of_the_ratings_as_it_was(self, month: Month):
        ratings = scores(month.raw, "lb:duels:elo").values()
        assert sum(ratings) == pytest.approx(1000 * len(ratings), abs=1e-6)

    def test_are_won_lost_and_drawn(self):
        wins = [None if duel.winner is None else duel.players.index(duel.winner) for duel in all_duels()]
        assert set(wins) == {None, 0, 1}

    async def test_are_told_over_http(self, client: httpx.AsyncClient, month: Month):
        page = (await client.get("/duels/entries?limit=5")).json()
        ranked = [(entry["member"], entry["score"]) for entry in page["entries"]]
        assert ranked == best_first(month.raw, "lb:duels:elo", 0, 4)
        board = "sums/duels"
        await month.laurels.define(board, {"rating": {"system": "elo", "k": 32, "initial": 1000}})
        try:
            told = {"players": ["ada", "bob"], "winner": "ada"}
            answer = await client.post("http://laurels.test/v1/projects/sums/boards/duels/matches", json=told)
            assert [player["rating"] for player in answer.json()["players"]] == [1016, 984]
        finally:
            await month.laurels.drop(board, allow_drop="all")


def all_duels() -> list[Duel]:
    days = (framedle.BEGIN + number * DAY for number in range(framedle.DAYS))
    return [duel for day in days for duel in framedle.duels_of(day)]


class TestSnapshots:
    @pytest.mark.parametrize("mode", framedle.MODES)
    @pytest.mark.parametrize("week", WEEKS)
    async def test_keep_the_top_100_of_each_week_in_postgresql(
        self, month: Month, own_endpoints: Endpoints, mode: str, week: str
    ):
        rows = ranking_rows(own_endpoints, mode, week.lower())
        key = f"lb:{mode}:week:{week}"
        assert [(row.member.decode(), float(row.score)) for row in rows] == best_first(month.raw, key, 0, 99)
        assert [row.ordinal for row in rows] == list(range(1, 101))
        assert {row.total for row in rows} == {month.raw.client.zcard(key)}
        assert {row.taken_for for row in rows} == {WEEKS[week] + 7 * DAY}

    async def test_are_of_weeks_alone(self, month: Month):
        for mode in framedle.MODES:
            listed = (await month.laurels.snapshots(f"framedle/{mode}", limit=1000)).snapshots
            assert {snapshot.period for snapshot in listed} == {"weekly"}
        for board in (framedle.XP, framedle.DUELS):
            assert (await month.laurels.snapshots(board)).snapshots == []

    async def test_answer_for_weeks_that_expired(self, played: Month):
        played.stage.turn_to(WEEKS["2025-W08"] + 60 * DAY)
        page = await played.laurels.page(FRAME, period="weekly", slot="2025-w08")
        expected = best_first(played.raw, "lb:daily_frame:week:2025-W08", 0, 99)
        assert pairs(page.entries) == expected


def ranking_rows(endpoints: Endpoints, mode: str, slot: str) -> list[Any]:
    engine = create_engine(endpoints.postgres_url, poolclass=NullPool)
    asked = text(
        "SELECT e.ordinal, e.member, e.score, s.total, s.taken_for FROM laurels.snapshot_entries e "
        "JOIN laurels.snapshots s ON s.id = e.snapshot JOIN laurels.boards b ON b.id = s.board_id "
        "WHERE b.board = :mode AND s.period = 'weekly' AND s.slot = :slot AND s.cut = '' ORDER BY e.ordinal"
    )
    with engine.connect() as connection:
        return list(connection.execute(asked, {"mode": mode, "slot": slot}))


class TestOverHTTP:
    async def test_a_page_a_standing_and_a_neighbourhood(self, client: httpx.AsyncClient, evening: Month):
        page = (await client.get("/daily_frame/entries")).json()
        top = best_first(evening.raw, FRAME_KEY, 0, 99)
        assert [(entry["member"], entry["score"]) for entry in page["entries"]] == top
        assert (page["slot"], page["total"]) == ("2025-02-22", evening.raw.client.zcard(FRAME_KEY))
        member = top[50][0]
        standing = (await client.get(f"/daily_frame/entries/{member}")).json()
        assert (standing["ordinal"], standing["total"]) == (51, page["total"])
        around = (await client.get(f"/daily_frame/entries/{member}/around?above=5&below=5")).json()
        assert [(entry["member"], entry["score"]) for entry in around["entries"]] == top[45:56]

    async def test_friends_and_a_country(self, client: httpx.AsyncClient, evening: Month):
        friends = [player.name for player in framedle.players()[:12]]
        among = (await client.post("/daily_frame/entries/among", json={"members": friends})).json()
        for entry in among["entries"]:
            assert evening.raw.client.zscore(FRAME_KEY, entry["member"]) == entry["score"]
        brazil = (await client.get("/daily_frame/entries?group=country=BR")).json()
        assert brazil["total"] == evening.raw.client.zcard(f"{FRAME_KEY}:country:BR")

    async def test_the_week_the_xp_and_the_snapshots(self, client: httpx.AsyncClient, month: Month):
        week = (await client.get("/daily_frame/entries?period=weekly&slot=2025-w08")).json()
        assert week["total"] == month.raw.client.zcard("lb:daily_frame:week:2025-W08")
        xp = (await client.get("/xp/entries?limit=5")).json()
        assert [(entry["member"], entry["score"]) for entry in xp["entries"]] == best_first(
            month.raw, "lb:alltime:xp", 0, 4
        )
        listed = (await client.get("/daily_frame/snapshots?period=weekly")).json()["snapshots"]
        assert [each["slot"] for each in listed if each["group"] == ""] == [
            "2025-w09", "2025-w08", "2025-w07", "2025-w06"
        ]  # fmt: skip


def test_the_script_shows_the_boards_and_draws_the_plot_that_is_kept(
    performed: Callable[[str], tuple[str, str]],
):
    output, plot = performed("framedle")
    for shown in (
        "Daily Frame, 2025-02-22",
        "Brazil",
        "Twelve friends",
        "Week 2025-w08",
        "All-time XP",
        "Duels: ",
        "2025-w06",
    ):
        assert shown in output
    assert len(ET.fromstring(plot).findall("{http://www.w3.org/2000/svg}polyline")) == 5  # noqa: S314  # ours
    assert plot == (Path(framedle.HERE) / "month.svg").read_text()
