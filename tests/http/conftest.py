"""The app on the tests' own servers, at noon of a fixed day; each test has a project of its own."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import httpx
import pytest
import structlog
from structlog.testing import capture_logs

from laurels.access.store.api_keys import EVERY_PROJECT, SCOPES
from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.http import access_log, problems
from laurels.http.app import create_app
from laurels.http.routes import health
from laurels.logs import add_request
from laurels.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Generator, MutableMapping

    from fastapi import FastAPI

    from laurels.access.store.api_keys import Scope
    from laurels.embedded import Endpoints

NOON = datetime(2025, 10, 24, 12, tzinfo=UTC)

_numbers = count(1)


Logged: TypeAlias = "list[MutableMapping[str, Any]]"


class MakeKey(Protocol):
    def __call__(self, project: str, *scopes: Scope) -> Awaitable[str]: ...


@pytest.fixture
def clock(laurels: Laurels) -> FixedClock:
    """Noon, and whatever the test makes of it."""
    assert isinstance(laurels.clock, FixedClock)
    laurels.clock.now = moment_of(NOON)
    return laurels.clock


@pytest.fixture(scope="session")
async def laurels(endpoints: Endpoints) -> AsyncGenerator[Laurels]:
    clock = FixedClock(moment_of(NOON))
    with pytest.MonkeyPatch.context() as environment:
        # All tests ask from one address, many with keys that are not good, and faster than people play.
        environment.setenv("LAURELS_RATE_LIMIT_FAILURES", "none")
        environment.setenv("LAURELS_RATE_LIMIT_PLAYER", "none")
        environment.setenv("LAURELS_ACCESS_LOG", "all")
        engine = Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock)
    async with engine as laurels:
        yield laurels


@pytest.fixture(scope="session")
def app(laurels: Laurels) -> FastAPI:
    return create_app(laurels)


@pytest.fixture(scope="session")
async def admin_key(laurels: Laurels) -> str:
    """Of every project."""
    return (await laurels.keys.create(EVERY_PROJECT, SCOPES))[1]


@pytest.fixture
def make_key(laurels: Laurels) -> MakeKey:
    async def make(project: str, *scopes: Scope) -> str:
        return (await laurels.keys.create(project, scopes))[1]

    return make


@pytest.fixture
async def anybody(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient]:
    """A client without a key."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://laurels.test") as client:
        yield client


@pytest.fixture
async def client(anybody: httpx.AsyncClient, admin_key: str, clock: FixedClock) -> httpx.AsyncClient:
    """A client who may do everything."""
    anybody.headers["Authorization"] = f"Bearer {admin_key}"
    return anybody


class ClientWith(Protocol):
    def __call__(self, address: str = "127.0.0.1", **settings: str) -> Awaitable[httpx.AsyncClient]: ...


@pytest.fixture
async def client_with(endpoints: Endpoints, admin_key: str) -> AsyncGenerator[ClientWith]:
    """Clients of another process on the same stores, with settings of its own; asking from an address."""
    async with AsyncExitStack() as stack:

        async def make(address: str = "127.0.0.1", **settings: str) -> httpx.AsyncClient:
            with pytest.MonkeyPatch.context() as environment:
                for name, value in settings.items():
                    environment.setenv(f"LAURELS_{name.upper()}", value)
                engine = Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url)
            await stack.enter_async_context(engine)
            transport = httpx.ASGITransport(
                create_app(engine), raise_app_exceptions=False, client=(address, 1234)
            )
            return await stack.enter_async_context(
                httpx.AsyncClient(
                    transport=transport,
                    base_url="http://laurels.test",
                    headers={"Authorization": f"Bearer {admin_key}"},
                )
            )

        yield make


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Generator[Logged]:
    """Every line that the app logs during the test."""
    for module in (access_log, health, problems):
        # Afresh: a logger that was used before keeps to how logs were set up then.
        monkeypatch.setattr(module, "log", structlog.get_logger())
    access = logging.getLogger("laurels.access")
    access.setLevel(logging.DEBUG)
    with capture_logs(processors=[structlog.contextvars.merge_contextvars, add_request]) as lines:
        yield lines
    access.setLevel(logging.NOTSET)


@pytest.fixture
def project() -> str:
    return f"api-{next(_numbers)}"


@pytest.fixture
def boards(project: str) -> str:
    """Where the test's boards are."""
    return f"/v1/projects/{project}/boards"


@pytest.fixture
async def board(client: httpx.AsyncClient, boards: str) -> str:
    """A board of daily windows, by country too, that keeps dense ranks; empty."""
    definition = {
        "windows": [{"period": "daily", "keep": 3}, {"period": "all_time"}],
        "groups": [["country"]],
        "dense": True,
    }
    answer = await client.put(f"{boards}/arcade", json=definition)
    assert answer.status_code == 201, answer.text
    return f"{boards}/arcade"


@pytest.fixture
async def int64_board(client: httpx.AsyncClient, boards: str) -> str:
    answer = await client.put(f"{boards}/exact", json={"score": "int64"})
    assert answer.status_code == 201, answer.text
    return f"{boards}/exact"


@pytest.fixture
async def scored(client: httpx.AsyncClient, board: str) -> str:
    """The board with four entries: ada 300, bob and eve 200, joe 100."""
    for member, score, country in (
        ("ada", 300, "BR"), ("bob", 200, "BR"), ("eve", 200, "JP"), ("joe", 100, "JP")
    ):  # fmt: skip
        submission = {"member": member, "score": score, "groups": {"country": country}}
        answer = await client.post(f"{board}/scores", json=submission)
        assert answer.status_code == 200, answer.text
    return board
