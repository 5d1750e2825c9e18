"""What a process remembers, and how a withdrawal by another reaches it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from laurels.access.credential_cache import FRESH_SECONDS, CredentialCache
from laurels.access.revocations import Revocations
from laurels.engine import Laurels
from laurels.errors import Unavailable
from laurels.valkey.client import Valkey

from .player_tokens import bearer, token

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import httpx

    from laurels.embedded import Endpoints

DEADLINE_SECONDS = 10


class Store:
    """Answers by name, counts questions, and is away when told to."""

    def __init__(self) -> None:
        self.answers = {"a": 1}
        self.count = 0
        self.is_away = False
        self.meanwhile: Callable[[], None] = lambda: None

    async def look_up(self) -> tuple[str, int] | None:
        self.count += 1
        if self.is_away:
            raise Unavailable("PostgreSQL does not answer")
        found = self.answers.get("a")
        self.meanwhile()
        return None if found is None else ("name of a", found)


class Now:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def revocations(endpoints: Endpoints) -> AsyncGenerator[Revocations]:
    valkey = Valkey(endpoints.valkey_url)
    revocations = Revocations(valkey)
    await revocations.listening()
    yield revocations
    await revocations.close()
    await valkey.close()


async def test_an_answer_is_remembered_until_it_is_withdrawn(revocations: Revocations):
    store, memory = Store(), CredentialCache[str, int](revocations, Now())
    for _ in range(3):
        assert await memory.find("a", store.look_up) == 1
    await revocations.announce("another name")
    assert await memory.find("a", store.look_up) == 1
    assert store.count == 1
    store.answers.clear()
    await revocations.announce("name of a")
    assert await memory.find("a", store.look_up) is None
    assert store.count == 2


async def test_what_is_withdrawn_while_it_is_looked_up_is_not_remembered(revocations: Revocations):
    store, memory = Store(), CredentialCache[str, int](revocations, Now())
    store.meanwhile = lambda: revocations._notify("name of a")  # pyright: ignore[reportPrivateUsage]  # as a message
    assert await memory.find("a", store.look_up) == 1
    assert memory.recall("a") is None


async def test_while_nothing_is_heard_every_answer_is_looked_up():
    valkey = Valkey("redis://127.0.0.1:1")
    revocations = Revocations(valkey)
    store, memory = Store(), CredentialCache[str, int](revocations, Now())
    for count in (1, 2, 3):
        assert await memory.find("a", store.look_up) == 1
        assert store.count == count
    store.is_away = True
    for _ in range(3):
        assert await memory.find("a", store.look_up) == 1
    assert store.count == 4
    await revocations.close()
    await valkey.close()


async def test_after_a_gap_an_answer_is_doubtful_but_good_while_postgresql_is_away(revocations: Revocations):
    store, memory = Store(), CredentialCache[str, int](revocations, Now())
    assert await memory.find("a", store.look_up) == 1
    revocations.gaps += 1
    assert memory.recall("a") is None
    store.is_away = True
    assert await memory.find("a", store.look_up) == 1
    assert await memory.find("a", store.look_up) == 1
    assert store.count == 2


async def test_what_is_withdrawn_is_not_good_while_postgresql_is_away(revocations: Revocations):
    now = Now()
    store, memory = Store(), CredentialCache[str, int](revocations, now)
    assert await memory.find("a", store.look_up) == 1
    store.is_away = True
    now.seconds += FRESH_SECONDS
    assert await memory.find("a", store.look_up) == 1
    await revocations.announce("name of a")
    with pytest.raises(Unavailable):
        await memory.find("a", store.look_up)


async def status_becomes(client: httpx.AsyncClient, path: str, key: str, status: int) -> None:
    async with asyncio.timeout(FRESH_SECONDS / 2):  # sooner than a key would be looked up again anyway
        while (await client.get(path, headers=bearer(key))).status_code != status:
            pass


async def test_a_key_that_another_process_revoked_is_out_of_force_at_once(
    client: httpx.AsyncClient, board: str, project: str, laurels: Laurels, endpoints: Endpoints
):
    await laurels.revocations.listening()
    key, secret = await laurels.keys.create(project, ["read"])
    assert (await client.get(board, headers=bearer(secret))).status_code == 200
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as other:
        await other.keys.revoke(key.prefix)
        await status_becomes(client, board, secret, 401)


async def test_another_secret_of_a_known_key_counts_at_once(
    client: httpx.AsyncClient, board: str, project: str, laurels: Laurels, endpoints: Endpoints
):
    await laurels.revocations.listening()
    label = f"known-{project}"
    await laurels.keys.ensure("secret-before", project, ["read"], label)
    assert (await client.get(board, headers=bearer("secret-before"))).status_code == 200
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as other:
        await other.keys.ensure("secret-after", project, ["read"], label)
        await status_becomes(client, board, "secret-before", 401)
    assert (await client.get(board, headers=bearer("secret-after"))).status_code == 200


async def test_a_players_secret_that_another_process_revoked_is_out_of_force_at_once(
    client: httpx.AsyncClient, board: str, project: str, laurels: Laurels, endpoints: Endpoints
):
    await laurels.revocations.listening()
    made = (await client.post(f"/v1/projects/{project}/secrets", json={"use": "players"})).json()
    ada = token(made["secret"], project, "ada")
    assert (await client.get(board, headers=bearer(ada))).status_code == 200
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as other:
        await other.secrets.revoke(made["id"])
        await status_becomes(client, board, ada, 401)
