"""Who asks is known before a byte of the body is read: raw requests whose bodies never come."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import uvicorn

from laurels.access.store.secrets import NewSecret
from laurels.http.routes.console import SIGN_IN_BYTES
from laurels.http.server.fast_protocol import FastProtocol

from .player_tokens import token

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    import httpx
    from fastapi import FastAPI

    from laurels.engine import Laurels

    from .conftest import ClientWith, MakeKey

VALUES = {
    "project": "before-body", "game": "before-body", "board": "arcade", "range": "d", "user": "ada",
    "member": "ada", "prefix": "lk_12345678", "id": "ls_12345678", "name": "snapshots", "letter": "1.1.1-1",
    "person": "ada", "place": "oslo",
}  # fmt: skip
# Signing in is what makes somebody known; it is for pages of the console alone.
SIGN_IN = ("POST", "/console/session")
DEADLINE_SECONDS = 20.0


@dataclass(frozen=True)
class Server:
    host: str
    port: int

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
        """What comes back on a connection that sends so much of the body, and then nothing."""
        lines = {"Host": "laurels.test", "Content-Length": "100000", "Content-Encoding": "gzip"} | headers
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await reader.readuntil(b"\r\n")
        finally:
            writer.close()


@pytest.fixture
async def server(app: FastAPI, client: httpx.AsyncClient) -> AsyncGenerator[Server]:
    assert client  # sets the clock
    config = uvicorn.Config(app, http=FastProtocol, log_config=None, access_log=False, proxy_headers=False)
    running = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(running.serve(sockets=[listener]))
        yield Server(*listener.getsockname())
        running.should_exit = True
        await serving


def changing(app: FastAPI) -> list[tuple[str, str]]:
    """Every operation that could have a body."""
    return [
        (method.upper(), path.format_map(VALUES))
        for path, methods in app.openapi()["paths"].items()
        for method in methods
        if method in ("post", "put", "patch", "delete")
    ]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


async def test_no_route_waits_for_the_body_of_a_stranger(app: FastAPI, server: Server, make_key: MakeKey):
    beyond = await make_key("another-project", "admin")
    reader = await make_key("before-body", "read")
    callers: dict[str, tuple[dict[str, str], bytes]] = {
        "no key": ({}, b"401"),
        "a wrong key": (bearer("lk_wrong000_" + "x" * 43), b"401"),
        "no token": (bearer("eyJhbGciOiJIUzI1NiJ9.eyJwcm9qZWN0IjoieCJ9.AAAA"), b"401"),
        "a key of another project": (bearer(beyond), b"403"),
        "a key of too few scopes": (bearer(reader), b"403"),
    }
    operations = changing(app)
    assert len(operations) > 15
    found: dict[tuple[str, str, str], bytes] = {}
    expected: dict[tuple[str, str, str], bytes] = {}
    for method, path in operations:
        for caller, (headers, status) in callers.items():
            if path.endswith("/entries/among") and caller == "a key of too few scopes":
                continue  # which may read
            is_session = path == SIGN_IN[1]
            line = await server.answer(method, path, headers)
            found[method, path, caller] = line.split(b" ")[1]
            expected[method, path, caller] = b"403" if is_session else status
    assert found == expected


async def test_what_is_not_signed_is_refused_before_its_body(
    server: Server, client: httpx.AsyncClient, laurels: Laurels, project: str, make_key: MakeKey
):
    await client.put(f"/v1/projects/{project}/boards/arcade", json={})
    await laurels.secrets.create(project, NewSecret("signatures", required=True))
    _, secret = await laurels.secrets.create(project, NewSecret("players"))
    board, key = f"/v1/projects/{project}/boards/arcade", bearer(await make_key(project, "submit"))
    for path in (
        f"{board}/scores",
        f"{board}/scores/batch",
        f"{board}/matches",
        f"/leaders/{project}/x/d/ada",
    ):
        assert (await server.answer("POST", path, key)).split(b" ")[1] == b"401", path
    player = bearer(token(secret or "", project, "ada"))
    for path in ("scores", "scores/batch"):  # players do not submit to this board
        assert (await server.answer("POST", f"{board}/{path}", player)).split(b" ")[1] == b"403"


async def test_signing_in_reads_no_more_than_a_key(server: Server):
    ours = {"X-Laurels-Console": "1", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    assert (await server.answer(*SIGN_IN, ours)).split(b" ")[1] == b"413"
    streamed = ours | {"Transfer-Encoding": "chunked"}
    sent = b"%x\r\n%s\r\n" % (SIGN_IN_BYTES + 1, bytes(SIGN_IN_BYTES + 1))
    lines = "".join(f"{name}: {value}\r\n" for name, value in streamed.items())
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(f"POST {SIGN_IN[1]} HTTP/1.1\r\nHost: laurels.test\r\n{lines}\r\n".encode() + sent)
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert (await reader.readuntil(b"\r\n")).split(b" ")[1] == b"413"
    writer.close()


async def test_an_address_of_too_many_bad_keys_is_refused_before_it_can_sign_in(client_with: ClientWith):
    other = await client_with("192.0.2.77", rate_limit_failures="1/hour")
    headers = {"Authorization": "", "X-Laurels-Console": "1", "Sec-Fetch-Site": "same-origin"}
    statuses = [
        (await other.post(SIGN_IN[1], json={"key": "lk_wrong"}, headers=headers)).status_code
        for _ in range(2)
    ]
    assert statuses == [401, 429]
    is_read = False

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal is_read
        is_read = True
        yield b"{}"

    answer = await other.post(SIGN_IN[1], content=pieces(), headers=headers)
    assert (answer.status_code, is_read) == (429, False)
