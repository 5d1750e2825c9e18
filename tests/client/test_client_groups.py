"""A group is a mapping or a text: every operation takes both, in process and over HTTP."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

import pytest

from laurels import sync
from laurels.arguments import signature_of
from laurels.client import AsyncClient, Client
from laurels.engine import Laurels
from laurels.errors import InvalidInput
from laurels.scores.submission import MetadataSet
from laurels.scores.view_diff import Update

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from laurels.embedded import Endpoints

Driver = Laurels | sync.Laurels | Client | AsyncClient

DEFINITION = {
    "windows": [{"period": "all_time"}, {"period": "daily", "keep": 3}],
    "groups": [["country"], ["region", "city"]],
}
GROUPS = [
    ({"country": "BR"}, "country=BR", "ada"),
    ({"city": "tokyo, 50%=x", "region": "asia"}, "region=asia,city=tokyo%2C 50%25%3Dx", "eve"),
]
# Every operation that takes a group, with its other arguments.
READS: dict[str, tuple[object, ...]] = {
    "page": (),
    "pages": (),
    "entries": (),
    "watch": (),
    "standing": ("MEMBER",),
    "around": ("MEMBER",),
    "among": (["ada", "eve"],),
    "percentile": (0.5,),
    "distribution": (2,),
    "windows": (),
    "history": ("MEMBER",),
    "snapshots": (),
    "set_metadata": ("MEMBER", {"level": 1}),
}


async def ask(driver: Driver, operation: str, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  # any answer
    """The answer; of an iterator, the first item."""
    if isinstance(driver, sync.Laurels | Client):
        answer = await asyncio.to_thread(_ask_blocking, driver, operation, *args, **kwargs)
    else:
        asked: Any = getattr(driver, operation)(*args, **kwargs)
        if inspect.isasyncgen(asked):
            async with aclosing(asked) as items:
                answer = await anext(items)
        else:
            answer = await asked
    if isinstance(answer, Update):
        return answer.value
    return answer.entries if isinstance(answer, MetadataSet) else answer


def _ask_blocking(driver: sync.Laurels | Client, operation: str, *args: object, **kwargs: object) -> object:
    asked: Any = getattr(driver, operation)(*args, **kwargs)
    if not inspect.isgenerator(asked):
        return asked
    with closing(asked) as items:
        return next(items)


@pytest.fixture(scope="module")
async def engine(endpoints: Endpoints) -> AsyncGenerator[Laurels]:
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as engine:
        yield engine


@pytest.fixture(scope="module")
def blocking(endpoints: Endpoints) -> Generator[sync.Laurels]:
    with sync.Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as blocking:
        yield blocking


@pytest.fixture(params=["engine", "sync", "client", "async_client"])
def driver(
    request: pytest.FixtureRequest,
    engine: Laurels,
    blocking: sync.Laurels,
    client: Client,
    async_client: AsyncClient,
) -> Driver:
    drivers: dict[str, Driver] = {
        "engine": engine, "sync": blocking, "client": client, "async_client": async_client
    }  # fmt: skip
    return drivers[request.param]


@pytest.fixture
async def grouped(driver: Driver, project: str) -> str:
    """A board whose members say their groups as a mapping and as a text."""
    board = f"{project}/grouped"
    await ask(driver, "define", board, DEFINITION)
    await ask(driver, "submit", board, "ada", 3, groups={"country": "BR"})
    await ask(driver, "submit", board, "bob", 2, groups="country=BR")
    await ask(driver, "submit", board, "eve", 1, groups=GROUPS[1][1])
    return board


def test_these_are_all_operations_that_take_a_group():
    taking = {
        name
        for name, operation in inspect.getmembers(Laurels)
        if callable(operation) and not name.startswith("_") and "group" in signature_of(operation).parameters
    }
    assert {*READS} == taking | {"set_metadata"}


@pytest.mark.parametrize(("mapping", "text", "member"), GROUPS)
async def test_every_read_takes_both(
    driver: Driver, grouped: str, mapping: dict[str, str], text: str, member: str
):
    for operation, given in READS.items():
        args = [member if each == "MEMBER" else each for each in given]
        by_text = await ask(driver, operation, grouped, *args, group=text)
        assert await ask(driver, operation, grouped, *args, group=mapping) == by_text, operation
    page = await ask(driver, "page", grouped, group=mapping)
    assert page.entries[0].member == member
    assert page.total == (2 if member == "ada" else 1)


async def test_a_submission_takes_both(driver: Driver, grouped: str):
    page = await ask(driver, "page", grouped, group={"country": "BR"})
    assert [entry.member for entry in page.entries] == ["ada", "bob"]
    page = await ask(driver, "page", grouped, group=GROUPS[1][0])
    assert [entry.member for entry in page.entries] == ["eve"]
    with pytest.raises(InvalidInput, match="groups: write it like country=BR"):
        await ask(driver, "submit", grouped, "ada", 1, groups="BR")


async def test_a_match_takes_both(driver: Driver, project: str):
    board = f"{project}/duels"
    await ask(driver, "define", board, {"rating": {"system": "elo"}, "groups": [["country"]]})
    groups = {"ada": {"country": "BR"}, "bob": "country=JP"}
    await ask(driver, "match", board, ["ada", "bob"], "ada", groups=groups)
    for country, member in (("BR", "ada"), ("JP", "bob")):
        page = await ask(driver, "page", board, group={"country": country})
        assert [entry.member for entry in page.entries] == [member]


async def test_a_group_that_is_wrong_is_refused(driver: Driver, grouped: str):
    with pytest.raises(InvalidInput, match="group: write it like country=BR"):
        await ask(driver, "page", grouped, group="BR")
    with pytest.raises(InvalidInput, match="group: the value of 'country' must be a string"):
        await ask(driver, "page", grouped, group={"country": 55})
    with pytest.raises(InvalidInput, match="not ranked by team"):
        await ask(driver, "page", grouped, group={"team": "red"})
