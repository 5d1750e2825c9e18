"""The apps to compare the service with: one that does nothing, and one written in the obvious way.

`python -m bench.http_apps PORT APP` serves one of them, or the service, as `laurels serve` does.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import redis.asyncio as redis
import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel

from laurels.cli.serve import UVICORN

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

# Fixed names, since these apps have no clock.
WINDOWS = ("daily:2025-10-24", "weekly:2025-w43", "monthly:2025-10", "all_time")


def bare() -> ASGIApp:
    """Reads the body and answers with a constant."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": f"{message['type']}.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})

    return answer


class Score(BaseModel):
    member: str
    score: float


class Ranked(BaseModel):
    member: str
    score: float
    rank: int


def plain() -> FastAPI:
    """FastAPI and Pydantic, with one command after the other, one for each window."""
    app = FastAPI()
    client: Any = redis.Redis.from_url(os.environ["BENCH_VALKEY_URL"])  # pyright: ignore[reportUnknownMemberType]
    key = os.environ["BENCH_KEY"]

    def authorized(authorization: Annotated[str, Header()]) -> None:
        if authorization != f"Bearer {key}":
            raise HTTPException(401)

    @app.post("/v1/projects/{project}/boards/{board}/scores", dependencies=[Depends(authorized)])
    async def submit(project: str, board: str, given: Score) -> Ranked:  # pyright: ignore[reportUnusedFunction]
        names = [f"plain:{project}/{board}:{window}" for window in WINDOWS]
        for name in names:
            await client.zadd(name, {given.member: given.score}, gt=True)
        rank = await client.zrevrank(names[0], given.member)
        return Ranked(member=given.member, score=given.score, rank=rank + 1)

    return app


if __name__ == "__main__":
    port, app = sys.argv[1:]
    settings: dict[str, Any] = {**UVICORN, "loop": "uvloop", "log_level": "error"}
    uvicorn.run(app, host="127.0.0.1", port=int(port), **settings)
