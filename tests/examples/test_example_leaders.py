"""The Leaders service as its document says: the README's lines on an empty server, and a month of a game."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from cli_processes import COMMAND, environment, serving
from places import fast_place, folder_that_anybody_may_pass

from examples.leaders import play as leaders
from examples.stage import opened
from laurels.boards.leaders import LeadersBoard
from laurels.boards.windows import RANGE_CODES
from laurels.cli.boards_file import read_boards

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from cli_processes import Served
    from raw_valkey import RawValkey

    from examples.stage import Stage
    from laurels.embedded import Endpoints

HERE = Path(__file__).parent
DAY = timedelta(days=1)
LEADERS_TESTS = HERE.parent / "http" / "test_http_leaders.py"

# Every sentence of the document about values, ranges, slots and friends, and what proves it; a name without a
# file is a test of this module.
SENTENCES = {
    "Leaderboards are defined by the Game ID and Board ID": "test_games_and_boards_are_listed",
    "There can be any number of boards per game": "test_a_game_has_any_number_of_boards",
    "best practice to keep them in the set of characters [A-Z][a-z][0-9]-_.": (
        "test_names_of_the_best_practice_are_accepted test_what_is_wrong_is_said_and_makes_no_board"
    ),
    "Leaderboards can be set to expire after N periods": (
        "test_expiry_is_edited_through_the_board_and_stays test_the_ranges_of_the_file_expire_after_n_periods"
    ),
    "An entry on a given leaderboard consists of a User ID, and Value": (
        "test_keys_are_those_of_the_storage_design test_every_key_holds_what_was_posted_to_it"
    ),
    "Timestamps are added automatically": "test_timestamps_are_added_automatically",
    "an absolute value, where the maximum during the given period is desired": (
        "test_set_keeps_the_maximum_of_the_period"
    ),
    "or a cumulative value, e.g. total coins earned in the period": "test_inc_adds_to_what_the_period_has",
    "Leaderboards can be set to maintain daily, weekly, or monthly sets": (
        "test_a_post_writes_its_range_alone test_every_key_holds_what_was_posted_to_it"
    ),
    "there is no support for sliding windows such as last 7 days": "test_there_are_no_sliding_windows",
    "Boards keys: /leaders/{game_id}/{board_id}/{range_code}/{slot}": (
        "test_keys_are_those_of_the_storage_design test_every_key_holds_what_was_posted_to_it"
    ),
    "board_id can be any unique string": "test_games_and_boards_are_listed",
    "range_code is one of d (daily), w (weekly), m (monthly), a (all time)": (
        "test_an_answer_is_in_the_words_of_the_service test_what_is_wrong_is_said_and_makes_no_board"
    ),
    "slot is a range dependent format of the current date": "test_days_begin_at_midnight_utc",
    "daily: yyyymmdd; weekly: yyyyww; monthly: yyyymm; alltime: a": (
        "test_keys_are_those_of_the_storage_design test_weeks_belong_to_their_iso_year"
    ),
    "the member for each entry is the user_id and the score is the Data Point": (
        "test_keys_are_those_of_the_storage_design"
    ),
    "friends leaderboards to be computed very efficiently": "test_friends_are_ranked_among_themselves",
    "We create temp zsets for each passed in friends list": "test_friends_leave_no_key_behind",
    "You can also specify the key to an existing zset of friends (TODO)": (
        "test_queries_that_are_wrong_name_the_parameter"
    ),
    "no attempt to verify that data is correct, aside from some basic well-formedness checks": (
        "test_bodies_that_cannot_be_read_are_refused test_what_is_wrong_is_said_and_makes_no_board"
    ),
    "nothing stopping a caller from doing set and inc to the same board": (
        "test_set_and_inc_go_to_the_same_board"
    ),
    "GET /leaders/games": "test_games_and_boards_are_listed test_every_line_of_the_readme_does_what_it_says",
    "GET /leaders/{game_id}/boards": (
        "test_games_and_boards_are_listed test_every_line_of_the_readme_does_what_it_says"
    ),
    "GET /leaders/{game_id}/{board_id}/{range_code}": "test_an_answer_is_in_the_words_of_the_service",
    "GET /leaders/{game_id}/{board_id}/{range_code}/last": (
        "test_last_is_the_period_before test_a_last_period_without_entries_is_empty "
        "test_all_time_has_no_last_period"
    ),
    "POST /leaders/{game_id}/{board_id}/{range_code}/{user_id}": (
        "test_an_answer_is_in_the_words_of_the_service test_json_says_the_same_as_a_form"
    ),
    "POST vars: value; type, one of: set (default), inc": (
        "test_set_keeps_the_maximum_of_the_period test_inc_adds_to_what_the_period_has"
    ),
}


@pytest.fixture(scope="module")
def served() -> Generator[Served]:
    """A server that was never used."""
    with folder_that_anybody_may_pass(fast_place()) as folder, serving(folder / "data") as served:
        yield served


@pytest.fixture(scope="module")
async def stage(own_endpoints: Endpoints) -> AsyncGenerator[Stage]:
    """October 2025, played once."""
    async with opened(
        leaders.BEGIN, valkey_url=own_endpoints.valkey_url, postgres_url=own_endpoints.postgres_url
    ) as stage:
        async with leaders.client_of(stage) as client:
            async for _ in leaders.play(stage, client):
                pass
        yield stage


@pytest.fixture
async def client(stage: Stage) -> AsyncGenerator[httpx.AsyncClient]:
    async with leaders.client_of(stage) as client:
        yield client


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_sentence_has_a_test(sentence: str):
    code = LEADERS_TESTS.read_text() + Path(__file__).read_text()
    tests = set(re.findall(r"^ *(?:async )?def (test_\w+)\(", code, re.MULTILINE))
    assert set(SENTENCES[sentence].split()) <= tests


class TestTheReadme:
    def lines(self) -> list[str]:
        blocks = re.findall(
            r"^```sh\n(.*?)^```", (leaders.HERE / "README.md").read_text(), re.MULTILINE | re.DOTALL
        )
        assert len(blocks) == 2
        return blocks[1].splitlines()

    def key(self, served: Served) -> str:
        """As the README makes one."""
        command = [*COMMAND, "keys", "create", "*", "--data-dir", str(served.data_dir)]
        done = subprocess.run(
            command, cwd="/", env=environment(), capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.splitlines()[0]

    def test_every_line_of_the_readme_does_what_it_says(self, served: Served):
        key = self.key(served)
        setting, *calls = self.lines()
        ask = with_curl if shutil.which("curl") else with_httpx
        before = slots()
        answers = [ask(setting, call, served.url, key) for call in calls]
        if slots() != before:
            pytest.skip("midnight came between two lines")
        assert answers == expected_answers(before)

    def test_the_same_lines_without_curl(self, served: Served):
        """What the test does where there is no curl, so that it is known to work."""
        setting, *calls = self.lines()
        listed = next(call for call in calls if "/boards" in call)
        answer = with_httpx(setting, listed, served.url, self.key(served))
        assert answer["game"] == "pacman"

    def test_the_file_sets_what_expires_also_after_the_first_post(
        self, served: Served, applied: Callable[..., dict[str, str]]
    ):
        assert applied(leaders.BOARDS, "--data-dir", str(served.data_dir)) == {
            "pacman/highscore.a": "unchanged",
            "pacman/highscore.d": "changed",
            "pacman/highscore.w": "created",
            "pacman/highscore.m": "created",
        }


def slots() -> dict[str, str]:
    now = datetime.now(UTC)
    year, week, _ = now.isocalendar()
    return {"d": f"{now:%Y%m%d}", "w": f"{year}{week:02}", "m": f"{now:%Y%m}", "a": "a"}


def expected_answers(now: dict[str, str]) -> list[Any]:
    yesterday = f"{datetime.strptime(now['d'], '%Y%m%d').replace(tzinfo=UTC) - DAY:%Y%m%d}"

    def at(board: str, code: str, slot: str | None = None) -> dict[str, str]:
        return {"game": "pacman", "board": board, "range": code, "slot": slot or now[code]}

    def posted(board: str, code: str, user: str, value: int, rank: int = 1) -> dict[str, Any]:
        return {**at(board, code), "user": user, "value": value, "rank": rank}

    def read(
        where: dict[str, str], *entries: tuple[int, str, int], total: int | None = None
    ) -> dict[str, Any]:
        listed = [{"rank": rank, "user": user, "value": value} for rank, user, value in entries]
        return {**where, "total": len(listed) if total is None else total, "entries": listed}

    today = at("highscore", "d")
    boards = {"earned_coins": ["w"], "games_won": ["m"], "highscore": ["d", "a"]}
    return [
        {"games": []},
        posted("highscore", "d", "ada", 1200),
        posted("highscore", "d", "ada", 1200),
        posted("highscore", "d", "bob", 1500),
        posted("highscore", "d", "eve", 700, rank=3),
        posted("earned_coins", "w", "ada", 5),
        posted("earned_coins", "w", "ada", 8),
        posted("games_won", "m", "ada", 1),
        posted("highscore", "a", "bob", 1500),
        {"games": ["pacman"]},
        {"game": "pacman", "boards": [{"board": name, "ranges": codes} for name, codes in boards.items()]},
        read(today, (1, "bob", 1500), (2, "ada", 1200), (3, "eve", 700)),
        read(at("highscore", "d", yesterday)),
        read(today, (1, "ada", 1200), (2, "eve", 700)),
        read(today, (2, "ada", 1200), total=3),
        read(at("earned_coins", "w"), (1, "ada", 8)),
        read(at("games_won", "m"), (1, "ada", 1)),
        read(at("highscore", "a"), (1, "bob", 1500)),
    ]


def with_curl(setting: str, call: str, url: str, key: str) -> Any:  # noqa: ANN401  # JSON
    shell = ["bash", "-euc", f"{setting}\n{call}"]
    environment = {"URL": url, "KEY": key, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(shell, env=environment, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def with_httpx(setting: str, call: str, url: str, key: str) -> Any:  # noqa: ANN401  # JSON
    assert setting == 'B=$URL/leaders; K="Authorization: Bearer $KEY"'
    filled = call.replace("$K", f"Authorization: Bearer {key}").replace("$B", f"{url}/leaders")
    command, *words = shlex.split(filled, comments=True)
    assert command == "curl"
    data = dict(words[at + 1].split("=") for at, word in enumerate(words) if word == "-d")
    headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "-H")
    answer = httpx.request("POST" if data else "GET", words[-1], data=data or None, headers=headers)
    return answer.raise_for_status().json()


class TestTheMonth:
    def expected(self) -> dict[str, dict[str, float]]:
        """Every sorted set that there should be: the greatest score, and the sum of the coins."""
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for number in range(leaders.DAYS):
            for game in leaders.games_of(leaders.BEGIN + number * DAY):
                year, week, _ = game.at.isocalendar()
                for slot in (f"d/{game.at:%Y%m%d}", f"w/{year}{week:02}", f"m/{game.at:%Y%m}", "a/a"):
                    best = found[f"/leaders/pacman/highscore/{slot}"]
                    best[game.user] = max(game.score, best.get(game.user, 0))
                for slot in (f"d/{game.at:%Y%m%d}", "a/a"):
                    coins = found[f"/leaders/pacman/earned_coins/{slot}"]
                    coins[game.user] = coins.get(game.user, 0) + game.coins
        return found

    def held(self, raw: RawValkey, key: str) -> dict[str, float]:
        return {member.decode(): score for member, score in raw.client.zrange(key, 0, -1, withscores=True)}

    @pytest.mark.usefixtures("stage")
    def test_every_key_holds_what_was_posted_to_it(self, raw: RawValkey):
        own = [key.decode() for key in raw.keys("/leaders/") if b"{" not in key]
        assert {key: self.held(raw, key) for key in own} == self.expected()
        assert "/leaders/pacman/highscore/d/20251024" in own
        assert "/leaders/pacman/highscore/w/202543" in own
        assert "/leaders/pacman/highscore/m/202510" in own

    @pytest.mark.parametrize(
        "path", ["highscore/d", "highscore/w", "highscore/m", "highscore/a", "earned_coins/a"]
    )
    async def test_answers_are_the_sorted_sets(
        self, stage: Stage, client: httpx.AsyncClient, raw: RawValkey, path: str
    ):
        stage.turn_to(leaders.EVENING)
        answer = await leaders.read(client, f"{path}?limit=1000")
        held = self.held(raw, f"/leaders/pacman/{path}/{answer['slot']}")
        assert {entry["user"]: entry["value"] for entry in answer["entries"]} == held
        assert answer["total"] == len(held) > 0

    @pytest.mark.parametrize(("code", "slot"), [("d", "20251023"), ("w", "202542"), ("m", "202509")])
    async def test_last_is_the_sorted_set_of_the_period_before(
        self, stage: Stage, client: httpx.AsyncClient, raw: RawValkey, code: str, slot: str
    ):
        stage.turn_to(leaders.EVENING)
        answer = await leaders.read(client, f"highscore/{code}/last")
        held = self.held(raw, f"/leaders/pacman/highscore/{code}/{slot}")
        assert answer["slot"] == slot
        assert {entry["user"]: entry["value"] for entry in answer["entries"]} == held

    async def test_friends_leave_no_key_behind(self, stage: Stage, client: httpx.AsyncClient, raw: RawValkey):
        stage.turn_to(leaders.EVENING)
        before = raw.keys("")
        answer = await leaders.read(client, f"highscore/w?friends={','.join(leaders.FRIENDS)}")
        values = {
            name: raw.client.zscore("/leaders/pacman/highscore/w/202543", name) for name in leaders.FRIENDS
        }
        there = {name: value for name, value in values.items() if value is not None}
        assert {entry["user"]: entry["value"] for entry in answer["entries"]} == there
        assert raw.keys("") == before

    @pytest.mark.usefixtures("stage")
    def test_the_ranges_of_the_file_expire_after_n_periods(self, raw: RawValkey):
        """From the first game of the period on: to the end of the last period that can be asked for."""
        days = {
            "d/20251024": (datetime(2025, 10, 24, tzinfo=UTC), 14),
            "w/202543": (datetime(2025, 10, 20, tzinfo=UTC), 56),
        }
        for slot, (begin, kept) in days.items():
            lasting = begin + kept * DAY - first_game_since(begin)
            left = timedelta(seconds=raw.client.ttl(f"/leaders/pacman/highscore/{slot}"))
            assert lasting - timedelta(minutes=2) <= left <= lasting + timedelta(seconds=1)
        for path in ("highscore/a/a", "earned_coins/d/20251024", "earned_coins/a/a"):
            assert raw.client.ttl(f"/leaders/pacman/{path}") == -1

    async def test_there_are_no_sliding_windows(self, client: httpx.AsyncClient):
        for code in ("r", "7d", "rolling_7d", "y"):
            answer = await client.get(f"/leaders/pacman/highscore/{code}")
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "range")


def first_game_since(begin: datetime) -> datetime:
    return next(game.at for number in range(8) for game in leaders.games_of(begin + number * DAY))


@pytest.mark.parametrize("code", RANGE_CODES)
def test_the_file_declares_the_ranges_as_a_post_would_make_them(code: str):
    definition = read_boards(leaders.BOARDS)[f"pacman/highscore.{code}"]
    of = LeadersBoard.of("highscore", code)
    assert LeadersBoard.named(of.name, definition) == of
    without_keep = [window.model_copy(update={"keep": None}) for window in definition.windows]
    assert definition.model_copy(update={"windows": tuple(without_keep)}) == of.definition


def test_the_script_shows_what_players_see_and_draws_the_plot_that_is_kept(
    performed: Callable[[str], tuple[str, str]],
):
    output, plot = performed("leaders")
    for shown in ("Today (20251024)", "Yesterday (20251023)", "202543", "Coins of all time (a)", "$ curl"):
        assert shown in output
    assert len(ET.fromstring(plot).findall("{http://www.w3.org/2000/svg}polyline")) == 8  # noqa: S314  # ours
    assert plot == (leaders.HERE / "month.svg").read_text()
