"""The campus routes, over a day and a half of a campus's life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import httpx
import pytest
from campus_stage import Stage, stores_apart

from laurels.access.store.secrets import NewSecret
from laurels.activity.store.people import Campus, User
from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.http.app import create_app

from .player_tokens import bearer, token

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.embedded import Endpoints

NORTH = Campus(str(UUID(int=701)), "North", "Europe/Oslo")
EMPTY = Campus(str(UUID(int=702)), "Empty", "Pacific/Kiritimati")
SCOPES = ("social", "popularity", "engagement", "overall")


def user(number: int) -> str:
    return str(UUID(int=7000 + number))


@dataclass
class Life:
    """October 23 is finalized; it is noon of October 24, UTC."""

    stage: Stage
    client: httpx.AsyncClient
    secret: str

    async def get(self, path: str, **parameters: object) -> dict[str, Any]:
        answer = await self.client.get(path, params={name: str(value) for name, value in parameters.items()})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def problem(self, status: int, path: str, **parameters: object) -> dict[str, Any]:
        answer = await self.client.get(path, params={name: str(value) for name, value in parameters.items()})
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        return answer.json()

    def as_player(self, member: str) -> dict[str, str]:
        return bearer(token(self.secret, "campus", member))


@pytest.fixture(scope="module")
async def campus_laurels(endpoints: Endpoints) -> AsyncGenerator[Laurels]:
    """On stores of its own."""
    valkey_url, postgres_url = stores_apart(endpoints, "campus_api", 10)
    async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, clock=FixedClock()) as laurels:
        yield laurels


@pytest.fixture(scope="module")
async def life(campus_laurels: Laurels) -> AsyncGenerator[Life]:
    laurels = campus_laurels
    assert isinstance(laurels.clock, FixedClock)
    stage = Stage(laurels, laurels.clock, NORTH)
    await laurels.activity.store.put_campuses([NORTH, EMPTY])
    await laurels.activity.store.put_users(
        [User(user(n), NORTH.id, f"user-{n}", f"https://example.org/{n}.png") for n in range(1, 6)]
    )

    async def play(winner: int, loser: int) -> None:
        players = {"a": user(winner), "b": user(loser), "winner": user(winner)}
        await stage.tell("x:activities.events", {"event": "ended", **players})

    stage.go_to("2025-10-23 12:00")
    await play(1, 2)
    await play(1, 3)
    await stage.count()
    stage.go_to("2025-10-24 00:06")
    await stage.finalize()
    stage.go_to("2025-10-24 14:00")
    for _ in range(3):
        await play(3, 2)
    await play(4, 1)
    await stage.count()
    _, secret = await laurels.secrets.create("campus", NewSecret("players"))
    _, key = await laurels.keys.create("campus", ["read"])
    transport = httpx.ASGITransport(create_app(laurels), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://laurels.test") as client:
        client.headers.update(bearer(key))
        yield Life(stage, client, secret or "")


TODAY = [(1, user(3), 15 * 59 / 58), (2, user(2), 6 * 59 / 58), (3, user(4), 5.0), (4, user(1), 2 * 59 / 58)]


async def test_a_table_is_as_documented(life: Life):
    found = await life.get("/leaderboards/overall", campus_id=NORTH.id)
    assert (found["scope"], found["period"], found["ymd"]) == ("overall", "daily", 20251024)
    assert found["campus_id"] == NORTH.id
    assert [(row["rank"], row["user_id"], row["score"]) for row in found["items"]] == TODAY
    assert found["total"] == 4
    assert found["next_reset_at"] == "2025-10-24T22:00:00Z"
    assert found["items"][0].keys() == {"rank", "user_id", "score", "handle", "avatar_url"}
    assert (found["items"][0]["handle"], found["items"][0]["avatar_url"]) == (
        "user-3", "https://example.org/3.png",
    )  # fmt: skip


async def test_every_scope_and_period_can_be_asked_for(life: Life):
    best: dict[tuple[str, str], float] = {}
    for scope in SCOPES:
        for period in ("daily", "weekly", "monthly"):
            found = await life.get(f"/leaderboards/{scope}", campus_id=NORTH.id, period=period)
            assert (found["scope"], found["period"]) == (scope, period)
            best[scope, period] = found["items"][0]["score"]
    assert best["engagement", "daily"] == 15
    assert best["engagement", "weekly"] == best["engagement", "monthly"] == 17
    assert best["social", "daily"] == 0


async def test_limit_and_offset_cut_a_stretch(life: Life):
    found = await life.get("/leaderboards/overall", campus_id=NORTH.id, limit=2, offset=1)
    assert [row["rank"] for row in found["items"]] == [2, 3]
    assert found["total"] == 4
    assert (await life.get("/leaderboards/overall", campus_id=NORTH.id, offset=4))["items"] == []


async def test_deltas_tell_what_changed_since_the_day_before(life: Life):
    found = await life.get("/leaderboards/overall", campus_id=NORTH.id, deltas="true")
    deltas = {row["user_id"]: row["deltas"] for row in found["items"]}
    assert deltas[user(3)] == {"rank": 1, "score": 15 * 59 / 58 - 2}
    assert deltas[user(1)] == {"rank": -3, "score": 2 * 59 / 58 - 10}
    assert deltas[user(4)] == {"rank": None, "score": None}


async def test_the_row_of_a_user_is_told_wherever_it_stands(life: Life):
    asked = {"campus_id": NORTH.id, "limit": 1, "deltas": "true"}
    found = await life.get("/leaderboards/overall", **asked, user_id=user(1))
    assert [row["user_id"] for row in found["items"]] == [user(3)]
    assert (found["user"]["rank"], found["user"]["handle"]) == (4, "user-1")
    assert found["user"]["deltas"]["rank"] == -3
    best = await life.get("/leaderboards/overall", **asked, user_id=user(3))
    assert best["user"] == best["items"][0]
    past = await life.get("/leaderboards/overall", **asked, user_id=user(1), ymd=20251023)
    assert (past["user"]["rank"], past["user"]["score"]) == (1, 10)


async def test_a_user_without_a_row_has_none(life: Life):
    found = await life.get("/leaderboards/overall", campus_id=NORTH.id, user_id=user(5))
    assert found["user"] is None
    assert len(found["items"]) == 4
    assert "user" not in await life.get("/leaderboards/overall", campus_id=NORTH.id)


async def test_a_past_day_can_be_asked_for(life: Life):
    found = await life.get("/leaderboards/overall", campus_id=NORTH.id, ymd=20251023)
    best = found["items"][0]
    assert (best["user_id"], best["score"]) == (user(1), 10)
    assert [row["rank"] for row in found["items"]] == [1, 2, 2]


async def test_a_day_that_valkey_no_longer_has_is_answered_from_its_rows(life: Life):
    live = {
        (scope, period): await life.get(
            f"/leaderboards/{scope}", campus_id=NORTH.id, ymd=20251023, period=period, deltas="true"
        )
        for scope in SCOPES
        for period in ("daily", "weekly", "monthly")
    }
    now = life.stage.clock.now
    try:
        life.stage.go_to("2026-10-24 12:00")
        for (scope, period), before in live.items():
            after = await life.get(
                f"/leaderboards/{scope}", campus_id=NORTH.id, ymd=20251023, period=period, deltas="true"
            )
            assert after.pop("next_reset_at") == "2026-10-24T22:00:00Z"
            assert after == {name: value for name, value in before.items() if name != "next_reset_at"}
            page = await life.get(
                f"/leaderboards/{scope}", campus_id=NORTH.id, ymd=20251023, period=period, limit=1, offset=2
            )
            assert [row["rank"] for row in page["items"]] == [before["items"][2]["rank"]]
            assert page["total"] == 3
    finally:
        life.stage.clock.now = now


async def test_a_campus_where_nothing_happened_has_an_empty_table(life: Life):
    found = await life.get("/leaderboards/social", campus_id=EMPTY.id, period="weekly")
    assert (found["items"], found["total"], found["ymd"]) == ([], 0, 20251025)


async def test_what_does_not_exist_is_not_found(life: Life):
    assert "glory" in (await life.problem(404, "/leaderboards/glory", campus_id=NORTH.id))["detail"]
    nowhere = str(uuid4())
    assert nowhere in (await life.problem(404, "/leaderboards/social", campus_id=nowhere))["detail"]


@pytest.mark.parametrize(
    ("field", "parameters"),
    [
        ("period", {"period": "yearly"}),
        ("ymd", {"ymd": 20251301}),
        ("ymd", {"ymd": 20251025}),
        ("ymd", {"ymd": "today"}),
        ("ymd", {"ymd": 1}),
        ("limit", {"limit": 0}),
        ("offset", {"offset": -1}),
        ("deltas", {"deltas": "perhaps"}),
        ("campus_id", {"campus_id": "north"}),
        ("colour", {"colour": "red"}),
    ],
)
async def test_what_is_wrong_is_named(life: Life, field: str, parameters: dict[str, object]):
    found = await life.problem(422, "/leaderboards/overall", **{"campus_id": NORTH.id, **parameters})
    assert [error["field"] for error in found["errors"]] == [field]


async def test_the_campus_must_be_given(life: Life):
    found = await life.problem(422, "/leaderboards/overall")
    assert [error["field"] for error in found["errors"]] == ["campus_id"]


async def test_my_summary_is_as_documented(life: Life):
    answer = await life.client.get("/leaderboards/me/summary", headers=life.as_player(user(1)))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["ymd"], found["campus_id"]) == (20251024, NORTH.id)
    assert found["ranks"] == {"social": 1, "popularity": 1, "engagement": 4, "overall": 4}
    assert found["scores"] == {"social": 0, "popularity": 0, "engagement": 2, "overall": 2 * 59 / 58}
    assert found["streak"] == {"current": 1, "best": 1, "last_active_ymd": 20251023}
    assert found["badges"] == [{"kind": "daily_top10", "earned_ymd": 20251023}]
    assert (found["user_id"], found["handle"]) == (user(1), "user-1")
    assert found["campus"] == {"id": NORTH.id, "name": "North", "timezone": "Europe/Oslo", "ymd": 20251024}


async def test_whoever_did_nothing_today_has_no_rank(life: Life):
    answer = await life.client.get("/leaderboards/me/summary", headers=life.as_player(user(5)))
    found = answer.json()
    assert found["ranks"] == dict.fromkeys(SCOPES)
    assert found["scores"] == dict.fromkeys(SCOPES)
    assert found["streak"] == {"current": 0, "best": 0, "last_active_ymd": 0}


@pytest.mark.parametrize("member", ["ada", str(UUID(int=799))])
async def test_a_player_of_no_campus_is_not_found(life: Life, member: str):
    answer = await life.client.get("/leaderboards/me/summary", headers=life.as_player(member))
    assert answer.status_code == 404


async def test_a_key_is_nobody(life: Life):
    assert (
        "send a player's token instead of an API key"
        in (await life.problem(403, "/leaderboards/me/summary"))["detail"]
    )


async def test_a_streak_is_as_documented(life: Life):
    found = await life.get(f"/leaderboards/streaks/{user(1)}")
    assert found == {"current": 1, "best": 1, "last_active_ymd": 20251023}
    unknown = await life.get(f"/leaderboards/streaks/{uuid4()}")
    assert unknown == {"current": 0, "best": 0, "last_active_ymd": 0}
    wrong = await life.problem(422, "/leaderboards/streaks/ada")
    assert [error["field"] for error in wrong["errors"]] == ["user_id"]


async def test_my_active_days_make_a_calendar(life: Life):
    days = {"from": 20251001, "to": 20251031}
    answer = await life.client.get("/leaderboards/me/days", params=days, headers=life.as_player(user(1)))
    assert answer.json() == {"days": [{"ymd": 20251023, "overall": 10, "streak": 1}]}
    for wrong in ({"from": 20251031, "to": 20251001}, {"from": 20240101, "to": 20251031}, {"from": 20251001}):
        answer = await life.client.get("/leaderboards/me/days", params=wrong, headers=life.as_player(user(1)))
        assert answer.status_code == 422


async def test_campuses_are_listed_with_their_date(life: Life):
    listed = (await life.get("/leaderboards/campuses"))["campuses"]
    assert [(each["name"], each["ymd"]) for each in listed] == [("Empty", 20251025), ("North", 20251024)]


async def test_metrics_tell_of_campuses_whoever_did_the_work(life: Life):
    text = (await life.client.get("/metrics")).text
    assert 'lb_snapshots_total{period="weekly",scope="overall"}' in text
    assert 'lb_badges_awarded_total{kind="daily_top10"} 3.0' in text
    assert 'lb_compute_seconds_bucket{le="+Inf",period="daily"}' in text
    assert 'lb_compute_seconds_count{period="monthly"}' in text
    assert 'lb_events_processed_total{stream="x:activities.events"} 6.0' in text
