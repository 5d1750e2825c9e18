"""Points by project and over all, by the keys of the document, and snapshots of all_time alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import httpx
import pytest

from examples.projects import play as projects
from examples.stage import opened
from laurels.access.store.api_keys import EVERY_PROJECT, SCOPES
from laurels.http.app import create_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from raw_valkey import RawValkey

    from examples.stage import Stage
    from laurels.embedded import Endpoints

DAY = timedelta(days=1)
SCOPES_OF_ALL = (*projects.PROJECTS, projects.GLOBAL)
Scores = dict[str, float]

DOCUMENTED = [
    "leaderboard:1:weekly:2025-w43",
    "leaderboard:1:monthly:2025-10",
    "leaderboard:1:yearly:2025",
    "leaderboard:1:all_time",
    "leaderboard:global:weekly:2025-w43",
    "leaderboard:global:monthly:2025-10",
    "leaderboard:global:yearly:2025",
    "leaderboard:global:all_time",
]


@dataclass
class Month:
    stage: Stage
    raw: RawValkey
    midnights: dict[tuple[str, datetime], Scores] = field(default_factory=dict[tuple[str, datetime], Scores])
    """The all-time sorted set of each project, as it was at each midnight."""
    unequal: list[tuple[datetime, str]] = field(default_factory=list[tuple[datetime, str]])
    """When a global sorted set was anything but the union of the projects'."""

    def look(self, now: datetime) -> None:
        for name in names(now):
            self.raw.client.zunionstore(
                "{union}", [f"leaderboard:{project}:{name}" for project in projects.PROJECTS], aggregate="SUM"
            )
            if scores(self.raw, f"leaderboard:global:{name}") != scores(self.raw, "{union}"):
                self.unequal.append((now, name))
            self.raw.client.delete("{union}")
        if now.hour == 0:
            midnight = now.replace(second=0)
            for project in SCOPES_OF_ALL:
                self.midnights[project, midnight] = scores(self.raw, f"leaderboard:{project}:all_time")


def names(at: datetime) -> list[str]:
    """What the keys of a moment end in."""
    year, week, _ = at.isocalendar()
    return [f"weekly:{year}-w{week:02}", f"monthly:{at:%Y-%m}", f"yearly:{at:%Y}", "all_time"]


def scores(raw: RawValkey, key: str) -> Scores:
    return {member.decode(): score for member, score in raw.client.zrange(key, 0, -1, withscores=True)}


def expected() -> dict[str, Scores]:
    """Every sorted set that there should be, counted from what was done."""
    found: dict[str, Scores] = defaultdict(lambda: defaultdict(float))
    for number in range(projects.DAYS):
        for deed in projects.deeds_of(projects.BEGIN + number * DAY):
            for project in (deed.project, projects.GLOBAL):
                for name in names(deed.at):
                    found[f"leaderboard:{project}:{name}"][deed.user] += deed.points
    return found


@pytest.fixture(scope="module")
async def month(own_endpoints: Endpoints, raw: RawValkey) -> AsyncGenerator[Month]:
    """October 2025, played once; the clock stands ten seconds into November."""
    async with opened(
        projects.BEGIN, valkey_url=own_endpoints.valkey_url, postgres_url=own_endpoints.postgres_url
    ) as stage:
        month = Month(stage, raw)
        async for now in projects.play(stage):
            month.look(now)
        yield month


@pytest.fixture
async def client(month: Month) -> AsyncGenerator[httpx.AsyncClient]:
    _, key = await month.stage.laurels.keys.create(EVERY_PROJECT, SCOPES)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(month.stage.laurels)),
        base_url="http://laurels.test/v1/projects",
        headers={"Authorization": f"Bearer {key}"},
    ) as client:
        yield client


@pytest.mark.parametrize("key", DOCUMENTED)
def test_each_documented_key_is_a_plain_sorted_set(month: Month, key: str):
    assert month.raw.client.type(key) == b"zset"
    assert month.raw.client.zcard(key) > 0


def test_every_key_holds_user_and_accumulated_score_and_there_are_no_others(month: Month):
    every = [key.decode() for key in month.raw.keys("")]
    own = [key for key in every if "{" not in key and not key.startswith("laurels:")]
    assert {key: scores(month.raw, key) for key in own} == expected()


@pytest.mark.usefixtures("month")
def test_the_boards_are_what_laurels_apply_makes_of_the_file(applied: Callable[..., dict[str, str]]):
    assert applied(projects.BOARDS) == {f"{project}/score": "unchanged" for project in SCOPES_OF_ALL}


def test_the_global_boards_are_the_sum_of_the_projects_at_every_moment(month: Month):
    assert len(month.midnights) == projects.DAYS * len(SCOPES_OF_ALL)
    assert month.unequal == []


def test_all_time_never_expires_and_the_short_lived_do(month: Month):
    for project in SCOPES_OF_ALL:
        assert month.raw.client.ttl(f"leaderboard:{project}:all_time") == -1
        for name in ("weekly:2025-w43", "monthly:2025-10", "yearly:2025"):
            assert month.raw.client.ttl(f"leaderboard:{project}:{name}") > 0


@pytest.mark.parametrize("project", SCOPES_OF_ALL)
async def test_snapshots_are_of_all_time_alone_one_at_each_midnight(month: Month, project: str):
    laurels, board = month.stage.laurels, f"{project}/score"
    listed = (await laurels.snapshots(board, limit=1000)).snapshots
    assert {snapshot.period for snapshot in listed} == {"all_time"}
    taken: dict[datetime, Scores] = {}
    for snapshot in listed:
        page = await laurels.snapshot(board, snapshot.id, limit=1000)
        taken[snapshot.taken_for] = {entry.member: entry.score for entry in page.entries}
    midnights = {moment: held for (of, moment), held in month.midnights.items() if of == project and held}
    assert len(midnights) >= 30
    assert taken == midnights


@pytest.mark.parametrize("project", SCOPES_OF_ALL)
async def test_each_board_and_its_history_are_read_over_http(
    client: httpx.AsyncClient, month: Month, project: str
):
    board = f"/{project}/boards/score"
    for period, name in zip(projects.PERIODS, names(projects.FRIDAY), strict=True):
        slot = {"slot": name.split(":")[1]} if ":" in name else {}
        page = (await client.get(f"{board}/entries", params={"period": period, **slot})).json()
        held = scores(month.raw, f"leaderboard:{project}:{name}")
        assert {entry["member"]: entry["score"] for entry in page["entries"]} == held
        assert [entry["score"] for entry in page["entries"]] == sorted(held.values(), reverse=True)
    snapshots = (await client.get(f"{board}/snapshots")).json()["snapshots"]
    newest = (await client.get(f"{board}/snapshots/{snapshots[0]['id']}")).json()
    held = month.midnights[project, projects.END]
    assert {entry["member"]: entry["score"] for entry in newest["entries"]} == held


def test_the_script_shows_the_tables_and_draws_the_plot_that_is_kept(
    performed: Callable[[str], tuple[str, str]],
):
    output, plot = performed("projects")
    for shown in ("Project 1, 2025-w43", "All projects, 2025-w43", "31 days, 31 snapshots"):
        assert shown in output
    assert len(ET.fromstring(plot).findall("{http://www.w3.org/2000/svg}polyline")) == 8  # noqa: S314  # ours
    assert plot == (Path(projects.HERE) / "month.svg").read_text()
