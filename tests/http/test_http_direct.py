"""Operations run without ASGI's messages: the same answers as by ASGI, over real connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from waiting import eventually
from ways import SCORE, Way, serving

from laurels.access.store.api_keys import digest_of
from laurels.http.middleware import CLIENT_LEFT
from laurels.http.server.connection import Connection
from laurels.http.server.fast_protocol import FastProtocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx
    from fastapi import FastAPI

    from laurels.engine import Laurels

    from .conftest import ClientWith, Logged, MakeKey

# These differ between any two answers.
OWN = {"date", "x-request-id"}

REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a page": ("GET", "/entries?limit=2", {}),
    "a page that is known": ("GET", "/entries", {"headers": {"If-None-Match": "*"}}),
    "a standing": ("GET", "/entries/ada", {}),
    "a standing by an encoded name": ("GET", "/entries/%61da", {}),
    "a member without an entry": ("GET", "/entries/nobody", {}),
    "a neighbourhood": ("GET", "/entries/ada/around?above=1", {}),
    "friends": ("POST", "/entries/among", {"json": {"members": ["ada", "eve"]}}),
    "windows": ("GET", "/windows", {}),
    "a percentile": ("GET", "/percentile/0.5", {}),
    "a distribution": ("GET", "/distribution?buckets=3", {}),
    "a history": ("GET", "/entries/ada/history", {}),
    "snapshots": ("GET", "/snapshots", {}),
    "metadata": ("PATCH", "/entries/ada", {"json": {"metadata": {"level": 1}, "id": "m-1"}}),
    "a batch": ("POST", "/scores/batch", {"json": [SCORE | {"id": "b-1"}, {"member": ""}]}),
    "lines": (
        "POST",
        "/scores/batch",
        {"content": b'{"member":"ada"}\n', "headers": {"Content-Type": "application/x-ndjson"}},
    ),
    "nothing to remove": ("DELETE", "/entries/nobody", {}),
    "an unknown parameter": ("GET", "/entries?x=1", {}),
    "a limit that is too large": ("GET", "/entries?limit=5000", {}),
    "a path that is not UTF-8": ("GET", "/entries/%ff", {}),
    "a wrong method": ("PUT", "/entries", {}),
    "a body of another type": (
        "POST",
        "/entries/among",
        {"content": b"x", "headers": {"Content-Type": "text/plain"}},
    ),
    "a body that is not JSON": (
        "POST",
        "/entries/among",
        {"content": b"{", "headers": {"Content-Type": "application/json"}},
    ),
    "no key": ("GET", "/entries", {"headers": {"Authorization": ""}}),
    "a wrong key": ("GET", "/entries", {"headers": {"Authorization": "Bearer wrong"}}),
    "a browser": ("GET", "/entries/nobody", {"headers": {"Accept": "text/html"}}),
    "an origin": ("GET", "/entries", {"headers": {"Origin": "https://game.example.com"}}),
    "HEAD": ("HEAD", "/entries", {}),
    "a request id": ("GET", "/entries", {"headers": {"X-Request-Id": "mine-1"}}),
}


@pytest.fixture
async def way(app: FastAPI, admin_key: str, client: httpx.AsyncClient) -> AsyncGenerator[Way]:
    assert client
    async with serving(app, admin_key) as way:
        yield way


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The routes of the requests that were run directly."""
    routes: list[str] = []
    protocol: Any = FastProtocol
    run = protocol._run

    async def noted(protocol: FastProtocol, cycle: Any, found: Any) -> None:  # noqa: ANN401  # as in the protocol
        routes.append(found.operation.path)
        await run(protocol, cycle, found)

    monkeypatch.setattr(FastProtocol, "_run", noted)
    return routes


def app_of(client: httpx.AsyncClient) -> FastAPI:
    inside: Any = client
    return inside._transport.app


def comparable(answer: httpx.Response) -> tuple[int, dict[str, str], object]:
    headers = {name: value for name, value in answer.headers.items() if name not in OWN}
    if not answer.content or "json" not in answer.headers["content-type"]:
        return answer.status_code, headers, answer.content
    content: dict[str, object] = answer.json()
    if "request_id" in content:
        headers.pop("content-length")
    return answer.status_code, headers, content | {"request_id": ""}


@pytest.mark.parametrize("what", REQUESTS)
async def test_an_answer_is_the_same_by_both_paths(
    way: Way, client: httpx.AsyncClient, board: str, direct: list[str], what: str
):
    method, path, given = REQUESTS[what]
    for member, score in (("ada", 5), ("bob", 7), ("eve", 5)):
        assert (await client.post(f"{board}/scores", json={"member": member, "score": score})).is_success
    by_asgi = await client.request(method, board + path, **given)
    by_server = await way.client.request(method, board + path, **given)
    if method == "PATCH":  # the id was seen
        assert (by_asgi.json()["applied"], by_server.json()["applied"]) == (True, False)
    elif what == "a browser":
        assert by_server.headers["content-type"] == by_asgi.headers["content-type"]
        assert by_server.status_code == by_asgi.status_code == 404
    else:
        assert comparable(by_server) == comparable(by_asgi)
    if method == "GET" and what != "a browser":  # a head that comes again is not parsed
        again = [await way.client.request(method, board + path, **given) for _ in range(3)]
        assert [comparable(each) for each in again] == [comparable(by_server)] * 3
        del direct[1:]
    assert len(direct) == (what not in {"HEAD", "a wrong method", "a path that is not UTF-8"})
    if what == "a request id":
        assert by_server.headers["x-request-id"] == "mine-1"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the parser got."""
    pieces: list[bytes] = []
    protocol: Any = Connection
    parse = protocol._parse

    def noted(protocol: Connection, data: bytes) -> None:
        pieces.append(data)
        parse(protocol, data)

    monkeypatch.setattr(Connection, "_parse", noted)
    return pieces


async def answered(reading: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reading.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return int(head.split()[1]), await reading.readexactly(length)


async def test_a_read_that_comes_again_is_not_parsed_and_its_key_still_counts(
    way: Way, client: httpx.AsyncClient, board: str, project: str, make_key: MakeKey, parsed: list[bytes]
):
    await client.post(f"{board}/scores", json=SCORE)
    key = await make_key(project, "read")
    head = f"GET {board}/entries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    first, second = [await asyncio.open_connection("127.0.0.1", way.port) for _ in range(2)]

    async def read(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], *pieces: bytes) -> int:
        reading, writing = connection
        before = len(parsed)
        for piece in pieces:
            writing.write(piece)
            await writing.drain()
        status, body = await answered(reading)
        assert (b'"ada"' in body) == (status == 200)
        assert status in {200, 401}
        return len(parsed) - before

    assert [await read(first, head) for _ in range(4)] == [1, 1, 0, 0]
    assert await read(second, head) == 0
    writing = first[1]
    writing.write(head + head)  # pipelined
    assert [(await answered(first[0]))[0] for _ in range(2)] == [200, 200]
    assert await read(first, head) == 0
    keys = (await client.get(f"/v1/projects/{project}/keys")).json()["keys"]
    (identity,) = [each["id"] for each in keys if each["scopes"] == ["read"]]
    assert (await client.delete(f"/v1/projects/{project}/keys/{identity}")).status_code == 204
    await eventually(lambda: app_of(client).state.keyring.recall(digest_of(key)) is None)
    second[1].write(head)
    assert (await answered(second[0]))[0] == 401
    for _, writing in (first, second):
        writing.close()
        await writing.wait_closed()


@pytest.mark.parametrize(
    "lines", ["Connection: close\r\n", "Content-Length: 0\r\n", "Expect: 100-continue\r\n"]
)
async def test_a_read_that_is_not_plain_is_parsed_each_time(
    way: Way, board: str, admin_key: str, parsed: list[bytes], lines: str
):
    head = f"GET {board}/entries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin_key}\r\n{lines}\r\n"
    for _ in range(4):
        reading, writing = await asyncio.open_connection("127.0.0.1", way.port)
        writing.write(head.encode())
        assert (await answered(reading))[0] == 200
        writing.close()
        await writing.wait_closed()
    assert len(parsed) == 4


async def test_a_removal_answers_without_a_body(way: Way, client: httpx.AsyncClient, board: str):
    await client.post(f"{board}/scores", json=SCORE)
    answer = await way.client.delete(f"{board}/entries/ada")
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-length" not in answer.headers
    assert "transfer-encoding" not in answer.headers


async def test_limits_are_in_the_headers(client_with: ClientWith, admin_key: str, boards: str):
    client = await client_with(rate_limit_key="2/hour", access_log="off")
    async with serving(app_of(client), admin_key) as way:
        answers = [await way.client.get(f"{boards}/none/entries") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [404, 404, 429]
    assert answers[0].headers["ratelimit"].startswith('"key";r=1')
    assert answers[2].headers["retry-after"]


async def test_other_origins_get_their_headers(client_with: ClientWith, admin_key: str, board: str):
    client = await client_with(cors_origins="https://game.example.com")
    async with serving(app_of(client), admin_key) as way:
        answer = await way.client.get(f"{board}/entries", headers={"Origin": "https://game.example.com"})
    assert answer.headers["access-control-allow-origin"] == "https://game.example.com"


async def test_a_failure_is_a_problem_and_the_connection_goes_on(
    way: Way, board: str, laurels: Laurels, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(type(laurels.all_windows), "standing", fail)
    answer = await way.client.get(f"{board}/entries/ada")
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/internal")
    assert (await way.client.get(f"{board}/entries")).status_code == 200


async def test_a_client_who_leaves_is_logged_as_such(way: Way, board: str, admin_key: str, logged: Logged):
    head = (
        f"POST {board}/entries/among HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin_key}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    _, writing = await asyncio.open_connection("127.0.0.1", way.port)
    writing.write(head.encode())
    await writing.drain()
    writing.close()
    await eventually(lambda: any(line.get("status") == CLIENT_LEFT for line in logged))


async def test_pipelined_requests_are_answered_in_order(way: Way, board: str, admin_key: str):
    requests = "".join(
        f"GET {board}/entries/m{number} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin_key}\r\n\r\n"
        for number in range(100)
    )
    reading, writing = await asyncio.open_connection("127.0.0.1", way.port)
    writing.write(requests.encode())
    for number in range(100):
        head = (await reading.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert f"entries/m{number}".encode() in await reading.readexactly(length)
    writing.close()
    await writing.wait_closed()


async def test_a_client_that_reads_nothing_is_not_answered_without_end(
    way: Way, client: httpx.AsyncClient, board: str, admin_key: str
):
    """The answers would pile up in memory."""
    batch = [
        {"member": f"m{number}", "score": number, "metadata": {"x": "y" * 500}} for number in range(1000)
    ]
    await client.post(f"{board}/scores/batch", json=batch)
    request = (
        f"GET {board}/entries?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin_key}\r\n\r\n"
    )
    _, writing = await asyncio.open_connection("127.0.0.1", way.port)
    writing.write(request.encode() * 64)
    protocols: Any = way.state.connections
    await eventually(lambda: any(each.flow.write_paused for each in protocols))
    (protocol,) = [each for each in protocols if each.flow.write_paused]
    unread = protocol.wire.get_write_buffer_size()
    assert (await way.client.get(f"{board}/entries?limit=1")).status_code == 200
    assert protocol.wire.get_write_buffer_size() <= unread + 2**20
    writing.close()
