"""Whatever is wrong is refused by its name and leaves no trace: through a real server, byte by byte."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from bad_input import JSON, LINES, Case, groups_of_cases, submissions

from laurels.http import body
from laurels.http.server.fast_protocol import FastProtocol
from laurels.valkey import hashes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fastapi import FastAPI
    from httpx import AsyncClient

    from laurels.engine import Laurels

CASES = groups_of_cases()
AT_ONCE = 8


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def problem(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass(frozen=True)
class Sender:
    """Sends what no client would."""

    port: int
    key: str
    project: str

    def target(self, case: Case) -> str:
        if case.target.startswith("!"):
            return case.target[1:]
        boards = f"/v1/projects/{self.project}/boards"
        if case.target.startswith("@"):
            return f"{boards}/{case.target[1:]}"
        return f"{boards}/arcade{case.target}"

    def head(self, case: Case) -> bytes:
        given = {
            "Host": b"laurels.test",
            "Connection": b"close",
            "Authorization": b"Bearer " + self.key.encode(),
            **({} if case.body is None else {"Content-Type": JSON, "Content-Length": b"%d" % len(case.body)}),
            **case.headers,
        }
        lines = [f"{case.method} {self.target(case)} HTTP/1.1".encode()]
        return b"\r\n".join(
            [*lines, *(name.encode() + b": " + value for name, value in given.items()), b"", b""]
        )

    async def send(self, *pieces: bytes) -> Answer:
        """The pieces, and no more: a reader of more waits."""
        reading, writing = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writing.write(piece)
            head, _, content = (await reading.read(-1)).partition(b"\r\n\r\n")
        finally:
            writing.close()
        status, *lines = head.decode("latin-1").split("\r\n")
        named = (line.partition(": ") for line in lines)
        return Answer(int(status.split(" ")[1]), {name.lower(): value for name, _, value in named}, content)

    async def ask(self, case: Case) -> Answer:
        return await self.send(self.head(case), case.body or b"")


@pytest.fixture(scope="session")
async def port(app: FastAPI) -> AsyncGenerator[int]:
    config = uvicorn.Config(app, http=FastProtocol, log_config=None, access_log=False, proxy_headers=False)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await serving


@pytest.fixture
async def sender(
    client: AsyncClient, scored: str, boards: str, port: int, admin_key: str, project: str
) -> Sender:
    """To a board with four entries, and one of int64 scores."""
    assert (await client.put(f"{boards}/int64", json={"score": "int64"})).status_code == 201
    assert (
        await client.post(f"{boards}/int64/scores", json={"member": "ada", "score": 1})
    ).status_code == 200
    return Sender(port, admin_key, project)


async def written(laurels: Laurels, project: str) -> dict[str, object]:
    """Everything that both stores hold about the project, and which projects there are."""
    found: dict[str, object] = {"projects": await laurels.store.projects()}
    for stored in await laurels.store.boards(project):
        found[f"definition of {stored.board}"] = (stored.version, stored.definition)
    cursor = b"0"
    while True:
        cursor, keys = await laurels.valkey.command(
            "SCAN", cursor, "MATCH", f"*{{{project}/*", "COUNT", 10_000
        )
        for key in keys:
            if key.endswith(b":board"):
                fields = await laurels.valkey.run(hashes.get_all(key.decode()))
                # Since when answers are remembered: a refused request may be the first that has a key.
                fields.pop(b"once", None)
                found[key.decode()] = fields
            else:
                found[key.decode()] = await laurels.valkey.command("DUMP", key)
        if cursor in {b"0", 0}:
            return found


def wrong_with(case: Case, answer: Answer) -> str | None:
    """What is wrong with the answer to something wrong; None if it is as it should be."""
    if answer.status not in case.status:
        return f"{answer.status} is none of {case.status}"
    if "x-request-id" not in answer.headers:
        return "no X-Request-Id"
    if answer.headers.get("content-type") != "application/problem+json":
        return f"of the type {answer.headers.get('content-type')}"
    problem = {} if case.method == "HEAD" else answer.problem()
    if problem and not (problem["detail"] and problem["status"] == answer.status):
        return "not a problem in full"
    fields = [each["field"] for each in problem.get("errors", [])]
    if case.field and answer.status == 422 and not any(_names(given, case.field) for given in fields):
        return f"names {fields}, not {case.field!r}"
    return None


def _names(given: str, expected: str) -> bool:
    """`windows[0].keep` is about `windows`."""
    return given == expected or given.startswith((f"{expected}.", f"{expected}["))


def test_there_are_thousands_of_cases():
    cases = [str(case) for group in CASES.values() for case in group]
    assert len(set(cases)) >= 2000


@pytest.mark.parametrize("group", CASES)
async def test_what_is_wrong_is_refused_by_its_name_and_changes_nothing(
    group: str, sender: Sender, laurels: Laurels, project: str
):
    before = await written(laurels, project)
    turns = asyncio.Semaphore(AT_ONCE)

    async def ask(case: Case) -> str | None:
        async with turns:
            answer = await sender.ask(case)
        wrong = wrong_with(case, answer)
        return None if wrong is None else f"{wrong}: {case}\n    {answer.body[:300]!r}"

    wrong = [found for found in await asyncio.gather(*map(ask, CASES[group])) if found]
    assert not wrong, f"{len(wrong)} of {len(CASES[group])}:\n" + "\n".join(wrong[:40])
    assert await written(laurels, project) == before


@pytest.mark.parametrize("name", ["arcade", "int64"])
@pytest.mark.parametrize("kind", [JSON, LINES])
async def test_a_batch_of_wrong_submissions_names_each_and_changes_nothing(
    name: str, kind: bytes, sender: Sender, laurels: Laurels, project: str
):
    before = await written(laurels, project)
    given = [(field, sent) for field, sent in submissions(int64=name == "int64") if b"\n" not in sent]
    whole = (
        b"[" + b",".join(sent for _, sent in given) + b"]"
        if kind == JSON
        else b"\n".join(sent for _, sent in given)
    )
    answer = await sender.ask(Case("POST", f"@{name}/scores/batch", whole, {"Content-Type": kind}))
    assert answer.status == 200, answer.body
    found = answer.problem()
    assert found["accepted"] == 0
    assert [each["index"] for each in found["rejected"]] == list(range(len(given)))
    for (field, sent), each in zip(given, found["rejected"], strict=True):
        assert (
            each["detail"].startswith(f"{field}:") or b"e400" in sent or b"e309" in sent or len(sent) > 300
        ), (
            field,
            sent,
            each,
        )
    assert await written(laurels, project) == before


@pytest.mark.parametrize(
    ("path", "limit"),
    [("/scores", body.BODY_BYTES), ("/entries/among", body.BODY_BYTES), ("/scores/batch", body.BATCH_BYTES)],
)
async def test_a_body_that_is_too_large_is_refused_by_what_it_declares_or_becomes(
    path: str, limit: int, sender: Sender, laurels: Laurels, project: str
):
    before = await written(laurels, project)
    declared = {"Content-Length": b"%d" % (limit + 1), "Content-Type": JSON}
    answer = await sender.send(sender.head(Case("POST", path, None, declared)))
    assert answer.status == 413
    chunked = {"Transfer-Encoding": b"chunked", "Content-Type": JSON}
    piece = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    pieces = [piece] * (limit // 2**16 + 1)
    answer = await sender.send(sender.head(Case("POST", path, None, chunked)), *pieces)
    assert answer.status == 413
    assert answer.problem()["type"] == "/problems/too-large"
    assert await written(laurels, project) == before


@pytest.mark.parametrize("path", ["/scores", "/scores/batch", "/entries/among", "@new"])
@pytest.mark.parametrize("sent", [b"", b'{"member":"zed",'])
async def test_a_slow_body_is_given_up_and_changes_nothing(
    path: str, sent: bytes, sender: Sender, laurels: Laurels, project: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(body, "STALL_SECONDS", 0.02)
    before = await written(laurels, project)
    headers = {"Content-Length": b"100", "Content-Type": JSON, "Connection": b"keep-alive"}
    method = "PUT" if path == "@new" else "POST"
    answer = await sender.send(sender.head(Case(method, path, None, headers)), sent)
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert answer.problem()["type"] == "/problems/stalled"
    assert await written(laurels, project) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("If-None-Match", value)
            for value in (b"", b'"', b"W/", b"\xff", b"x" * 5000, b",,,", b'"a', b'W/"x",')
        ),
        *(("X-Request-Id", value) for value in (b"", b"a b", b"\xff", b"x" * 129, b"\xc3\xa9", b"a\tb")),
        *(("Accept", value) for value in (b"", b"text/html", b"\xff", b";;;", b"x" * 5000)),
        *(("Accept-Encoding", value) for value in (b"", b"\xff", b"br;q=x")),
        *(("Content-Type", value) for value in (b"\xff", b"x")),
        ("Cookie", b"\xff=;;"),
        ("X-Forwarded-For", b"\xff, not an address"),
        ("Forwarded", b"for=\xff"),
        ("Range", b"bytes=x-"),
    ],
)
async def test_a_question_does_not_stumble_over_headers_that_it_need_not_know(
    name: str, value: bytes, sender: Sender
):
    answer = await sender.ask(Case("GET", "/entries", None, {name: value}))
    assert answer.status == 200
    if name == "X-Request-Id":
        assert answer.headers["x-request-id"].encode("latin-1") != value


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"FOO / HTTP/1.1\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"{}\r\n\r\n",
    ],
)
async def test_what_is_not_even_http_is_a_problem_too(sent: bytes, sender: Sender):
    answer = await sender.send(sent)
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.problem()["request_id"] == answer.headers["x-request-id"]


async def test_chunks_that_are_none_are_refused_and_change_nothing(
    sender: Sender, laurels: Laurels, project: str
):
    before = await written(laurels, project)
    chunked = {"Transfer-Encoding": b"chunked", "Content-Type": LINES}
    head = sender.head(Case("POST", "/scores/batch", None, chunked))
    answer = await sender.send(head, b"zz\r\n")
    assert 400 <= answer.status < 500
    assert await written(laurels, project) == before
