"""The app: all routes of one engine."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware

from laurels.access.limits import Limiter
from laurels.engine import Laurels
from laurels.errors import LaurelsError
from laurels.http import problems
from laurels.http.access_log import AccessLog
from laurels.http.authentication import Keyring
from laurels.http.coalesce import Coalescer
from laurels.http.direct import DirectOperations
from laurels.http.dispatch import Dispatch
from laurels.http.encoding import TaggedBody
from laurels.http.fast_submit import FastSubmit
from laurels.http.middleware import RequestMiddleware
from laurels.http.openapi import make_document
from laurels.http.operation import BOARD
from laurels.http.routes import (
    board_batch,
    boards,
    campus,
    console,
    credentials,
    deployment,
    entries,
    guide,
    health,
    jobs,
    leaders,
    live,
    matches,
    members,
    pages,
    people,
    scores,
    snapshots,
    windows,
)
from laurels.http.server.garbage import frozen_heap
from laurels.logs import configure_logs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from starlette.types import ASGIApp, Receive, Scope, Send

OPERATIONS = [
    operation
    for routes in (
        scores.routes,
        matches.routes,
        entries.routes,
        windows.routes,
        snapshots.routes,
        live.routes,
        boards.lists,
        boards.routes,
        board_batch.routes,
        credentials.routes,
        jobs.routes,
        deployment.routes,
        console.routes,
        console.own_page,
        console.entrance,
        members.routes,
        people.routes,
        leaders.games,
        leaders.boards,
        leaders.ranges,
        campus.routes,
        campus.mine,
        campus.tables,
        health.routes,
    )
    for operation in routes.operations
]
BELOW_BOARDS = [operation for operation in OPERATIONS if operation.path.startswith(f"{BOARD}/")]
# Response headers that pages of other origins may read.
EXPOSED = ("ETag", "X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After", "Idempotency-Replayed")
# How long a browser may cache a CORS preflight.
CORS_SECONDS = 7200


class App(FastAPI):
    """A FastAPI app whose operations skip FastAPI's layers."""

    access_log: AccessLog
    entry: ASGIApp
    direct: DirectOperations
    fast_submit: FastSubmit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.entry(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def build_entry(self, origins: Sequence[str]) -> None:
        """From the outside in: the request middleware, CORS if other origins are allowed, the operations."""
        dispatch = Dispatch(BELOW_BOARDS, self, super().__call__)
        self.direct = DirectOperations(dispatch, self.access_log, has_cors=bool(origins))
        entry: ASGIApp = dispatch
        if origins:
            entry = CORSMiddleware(
                # Inside CORS, so that pages of other origins can read problems.
                ExceptionMiddleware(entry, handlers={LaurelsError: problems.handle}),
                allow_origins=origins,
                allow_methods=("GET", "PUT", "POST", "PATCH", "DELETE"),
                allow_headers=("*",),
                expose_headers=EXPOSED,
                max_age=CORS_SECONDS,
            )
        self.entry = RequestMiddleware(entry, self.access_log)

    def build_middleware_stack(self) -> ASGIApp:
        """FastAPI's stack without its handler of unexpected errors: `RequestMiddleware` answers those."""
        return ExceptionMiddleware(AsyncExitStackMiddleware(self.router), handlers=self.exception_handlers)

    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            self.openapi_schema = make_document(OPERATIONS)
        return self.openapi_schema


def create_app(laurels: Laurels) -> FastAPI:
    """The app of an engine that the caller opens before the first request, and closes."""
    return _app(laurels, None)


def app_from_settings() -> FastAPI:
    """The app for `uvicorn --factory`: its own engine is open from startup to shutdown."""
    laurels = Laurels()
    configure_logs(laurels.settings)

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncGenerator[None]:
        async with laurels, frozen_heap():
            with live.ended_by_signals(laurels):
                yield

    return _app(laurels, opened)


def _app(
    laurels: Laurels, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None
) -> FastAPI:
    app = App(title="Laurels", lifespan=lifespan, openapi_url=None, redirect_slashes=False)
    app.state.laurels = laurels
    app.state.keyring = Keyring(laurels)
    app.state.limiter = Limiter(laurels.settings, lambda: laurels.valkey)
    app.state.coalescer = Coalescer[TaggedBody]()
    # One flat list: routes are tried in this order, and a 405 can list the methods of a path.
    app.router.routes += [
        *(operation.route() for operation in OPERATIONS),
        *guide.routes(),
        *pages.routes(image_hosts=laurels.settings.image_hosts),
    ]
    for kind in (LaurelsError, HTTPException):
        app.add_exception_handler(kind, problems.handle)
    app.access_log = AccessLog.of(laurels.settings)
    app.fast_submit = FastSubmit(scores.SUBMIT, laurels, app.state.keyring, app.state.limiter, app.access_log)
    app.build_entry(laurels.settings.cors_origins)
    return app
