"""What the Leaders service says of values, ranges, slots and friends, over HTTP and in Valkey itself."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from httpx import ASGITransport, AsyncClient
from raw_valkey import RawValkey
from sqlalchemy import select

from laurels.engine import Laurels
from laurels.http.app import create_app
from laurels.moments import moment_of
from laurels.postgres.tables import boards as stored
from laurels.postgres.tables import journal

if TYPE_CHECKING:
    from collections.abc import Generator

    from httpx import Response

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints

    from .conftest import MakeKey

SLOTS = {"d": "20251024", "w": "202543", "m": "202510", "a": "a"}


@pytest.fixture
def raw(endpoints: Endpoints) -> Generator[RawValkey]:
    valkey = RawValkey(endpoints.valkey_url)
    yield valkey
    valkey.close()


@pytest.fixture
def game(project: str, client: AsyncClient) -> str:
    """Where the boards of the test's game are."""
    return f"/leaders/{project}"


async def post(client: AsyncClient, at: str, user: str, value: float, type: str | None = None) -> Any:  # noqa: A002, ANN401  # as the service says; JSON
    answer = await client.post(f"{at}/{user}", data={"value": str(value)} | ({"type": type} if type else {}))
    assert answer.status_code == 200, answer.text
    return answer.json()


def problem(answer: Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["detail"]


@pytest.mark.parametrize("code", SLOTS)
async def test_keys_are_those_of_the_storage_design(
    client: AsyncClient, game: str, project: str, raw: RawValkey, code: str
):
    await post(client, f"{game}/highscore/{code}", "ada", 1200)
    await post(client, f"{game}/highscore/{code}", "bob", 800.5)
    key = f"/leaders/{project}/highscore/{code}/{SLOTS[code]}"
    assert raw.client.zrange(key, 0, -1, withscores=True) == [(b"bob", 800.5), (b"ada", 1200.0)]
    assert raw.keys(f"/leaders/{project}/") == [key.encode()]


@pytest.mark.parametrize("code", SLOTS)
async def test_an_answer_is_in_the_words_of_the_service(
    client: AsyncClient, game: str, project: str, code: str
):
    where = {"game": project, "board": "highscore", "range": code, "slot": SLOTS[code]}
    await post(client, f"{game}/highscore/{code}", "bob", 800)
    posted = await post(client, f"{game}/highscore/{code}", "ada", 1200)
    assert posted == {**where, "user": "ada", "value": 1200, "rank": 1}
    answer = await client.get(f"{game}/highscore/{code}")
    assert answer.json() == {
        **where,
        "total": 2,
        "entries": [{"rank": 1, "user": "ada", "value": 1200}, {"rank": 2, "user": "bob", "value": 800}],
    }


async def test_set_keeps_the_maximum_of_the_period(client: AsyncClient, game: str):
    board = f"{game}/highscore/d"
    assert (await post(client, board, "ada", 5))["value"] == 5
    assert (await post(client, board, "ada", 9, "set"))["value"] == 9
    assert (await post(client, board, "ada", 7))["value"] == 9


async def test_inc_adds_to_what_the_period_has(client: AsyncClient, game: str):
    board = f"{game}/earned_coins/w"
    assert (await post(client, board, "ada", 5, "inc"))["value"] == 5
    assert (await post(client, board, "ada", 2.5, "inc"))["value"] == 7.5
    assert (await post(client, board, "ada", -1, "inc"))["value"] == 6.5


async def test_set_and_inc_go_to_the_same_board(client: AsyncClient, game: str):
    board = f"{game}/mixed/m"
    await post(client, board, "ada", 10)
    assert (await post(client, board, "ada", 3, "inc"))["value"] == 13
    assert (await post(client, board, "ada", 12, "set"))["value"] == 13


async def test_a_post_writes_its_range_alone(client: AsyncClient, game: str, project: str, raw: RawValkey):
    await post(client, f"{game}/highscore/d", "ada", 1)
    await post(client, f"{game}/highscore/a", "ada", 2)
    assert raw.keys(f"/leaders/{project}/") == [
        f"/leaders/{project}/highscore/{rest}".encode() for rest in ("a/a", "d/20251024")
    ]
    assert (await client.get(f"{game}/highscore/a")).json()["entries"][0]["value"] == 2
    assert problem(await client.get(f"{game}/highscore/w"))[0] == 404


@pytest.mark.parametrize(
    ("code", "earlier", "slot"),
    [
        ("d", timedelta(days=1), "20251023"),
        ("w", timedelta(days=7), "202542"),
        ("m", timedelta(31), "202509"),
    ],
)
async def test_last_is_the_period_before(
    client: AsyncClient, game: str, clock: FixedClock, code: str, earlier: timedelta, slot: str
):
    board, now = f"{game}/highscore/{code}", clock.now
    clock.now = now - earlier // timedelta(microseconds=1)
    await post(client, board, "ada", 3)
    clock.now = now
    await post(client, board, "bob", 4)
    last = (await client.get(f"{board}/last")).json()
    assert (last["slot"], last["entries"]) == (slot, [{"rank": 1, "user": "ada", "value": 3}])
    current = (await client.get(board)).json()
    assert (current["slot"], current["entries"]) == (SLOTS[code], [{"rank": 1, "user": "bob", "value": 4}])


async def test_a_last_period_without_entries_is_empty(client: AsyncClient, game: str):
    await post(client, f"{game}/highscore/d", "ada", 3)
    last = (await client.get(f"{game}/highscore/d/last")).json()
    assert (last["total"], last["entries"]) == (0, [])


async def test_all_time_has_no_last_period(client: AsyncClient, game: str):
    await post(client, f"{game}/highscore/a", "ada", 3)
    status, detail = problem(await client.get(f"{game}/highscore/a/last"))
    assert (status, detail) == (404, "all time has no last period; ask for it without /last")


async def test_weeks_belong_to_their_iso_year(
    client: AsyncClient, game: str, clock: FixedClock, project: str, raw: RawValkey
):
    clock.now = moment_of(datetime(2024, 12, 30, 12, tzinfo=UTC))
    assert (await post(client, f"{game}/highscore/w", "ada", 3))["slot"] == "202501"
    assert raw.client.zscore(f"/leaders/{project}/highscore/w/202501", "ada") == 3


async def test_days_begin_at_midnight_utc(client: AsyncClient, game: str, clock: FixedClock):
    clock.now = moment_of(datetime(2025, 10, 24, 23, 59, 59, 999_999, tzinfo=UTC))
    assert (await post(client, f"{game}/highscore/d", "ada", 3))["slot"] == "20251024"
    clock.now += 1
    assert (await post(client, f"{game}/highscore/d", "ada", 1)) == {
        "game": game.removeprefix("/leaders/"),
        "board": "highscore",
        "range": "d",
        "slot": "20251025",
        "user": "ada",
        "value": 1,
        "rank": 1,
    }


async def test_friends_are_ranked_among_themselves(
    client: AsyncClient, game: str, project: str, raw: RawValkey
):
    board = f"{game}/highscore/d"
    for user, value in (("ada", 9), ("bob", 5), ("eve", 5), ("joe", 1), ("zoe", 7)):
        await post(client, board, user, value)
    answer = (await client.get(f"{board}?friends=joe,bob,eve,nobody")).json()
    assert answer["total"] == 3
    assert sorted((each["rank"], each["user"]) for each in answer["entries"]) == [
        (1, "bob"),
        (1, "eve"),
        (3, "joe"),
    ]
    second = (await client.get(f"{board}?friends=joe,ada,zoe&limit=1&offset=1")).json()
    assert (second["total"], second["entries"]) == (3, [{"rank": 2, "user": "zoe", "value": 7}])
    assert raw.keys(f"/leaders/{project}/") == [f"/leaders/{project}/highscore/d/20251024".encode()]


async def test_friends_of_the_last_period(client: AsyncClient, game: str, clock: FixedClock):
    board = f"{game}/highscore/d"
    for user, value in (("ada", 9), ("bob", 5)):
        await post(client, board, user, value)
    clock.now += timedelta(days=1) // timedelta(microseconds=1)
    answer = (await client.get(f"{board}/last?friends=bob")).json()
    assert answer["entries"] == [{"rank": 1, "user": "bob", "value": 5}]


async def test_a_list_without_friends_has_no_entries(client: AsyncClient, game: str):
    await post(client, f"{game}/highscore/d", "ada", 9)
    assert (await client.get(f"{game}/highscore/d?friends=")).json()["entries"] == []


async def test_friends_may_have_commas_in_their_names(client: AsyncClient, game: str):
    await post(client, f"{game}/highscore/d", "a%2Cb%25", 9)
    answer = await client.get(f"{game}/highscore/d", params={"friends": "a%2Cb%25,eve"})
    assert [each["user"] for each in answer.json()["entries"]] == ["a,b%"]


async def test_offset_and_limit_page_through_a_period(client: AsyncClient, game: str):
    board = f"{game}/highscore/a"
    for number in range(5):
        await post(client, board, f"u{number}", number)
    pages = [
        (await client.get(f"{board}?limit=2&offset={offset}")).json()["entries"] for offset in (0, 2, 4, 6)
    ]
    assert [[each["user"] for each in page] for page in pages] == [["u4", "u3"], ["u2", "u1"], ["u0"], []]
    assert [each["rank"] for page in pages for each in page] == [1, 2, 3, 4, 5]


async def test_json_says_the_same_as_a_form(client: AsyncClient, game: str):
    board = f"{game}/highscore/d"
    assert (await client.post(f"{board}/ada", json={"value": 3})).json()["value"] == 3
    assert (await client.post(f"{board}/ada", json={"value": 4, "type": "inc"})).json()["value"] == 7


async def test_users_are_any_characters(client: AsyncClient, game: str):
    board = f"{game}/highscore/d"
    await post(client, board, "x%2Flast", 2)
    await post(client, board, "last", 1)
    assert [each["user"] for each in (await client.get(board)).json()["entries"]] == ["x/last", "last"]


async def test_a_retry_with_the_same_key_counts_once(client: AsyncClient, game: str):
    for _ in range(2):
        answer = await client.post(
            f"{game}/coins/a/ada", json={"value": 5, "type": "inc"}, headers={"Idempotency-Key": "once"}
        )
        assert answer.json()["value"] == 5


async def test_a_key_stands_for_one_post_and_its_answer(client: AsyncClient, game: str):
    key = {"Idempotency-Key": "once"}
    five = {"value": 5, "type": "inc"}
    first = await client.post(f"{game}/coins/a/ada", json=five, headers=key)
    await post(client, f"{game}/coins/a", "bob", 9)
    again = await client.post(f"{game}/coins/a/ada", json=five, headers=key)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    for path, value in (("ada", five | {"value": 6}), ("eve", five)):
        refused = await client.post(f"{game}/coins/a/{path}", json=value, headers=key)
        assert (refused.status_code, refused.json()["type"]) == (422, "/problems/idempotency-key-reused")
    told = (await client.get(f"{game}/coins/a")).json()["entries"]
    assert [(each["user"], each["value"]) for each in told] == [("bob", 9), ("ada", 5)]


async def test_games_and_boards_are_listed(client: AsyncClient, game: str, project: str, boards: str):
    for path in ("highscore/a", "highscore/d", "earned_coins/w"):
        await post(client, f"{game}/{path}", "ada", 1)
    await client.put(f"{boards}/arcade", json={})
    await client.put(f"{boards}/arcade.d", json={})
    assert project in (await client.get("/leaders/games")).json()["games"]
    assert (await client.get(f"{game}/boards")).json() == {
        "game": project,
        "boards": [
            {"board": "earned_coins", "ranges": ["w"]},
            {"board": "highscore", "ranges": ["d", "a"]},
        ],
    }


async def test_a_game_has_any_number_of_boards(client: AsyncClient, game: str):
    names = [f"board-{number:03}" for number in range(120)]
    for name in names:
        await post(client, f"{game}/{name}/a", "ada", 1)
    listed = (await client.get(f"{game}/boards")).json()["boards"]
    assert [each["board"] for each in listed] == names


async def test_names_of_the_best_practice_are_accepted(client: AsyncClient, game: str, raw: RawValkey):
    await post(client, f"{game}-A.z_9/High-Score_9.z/d", "ada", 1)
    assert raw.client.zscore(f"{game}-A.z_9/High-Score_9.z/d/20251024", "ada") == 1


async def test_timestamps_are_added_automatically(
    client: AsyncClient, game: str, project: str, clock: FixedClock, laurels: Laurels
):
    """A POST says none: the journal has the moment of each."""
    moments = [clock.now, clock.now + 1_500_000]
    for moment in moments:
        clock.now = moment
        await post(client, f"{game}/coins/a", "ada", 1, "inc")
    await laurels.archived(f"{project}/coins.a")
    asked = select(journal.c.at).join(stored, stored.c.id == journal.c.board_id)
    async with laurels.postgres.reading() as connection:
        rows = await connection.execute(asked.where(stored.c.project == project).order_by(journal.c.at))
    assert [row.at for row in rows] == moments


async def test_keys_see_their_own_game(
    client: AsyncClient, anybody: AsyncClient, game: str, project: str, make_key: MakeKey
):
    await post(client, f"{game}/highscore/d", "ada", 1)
    readers = {"Authorization": f"Bearer {await make_key(project, 'read')}"}
    others = {"Authorization": f"Bearer {await make_key(f'{project}-other', 'read', 'submit')}"}
    assert (await anybody.get("/leaders/games", headers=readers)).json() == {"games": [project]}
    assert (await anybody.get("/leaders/games", headers=others)).json() == {"games": []}
    assert (await anybody.get(f"{game}/highscore/d", headers=readers)).status_code == 200
    for path in ("boards", "highscore/d", "nothing/d"):
        assert problem(await anybody.get(f"{game}/{path}", headers=others))[0] == 403
    for headers in (readers, others):
        answer = await anybody.post(f"{game}/highscore/d/ada", json={"value": 9}, headers=headers)
        assert problem(answer)[0] == 403


async def test_concurrent_first_posts_all_succeed(
    client: AsyncClient, game: str, project: str, raw: RawValkey
):
    answers = await asyncio.gather(
        *(client.post(f"{game}/race/d/u{n}", json={"value": n}) for n in range(20))
    )
    assert {answer.status_code for answer in answers} == {200}
    assert raw.client.zcard(f"/leaders/{project}/race/d/20251024") == 20


async def test_first_posts_to_two_processes_both_succeed(
    client: AsyncClient, admin_key: str, game: str, project: str, clock: FixedClock, endpoints: Endpoints
):
    async with (
        Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock) as other,
        AsyncClient(
            transport=ASGITransport(create_app(other)), base_url="http://other.test", headers=client.headers
        ) as other_client,
    ):
        answers = await asyncio.gather(
            *(
                each.post(f"{game}/race{n}/d/{name}", json={"value": n})
                for n in range(5)
                for name, each in (("ada", client), ("bob", other_client))
            )
        )
    assert {answer.status_code for answer in answers} == {200}
    for n in range(5):
        assert (await client.get(f"{game}/race{n}/d")).json()["total"] == 2


async def test_a_board_of_another_shape_is_left_alone(client: AsyncClient, game: str, boards: str):
    await client.put(f"{boards}/highscore.d", json={"aggregate": "sum"})
    for answer in (
        await client.post(f"{game}/highscore/d/ada", json={"value": 1}),
        await client.get(f"{game}/highscore/d"),
    ):
        status, detail = problem(answer)
        assert status == 409
        assert "does not fit the range" in detail
    assert (await client.get(f"{boards}/highscore.d/entries")).json()["total"] == 0


async def test_a_range_whose_keys_are_taken_is_not_made(client: AsyncClient, game: str, boards: str):
    taken = {"windows": [{"period": "daily"}], "keys": {"daily": "/leaders/{project}/highscore/d/{yyyymmdd}"}}
    assert (await client.put(f"{boards}/other", json=taken)).status_code == 201
    status, detail = problem(await client.post(f"{game}/highscore/d/ada", json={"value": 1}))
    assert status == 409
    assert "can make a key of" in detail


async def test_expiry_is_edited_through_the_board_and_stays(
    client: AsyncClient, game: str, boards: str, project: str, clock: FixedClock, raw: RawValkey
):
    await post(client, f"{game}/highscore/d", "ada", 1)
    key = f"/leaders/{project}/highscore/d/20251024"
    assert raw.client.ttl(key) == -1
    definition = (await client.get(f"{boards}/highscore.d")).json()["definition"]
    definition["windows"][0]["keep"] = 2
    assert (await client.put(f"{boards}/highscore.d", json=definition)).status_code == 200
    assert (await post(client, f"{game}/highscore/d", "ada", 2))["value"] == 2
    stored = (await client.get(f"{boards}/highscore.d")).json()["definition"]
    assert stored["windows"][0]["keep"] == 2
    assert raw.client.ttl(key) == 36 * 3600
    clock.now += timedelta(days=1) // timedelta(microseconds=1)
    assert (await client.get(f"{game}/highscore/d/last")).json()["total"] == 1
    definition["windows"][0]["keep"] = 1
    shortened = await client.put(f"{boards}/highscore.d?allow_drop=daily", json=definition)
    assert shortened.status_code == 200
    assert problem(await client.get(f"{game}/highscore/d/last"))[0] == 404


@pytest.mark.parametrize(
    ("path", "sent", "detail"),
    [
        ("b%20d/d/ada", {"value": 1}, "board: must be 1 to 64 of A-Z a-z 0-9 - _ ."),
        ("b" * 63 + "/d/ada", {"value": 1}, "board: must be 1 to 62 of A-Z a-z 0-9 - _ ."),
        ("b/x/ada", {"value": 1}, "range: must be d, w, m or a, not 'x'"),
        ("b/d/ada?limit=1", {"value": 1}, "limit: there is no such parameter; it has none"),
        ("b/d/" + "u" * 257, {"value": 1}, "member: must have 1 to 256 bytes of UTF-8, not 257"),
        ("b/d/ada", {"type": "set"}, "value: is required"),
        ("b/d/ada", {"value": "many"}, "value: must be a number, not 'many'"),
        ("b/d/ada", {"value": "nan"}, "value: must be a number, not 'nan'"),
        ("b/d/ada", {"value": "1e400"}, "value: is out of range"),
        ("b/d/ada", {"value": 1, "type": "max"}, "type: must be inc or set, not 'max'"),
        ("b/d/ada", {"value": 1, "at": 2}, "at: there is no such field; it has: value, type"),
        ("b/d/ada", {"value": ["1", "2"]}, "value: is given more than once"),
    ],
)
async def test_what_is_wrong_is_said_and_makes_no_board(
    client: AsyncClient, game: str, project: str, path: str, sent: dict[str, Any], detail: str
):
    assert problem(await client.post(f"{game}/{path}", data=sent)) == (422, detail)
    assert (await client.get(f"{game}/boards")).json() == {"game": project, "boards": []}


@pytest.mark.parametrize(("value", "number"), [(".5", 0.5), ("5.", 5), ("+5", 5), ("-1e1", -10)])
async def test_a_form_takes_what_is_plainly_a_number(
    client: AsyncClient, game: str, value: str, number: float
):
    answer = await client.post(f"{game}/highscore/d/ada", data={"value": value})
    assert answer.json()["value"] == number


async def test_a_plus_need_not_be_encoded_in_a_form(client: AsyncClient, game: str):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for content, value in ((b"value=+5", 5), (b"value=%2B7", 7), (b"type=inc&value=+.5", 7.5)):
        answer = await client.post(f"{game}/highscore/d/ada", content=content, headers=headers)
        assert answer.json()["value"] == value


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"{", "application/json", 400),
        (b'{"value":"1"}', "application/json", 422),
        (b'{"value":true}', "application/json", 422),
        (b"value=%FF", "application/x-www-form-urlencoded", 422),
        (b"value=1", "text/plain", 415),
        (b"", "application/x-www-form-urlencoded", 422),
    ],
)
async def test_bodies_that_cannot_be_read_are_refused(
    client: AsyncClient, game: str, content: bytes, media_type: str, status: int
):
    answer = await client.post(
        f"{game}/highscore/d/ada", content=content, headers={"Content-Type": media_type}
    )
    assert problem(answer)[0] == status


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("offset=-1", "offset"),
        ("friends=a,,b", "friends"),
        ("friends=%25FF", "friends"),
        ("friends=" + ",".join(f"u{n}" for n in range(1001)), "friends"),
        ("period=daily", "period"),
        ("friends_key=/leaders/friends/ada", "friends_key"),
    ],
)
async def test_queries_that_are_wrong_name_the_parameter(
    client: AsyncClient, game: str, query: str, field: str
):
    await post(client, f"{game}/highscore/d", "ada", 1)
    for path in ("d", "d/last"):
        answer = await client.get(f"{game}/highscore/{path}?{query}")
        assert problem(answer)[0] == 422
        assert answer.json()["errors"][0]["field"] == field


async def test_a_thousand_friends_can_be_asked_for(client: AsyncClient, game: str):
    await post(client, f"{game}/highscore/d", "u999", 1)
    listed = ",".join(f"u{n}" for n in range(1000))
    assert (await client.get(f"{game}/highscore/d?friends={listed}&limit=1000")).json()["total"] == 1
