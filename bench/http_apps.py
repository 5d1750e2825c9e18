"""The app to compare the service with: it does nothing.

`python -m bench.http_apps PORT bench.http_apps:bare` serves it, as `laurels serve` serves the service.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import uvicorn

from laurels.cli.server import UVICORN

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


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


if __name__ == "__main__":
    port, app = sys.argv[1:]
    settings: dict[str, Any] = {**UVICORN, "loop": "uvloop", "log_level": "error"}
    uvicorn.run(app, host="127.0.0.1", port=int(port), **settings)
