"""A server with the fast way in, and what was taken by it."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import httpx
import uvicorn
from player_tokens import bearer

from laurels.cli.server import UVICORN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn.server import ServerState

SCORE: dict[str, Any] = {"member": "ada", "score": 1200}


@dataclass
class Way:
    """A server with the fast way in, what was taken by it, and how many heads were read for that."""

    port: int
    client: httpx.AsyncClient
    state: ServerState
    taken: list[bool] = field(default_factory=list[bool])
    read: int = 0

    async def post(self, board: str, **given: Any) -> httpx.Response:  # noqa: ANN401  # httpx's own
        return await self.client.post(f"{board}/scores", **request_of(given))


def request_of(given: dict[str, Any]) -> dict[str, Any]:
    return given if {"json", "content"} & given.keys() else {**given, "json": SCORE}


@asynccontextmanager
async def listening(app: ASGIApp, **settings: Any) -> AsyncGenerator[tuple[int, ServerState]]:  # noqa: ANN401  # uvicorn's own
    """A server of the app, set up as `laurels serve` does it: its port and its state."""
    given: dict[str, Any] = {**UVICORN, "factory": False, **settings}
    server = uvicorn.Server(uvicorn.Config(cast("Any", app), **given))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()[1], server.server_state
        server.should_exit = True
        await running


def without_fast_submit(app: FastAPI) -> ASGIApp:
    """The same app, all of whose requests go the ordinary way."""

    async def ordinary(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    return ordinary


@asynccontextmanager
async def serving(app: FastAPI, key: str) -> AsyncGenerator[Way]:
    fast_submit: Any = cast("Any", app).fast_submit
    take, admission = fast_submit.take, fast_submit.admission
    async with (
        listening(app) as (port, state),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=bearer(key)) as client,
    ):
        way = Way(port, client, state)

        def noting(*given: Any) -> bool:  # noqa: ANN401  # as `take`
            way.taken.append(take(*given))
            return way.taken[-1]

        def noting_admission(scope: Any) -> Any:  # noqa: ANN401  # as `admission`
            admitted = admission(scope)
            if admitted is None:
                way.taken.append(False)
            else:
                way.read += 1
            return admitted

        fast_submit.take, fast_submit.admission = noting, noting_admission
        yield way
        fast_submit.take, fast_submit.admission = take, admission


async def known(way: Way, board: str) -> str:
    """The board, once the process remembers it, the key, and the project's secrets: it does as soon as it
    hears what is withdrawn.
    """
    while not any(way.taken):
        assert (await way.post(board, json={"member": "first", "score": 1})).status_code == 200
    way.taken.clear()
    way.read = 0
    return board
