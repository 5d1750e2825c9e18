"""The app: every route around one engine."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from laurels.api import boards, entries, health, page, problems, scores, windows
from laurels.api.auth import Keyring
from laurels.api.document import make_document
from laurels.api.envelope import Envelope
from laurels.errors import LaurelsError
from laurels.laurels import Laurels
from laurels.logs import configure_logs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

OPERATIONS = (*scores.operations.declared, *entries.operations.declared, *windows.operations.declared)


class App(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            self.openapi_schema = make_document(self.routes, OPERATIONS)
        return self.openapi_schema


def create_app(laurels: Laurels) -> FastAPI:
    """The app around an engine that is open by the first request; whoever opened it closes it."""
    return _app(laurels, None)


def app_from_settings() -> FastAPI:
    """The app around an engine of its own, open from startup to shutdown: what `uvicorn --factory` calls."""
    laurels = Laurels()
    configure_logs(laurels.settings)

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncGenerator[None]:
        async with laurels:
            yield

    return _app(laurels, opened)


def _app(
    laurels: Laurels, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None
) -> FastAPI:
    app = App(title="Laurels", lifespan=lifespan, openapi_url=None, redirect_slashes=False)
    app.state.laurels = laurels
    app.state.keyring = Keyring(laurels)
    # One flat list: what is tried first stands first, and a 405 can say which methods there are.
    app.router.routes += [
        *(operation.route() for operation in OPERATIONS),
        *boards.router.routes,
        *health.router.routes,
        *page.routes(),
    ]
    for kind in (LaurelsError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, problems.handle)
    app.add_middleware(Envelope)
    return app
