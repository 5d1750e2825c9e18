"""The fast way in: the same answers as the operation's, to what is plain; and nothing else."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from player_tokens import bearer, signed, token
from ways import SCORE, Way, known, request_of, serving

from laurels.access import credential_cache
from laurels.access.store.secrets import NewSecret
from laurels.engine import Laurels
from laurels.http.app import create_app
from laurels.http.middleware import CLIENT_LEFT
from laurels.http.server import fast_protocol
from laurels.http.server.fast_protocol import HEAD_BYTES, MOST_HEADS, FastProtocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx
    from fastapi import FastAPI

    from laurels.embedded import Endpoints

    from .conftest import Logged, MakeKey

PACKED = gzip.compress(msgspec.json.encode(SCORE), mtime=0)
# Of which no two answers are alike.
OWN = ("date", "x-request-id", "content-length")


@pytest.fixture
async def way(
    app: FastAPI, admin_key: str, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Way]:
    assert client
    # However slow the machine is: what is known stays known, and bodies are waited for.
    monkeypatch.setattr(credential_cache, "FRESH_SECONDS", 3600.0)
    monkeypatch.setattr(fast_protocol, "HOLD_SECONDS", 60.0)
    async with serving(app, admin_key) as way:
        yield way


async def same_from_both(way: Way, client: httpx.AsyncClient, board: str, **given: Any) -> httpx.Response:  # noqa: ANN401  # httpx's own
    """What the server answers, once it is found to be what the operation answers."""
    by_server = await way.post(board, **given)
    by_operation = await client.post(f"{board}/scores", **request_of(given))
    assert by_server.status_code == by_operation.status_code
    assert by_server.headers["content-type"] == by_operation.headers["content-type"]
    if by_server.is_error:
        told = [{**answer.json(), "request_id": ""} for answer in (by_server, by_operation)]
        assert told[0] == told[1]
    return by_server


async def test_a_plain_score_is_taken_and_answered_as_the_operation_answers(
    way: Way, client: httpx.AsyncClient, board: str
):
    await known(way, board)
    by_express = await way.post(board)
    by_operation = await client.post(f"{board}/scores", json=SCORE | {"member": "bob"})
    assert way.taken == [True]
    one, other = by_express.json(), by_operation.json()
    assert one == other | {
        "member": "ada", "id": one["id"], "previous_rank": None, "rank": 1, "applied": True
    }  # fmt: skip
    assert list(one) == list(other)
    headers = [
        {name: value for name, value in answer.headers.items() if name not in OWN}
        for answer in (by_express, by_operation)
    ]
    assert headers[0] == headers[1]
    assert by_express.headers["x-request-id"] != by_operation.headers["x-request-id"]
    assert (await client.get(f"{board}/entries/ada")).json()["score"] == 1200


async def test_groups_moments_ids_and_metadata_are_taken_too(way: Way, client: httpx.AsyncClient, board: str):
    await known(way, board)
    given = SCORE | {
        "groups": {"country": "BR"}, "at": "2025-10-24T11:59:00Z", "metadata": {"level": 7}, "id": "x-1"
    }  # fmt: skip
    assert (await way.post(board, json=given)).json()["applied"] is True
    assert (await way.post(board, json=given)).json()["applied"] is False
    assert way.taken == [True, True]
    entry = (await client.get(f"{board}/entries/ada", params={"group": "country=BR"})).json()
    assert (entry["rank"], entry["metadata"]) == (1, {"level": 7})


async def test_whole_numbers_beyond_doubles_come_back_in_digits(way: Way, int64_board: str):
    await known(way, int64_board)
    answer = await way.post(int64_board, json={"member": "ada", "score": str(2**63 - 1)})
    assert way.taken == [True]
    assert answer.json()["score"] == str(2**63 - 1)


async def test_a_request_id_of_the_clients_own_comes_back(way: Way, board: str):
    await known(way, board)
    answer = await way.post(board, headers={"X-Request-Id": "mine-1"})
    assert (way.taken, answer.headers["x-request-id"]) == ([True], "mine-1")
    answer = await way.post(board, headers={"X-Request-Id": "not fit"})
    assert answer.headers["x-request-id"] != "not fit"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"headers": {"Idempotency-Key": "k" * 201}}, 422),
        ({"headers": {"Laurels-Durability": "fast"}}, 200),
        ({"headers": {"Laurels-Durability": "some"}}, 422),
        ({"headers": {"Content-Encoding": "gzip"}, "content": PACKED}, 200),
        ({"headers": {"Content-Encoding": "rot13"}}, 415),
        ({"headers": {"Content-Type": "application/json; charset=utf-8"}}, 200),
        ({"headers": {"Content-Type": "text/plain"}}, 415),
        ({"headers": {"Origin": "https://elsewhere.example"}}, 200),
        ({"headers": {"X-Laurels-Signature": "v1=00"}}, 401),
        ({"params": {"x": "1"}}, 422),
        ({"content": b"{"}, 400),
        ({"content": b""}, 400),
        ({"content": b'{"member":"\xff","score":1}'}, 400),
        ({"content": b'{"member":"ada","score":1,"metadata":{"x":' + b"[" * 5_000}, 400),
        ({"json": {"member": "", "score": 1}}, 422),
        ({"json": {"member": "ada", "score": "many"}}, 422),
        ({"json": SCORE | {"groups": {"planet": "Mars"}}}, 422),
        ({"json": SCORE | {"colour": "red"}}, 422),
        ({"headers": {"Authorization": "Basic eDp5"}}, 401),
        ({"headers": {"Authorization": "Bearer nobody-s"}}, 401),
    ],
)  # fmt: skip
async def test_what_is_not_plain_is_left_to_the_operation(
    way: Way, client: httpx.AsyncClient, board: str, given: dict[str, Any], status: int
):
    await known(way, board)
    given = {name: value for name, value in given.items() if name != "headers"} | {
        "headers": {"Content-Type": "application/json"} | given.get("headers", {})
    }
    answer = await same_from_both(way, client, board, **given)
    assert (way.taken, answer.status_code) == ([False], status)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Content-Type", "text/plain"),
        ("Authorization", "Bearer another"),
        ("Idempotency-Key", "another"),
    ],
)
async def test_a_header_that_comes_twice_is_left_to_the_operation(
    way: Way, client: httpx.AsyncClient, board: str, header: str, value: str
):
    await known(way, board)
    own = {
        "Content-Type": "application/json",
        "Authorization": way.client.headers["Authorization"],
        "Idempotency-Key": "k-1",
    }
    for twice in ([value, own[header]], [own[header], value]):
        headers = [(name, given) for name, given in own.items() if name != header]
        headers += [(header, given) for given in twice]
        await same_from_both(way, client, board, content=msgspec.json.encode(SCORE), headers=headers)
    assert way.taken == [False, False]


async def test_other_methods_and_paths_are_left_to_their_operations(
    way: Way, client: httpx.AsyncClient, board: str, boards: str
):
    await known(way, board)
    assert (await way.client.put(f"{board}/scores", json=SCORE)).status_code == 405
    assert (await way.client.post(f"{board}/scores/batch", json=[SCORE])).json()["accepted"] == 1
    assert (await way.client.get(f"{board}/entries")).json()["total"] == 2
    assert (await way.post(f"{boards}/none")).status_code == 404
    percent_encoded = board.replace("arcade", "%61rcade")
    assert (await way.post(percent_encoded)).status_code == 200
    assert way.taken == [False] * 5


async def test_who_may_not_submit_is_refused_and_a_revoked_key_at_once(
    way: Way, client: httpx.AsyncClient, laurels: Laurels, board: str, project: str, make_key: MakeKey
):
    await known(way, board)
    for key in (await make_key(project, "read"), await make_key("another", "submit")):
        for _ in range(2):  # the second time the key is remembered
            answer = await same_from_both(way, client, board, headers=bearer(key))
            assert answer.status_code == 403
    made, secret = await laurels.keys.create(project, ("submit",))
    for _ in range(2):
        assert (await way.post(board, headers=bearer(secret))).status_code == 200
    assert way.taken == [False] * 5 + [True]
    assert (await client.delete(f"/v1/projects/{project}/keys/{made.id}")).is_success
    assert (await way.post(board, headers=bearer(secret))).status_code == 401


@pytest.fixture
async def of_players(
    way: Way, client: httpx.AsyncClient, laurels: Laurels, boards: str, project: str
) -> tuple[str, str]:
    """A board that players submit to, which the server knows; and the secret of their tokens."""
    board = f"{boards}/players"
    assert (await client.put(board, json={"player_writes": True})).status_code == 201
    _, secret = await laurels.secrets.create(project, NewSecret("players"))
    await known(way, board)
    player = bearer(token(secret or "", project, "first"))
    while not any(way.taken):  # until the token is known
        assert (await way.post(board, json={"score": 1}, headers=player)).status_code == 200
    way.taken.clear()
    return board, secret or ""


async def test_a_players_score_is_taken_and_answered_as_the_operation_answers(
    way: Way, client: httpx.AsyncClient, of_players: tuple[str, str], project: str
):
    board, secret = of_players
    player = bearer(token(secret, project, "joe"))
    given = {"json": {"score": 5, "id": "mine"}, "headers": player}
    by_operation = await client.post(f"{board}/scores", json=given["json"], headers=player)
    again = await same_from_both(way, client, board, **given)
    assert again.json() == {**by_operation.json(), "applied": False, "previous_score": 5, "previous_rank": 1}
    assert again.json()["id"] == "mine"
    better = await way.post(board, json={"member": "joe", "score": 6}, headers=player)
    assert (better.json()["applied"], better.json()["previous_score"]) == (True, 5)
    assert way.taken == [True, True]


@pytest.mark.parametrize(
    ("sent", "status"),
    [({"member": "ada", "score": 5}, 403), ({"score": "x"}, 422), ({"score": 5, "own_groups": {}}, 422)],
)
async def test_what_a_player_may_not_send_is_left_to_the_operation(
    way: Way,
    client: httpx.AsyncClient,
    of_players: tuple[str, str],
    project: str,
    sent: dict[str, Any],
    status: int,
):
    board, secret = of_players
    player = bearer(token(secret, project, "first"))
    answer = await same_from_both(way, client, board, json=sent, headers=player)
    assert (answer.status_code, way.taken) == (status, [False])


async def test_a_token_of_another_time_or_board_is_left_to_the_operation(
    way: Way, client: httpx.AsyncClient, of_players: tuple[str, str], board: str, project: str
):
    of_board, secret = of_players
    await known(way, board)
    player = bearer(token(secret, project, "first"))
    other_board = await same_from_both(way, client, board, json={"score": 5}, headers=player)
    assert other_board.status_code == 403
    expired = bearer(token(secret, project, "first", exp=1))
    old = await same_from_both(way, client, of_board, json={"score": 5}, headers=expired)
    assert (old.status_code, way.taken) == (401, [False, False])


async def test_a_score_with_a_key_is_taken_and_repeated_as_the_operation_does(
    way: Way, client: httpx.AsyncClient, of_players: tuple[str, str], project: str
):
    board, secret = of_players
    player = bearer(token(secret, project, "first"))
    for number, headers in enumerate(({}, player)):
        key = {"Idempotency-Key": f"k-{number}", **headers}
        sent = {"member": "first", "score": 10 + number}
        first = await way.post(board, json=sent, headers=key)
        assert (first.status_code, first.json()["applied"]) == (200, True)
        assert "idempotency-replayed" not in first.headers
        assert first.json()["id"] == f"k-{number}"
        for answer in (
            await way.post(board, json=sent, headers=key),
            await client.post(f"{board}/scores", json=sent, headers=key),
        ):
            assert (answer.content, answer.headers["idempotency-replayed"]) == (first.content, "true")
        other = await same_from_both(way, client, board, json={**sent, "score": 99}, headers=key)
        assert other.json()["type"] == "/problems/idempotency-key-reused"
        unlike = await same_from_both(way, client, board, json={**sent, "id": "another"}, headers=key)
        assert unlike.json()["errors"][0]["field"] == "id"
    assert way.taken == [True, True, True, False] * 2


async def test_where_signatures_are_required_the_operation_verifies_them(
    way: Way, client: httpx.AsyncClient, laurels: Laurels, of_players: tuple[str, str], project: str
):
    board, _ = of_players
    assert client
    _, of_signatures = await laurels.secrets.create(project, NewSecret("signatures", required=True))
    content = msgspec.json.encode(SCORE)
    json = {"Content-Type": "application/json"}
    while (refused := await way.post(board, content=content, headers=json)).status_code == 200:
        pass  # not heard of yet
    assert refused.json()["type"] == "/problems/bad-signature"
    answer = await way.post(
        board, content=content, headers=json | signed(of_signatures or "", f"{board}/scores", content)
    )
    assert answer.status_code == 200
    assert not any(way.taken[-2:])


async def test_limits_count_each_request_once_and_tell_what_is_left(
    endpoints: Endpoints,
    admin_key: str,
    client: httpx.AsyncClient,
    board: str,
    monkeypatch: pytest.MonkeyPatch,
):
    assert client
    monkeypatch.setenv("LAURELS_RATE_LIMIT_KEY", "6/hour")
    async with (
        Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as limited,
        serving(create_app(limited), (await limited.keys.create("*", ("submit",)))[1]) as way,
    ):
        answers = [await way.post(board, headers={"X-Request-Id": "mine"}) for _ in range(7)]
    assert admin_key
    assert [answer.status_code for answer in answers] == [200] * 6 + [429]
    assert way.taken[-1], "the first are not, until the process knows key, secrets and board"
    left = [answer.headers["ratelimit"].partition(";r=")[2].partition(";")[0] for answer in answers]
    assert left == ["5", "4", "3", "2", "1", "0", "0"]
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"key";q=6;w=3600'}
    assert answers[-1].json()["type"] == "/problems/rate-limited"
    assert int(answers[-1].headers["retry-after"]) > 0


async def test_what_only_the_store_can_refuse_is_a_problem_as_the_operation_tells_it(
    way: Way, client: httpx.AsyncClient, boards: str
):
    board = f"{boards}/limited"
    assert (await client.put(board, json={"limits": {"max_change": 10}})).status_code == 201
    await known(way, board)
    assert (await way.post(board, json={"member": "ada", "score": 1})).status_code == 200
    answer = await same_from_both(way, client, board)
    assert (way.taken, answer.status_code) == ([True, True], 422)
    assert "max_change" in answer.text
    assert (await way.post(board, json={"member": "ada", "score": 2})).status_code == 200


def raw(board: str, key: str, body: bytes, version: str = "1.1", *more: str) -> bytes:
    lines = (
        f"POST {board}/scores HTTP/{version}", "Host: laurels", f"Authorization: Bearer {key}",
        "Content-Type: application/json", f"Content-Length: {len(body)}", *more, "", "",
    )  # fmt: skip
    return "\r\n".join(lines).encode() + body


@dataclass(frozen=True)
class Talk:
    """One connection to the server."""

    reading: asyncio.StreamReader
    writing: asyncio.StreamWriter

    async def answer(self) -> tuple[str, dict[str, Any]]:
        """The next: its head, in small letters, and what its body says."""
        head = (await self.reading.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        return head, msgspec.json.decode(await self.reading.readexactly(length))


@pytest.fixture
async def talk(way: Way) -> AsyncGenerator[Talk]:
    reading, writing = await asyncio.open_connection("127.0.0.1", way.port)
    yield Talk(reading, writing)
    writing.close()


@pytest.mark.parametrize(("held", "taken"), [(60.0, [True, True]), (0.0, [True])])
async def test_a_body_right_behind_its_head_is_taken_and_a_later_one_waited_for_by_the_operation(
    way: Way,
    talk: Talk,
    board: str,
    admin_key: str,
    monkeypatch: pytest.MonkeyPatch,
    held: float,
    taken: list[bool],
):
    monkeypatch.setattr(fast_protocol, "HOLD_SECONDS", held)
    await known(way, board)
    first, second = (
        raw(board, admin_key, msgspec.json.encode({"member": member, "score": 1})) for member in "ab"
    )
    head, _, body = second.partition(b"\r\n\r\n")
    talk.writing.write(first + head + b"\r\n\r\n")
    assert (await talk.answer())[1]["member"] == "a"  # so the head of the second is there as well
    talk.writing.write(body)
    assert (await talk.answer())[1]["member"] == "b"
    assert way.taken == taken


async def test_whoever_leaves_behind_a_head_is_told_of_as_any_that_left(
    way: Way, talk: Talk, board: str, admin_key: str, logged: Logged, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fast_protocol, "HOLD_SECONDS", 60.0)
    await known(way, board)
    talk.writing.write(raw(board, admin_key, b"{}")[:-2])
    while way.read == 0:  # noqa: ASYNC110  # of another task, which has no event for it
        await asyncio.sleep(0)
    talk.writing.transport.abort()
    while not any(line.get("status") == CLIENT_LEFT for line in logged):  # noqa: ASYNC110  # as above
        await asyncio.sleep(0)
    assert way.taken == []


def scores(board: str, key: str, *members: str) -> list[bytes]:
    """Requests whose heads are alike where the members are as long."""
    return [raw(board, key, msgspec.json.encode({"member": member, "score": 7})) for member in members]


async def test_a_head_that_was_read_is_not_read_again(way: Way, talk: Talk, board: str, admin_key: str):
    await known(way, board)
    requests = scores(board, admin_key, "a", "b", "cc", "dd", "e", "f")
    ids: set[str] = set()
    for request, member in zip(requests, ("a", "b", "cc", "dd", "e", "f"), strict=True):
        talk.writing.write(request)
        head, told = await talk.answer()
        assert told["member"] == member
        ids.add(head.partition("x-request-id: ")[2].partition("\r\n")[0])
    assert (way.taken, way.read, len(ids)) == ([True] * 6, 2, 6)


async def test_a_known_head_is_answered_with_the_date_of_its_answer(
    way: Way, talk: Talk, board: str, admin_key: str
):
    await known(way, board)
    dates: list[str] = []
    for request, date in zip(scores(board, admin_key, "a", "b"), (b"the first", b"the second"), strict=True):
        way.state.default_headers = [(b"date", date)]  # as the server does every second
        talk.writing.write(request)
        dates.append((await talk.answer())[0].partition("date: ")[2].partition("\r\n")[0])
    assert (dates, way.read) == (["the first", "the second"], 1)


async def test_a_connection_of_known_heads_is_closed_once_it_is_idle_and_not_before(
    way: Way, talk: Talk, board: str, admin_key: str
):
    await known(way, board)
    first, *others = scores(board, admin_key, "a", "b", "c")
    talk.writing.write(first)
    await talk.answer()
    own: tuple[str, int] = talk.writing.get_extra_info("sockname")
    (connection,) = (each for each in cast("set[FastProtocol]", way.state.connections) if each.client == own)
    now = asyncio.get_running_loop().time() + 1e6  # later than whatever looks by the clock
    for request in others:
        connection.check_deadline(now)
        now += connection.timeout_keep_alive - 1
        connection.check_deadline(now)
        talk.writing.write(request)
        assert "200 ok" in (await talk.answer())[0]
    connection.check_deadline(now)
    connection.check_deadline(now + connection.timeout_keep_alive)
    assert await talk.reading.read() == b""


async def test_a_known_head_with_a_bad_body_is_refused_by_the_operation_and_the_next_is_taken(
    way: Way, talk: Talk, board: str, admin_key: str
):
    await known(way, board)
    first, second = scores(board, admin_key, "a", "b")
    talk.writing.write(first)
    await talk.answer()
    talk.writing.write(second.replace(b'"score":7', b'"score":x'))
    head, problem = await talk.answer()
    assert (head.split()[1], problem["type"]) == ("400", "/problems/malformed")
    talk.writing.write(second)
    assert (await talk.answer())[1]["member"] == "b"
    assert (way.taken, way.read) == ([True, False, False, True], 2)


async def test_a_known_head_in_pieces_or_too_long_is_read(way: Way, talk: Talk, board: str, admin_key: str):
    await known(way, board)
    first, second, third, fourth = scores(board, admin_key, "a", "b", "c", "d")
    talk.writing.write(first)
    await talk.answer()
    talk.writing.write(second + third[:40])
    assert (await talk.answer())[1]["member"] == "b"
    talk.writing.write(third[40:])
    assert (await talk.answer())[1]["member"] == "c"
    assert way.read == 3
    talk.writing.write(fourth)
    assert (await talk.answer())[1]["member"] == "d"
    assert way.read == 3


async def test_a_known_head_whose_key_was_revoked_is_refused(
    way: Way, talk: Talk, client: httpx.AsyncClient, laurels: Laurels, board: str, project: str
):
    await known(way, board)
    made, secret = await laurels.keys.create(project, ("submit",))
    assert (await way.post(board, headers=bearer(secret))).status_code == 200
    before = way.read
    for request in scores(board, secret, "a", "b"):
        talk.writing.write(request)
        assert "200 ok" in (await talk.answer())[0]
    assert way.read == before + 1
    assert (await client.delete(f"/v1/projects/{project}/keys/{made.id}")).is_success
    talk.writing.write(scores(board, secret, "c")[0])
    assert "401 unauthorized" in (await talk.answer())[0]
    assert (await client.get(f"{board}/entries/c")).status_code == 404


async def test_a_known_head_that_only_the_store_can_refuse_is_a_problem_and_the_next_is_read(
    way: Way, talk: Talk, client: httpx.AsyncClient, boards: str, admin_key: str
):
    board = f"{boards}/limited"
    assert (await client.put(board, json={"limits": {"max_change": 10}})).status_code == 201
    await known(way, board)
    bodies = [msgspec.json.encode({"member": "ada", "score": score}) for score in (10, 99, 11, 12)]
    statuses: list[str] = []
    for body in bodies:
        talk.writing.write(raw(board, admin_key, body))
        statuses.append((await talk.answer())[0].split()[1])
    assert (statuses, way.taken, way.read) == (["200", "422", "200", "200"], [True] * 4, 2)


async def test_requests_of_one_head_sent_at_once_are_answered_in_their_order(
    way: Way, talk: Talk, board: str, admin_key: str
):
    await known(way, board)
    requests = scores(board, admin_key, *"abcdefgh")
    for request in requests[:4]:  # in pieces of their own, while others are under way
        talk.writing.write(request)
        await asyncio.sleep(0)
    talk.writing.write(b"".join(requests[4:]))
    assert [(await talk.answer())[1]["member"] for _ in requests] == list("abcdefgh")


async def test_a_client_of_many_heads_is_served_as_any(way: Way, talk: Talk, board: str, admin_key: str):
    await known(way, board)
    for length in (*range(1, 2 * MOST_HEADS), 1):
        talk.writing.write(scores(board, admin_key, "x" * length)[0])
        assert (await talk.answer())[1]["member"] == "x" * length
    assert way.read == 2 * MOST_HEADS


async def test_a_head_that_is_long_is_read_each_time(way: Way, talk: Talk, board: str, admin_key: str):
    await known(way, board)
    for _ in range(2):
        talk.writing.write(
            raw(board, admin_key, msgspec.json.encode(SCORE), "1.1", f"X-Long: {'x' * HEAD_BYTES}")
        )
        assert (await talk.answer())[1]["member"] == "ada"
    assert (way.taken, way.read) == ([True, True], 2)


async def test_requests_in_a_row_are_answered_in_their_order(
    way: Way, talk: Talk, board: str, admin_key: str
):
    await known(way, board)
    bodies = [msgspec.json.encode({"member": f"m{number}", "score": number}) for number in range(4)]
    talk.writing.write(b"".join(raw(board, admin_key, body) for body in bodies))
    assert [(await talk.answer())[1]["member"] for _ in bodies] == ["m0", "m1", "m2", "m3"]


@pytest.mark.parametrize(("version", "header"), [("1.0", ()), ("1.1", ("Connection: close",))])
async def test_whoever_asks_once_is_answered_and_the_connection_closed(
    way: Way, talk: Talk, board: str, admin_key: str, version: str, header: tuple[str, ...]
):
    await known(way, board)
    talk.writing.write(raw(board, admin_key, msgspec.json.encode(SCORE), version, *header))
    head, told = await talk.answer()
    assert "\r\nconnection: close\r\n" in head
    assert told["member"] == "ada"
    assert await talk.reading.read() == b""
    assert way.taken == [True]


async def test_whoever_leaves_before_the_answer_harms_nobody(
    way: Way, talk: Talk, client: httpx.AsyncClient, board: str, admin_key: str
):
    await known(way, board)
    talk.writing.write(raw(board, admin_key, msgspec.json.encode(SCORE)))
    talk.writing.transport.abort()
    while (await client.get(f"{board}/entries/ada")).status_code == 404:
        pass
    assert (await way.post(board)).status_code == 200


async def test_it_is_counted_and_logged_as_any_request(
    way: Way, client: httpx.AsyncClient, board: str, logged: Logged
):
    await known(way, board)
    series = 'laurels_http_requests_total{method="POST",route="/v1/projects/{project}/boards/{board}/scores",'

    async def counted() -> float:
        lines = (await client.get("/metrics")).text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(series + 'status="200"'))

    before = await counted()
    answer = await way.post(board)
    assert await counted() == before + 1
    line = next(line for line in reversed(logged) if line["event"] == "request" and line["method"] == "POST")
    assert (line["path"], line["status"], line["client"]) == (f"{board}/scores", 200, "127.0.0.1")
    assert line.get("request_id") == answer.headers["x-request-id"]
