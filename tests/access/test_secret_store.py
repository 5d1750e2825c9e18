from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from laurels.access.store.api_keys import KeyStore, name_of_key
from laurels.access.store.secrets import NewSecret, SecretStore, name_of_secrets
from laurels.errors import Conflict

if TYPE_CHECKING:
    from laurels.postgres.engine import Postgres


class Announcements:
    def __init__(self) -> None:
        self.names: list[str] = []

    async def __call__(self, name: str) -> None:
        self.names.append(name)


@pytest.fixture
def announced() -> Announcements:
    return Announcements()


@pytest.fixture
def secrets(postgres: Postgres, announced: Announcements) -> SecretStore:
    return SecretStore(postgres, announced)


async def test_active_secrets_are_found_with_their_keys(secrets: SecretStore):
    first, made = await secrets.create("acme", NewSecret("players", label="old"))
    second, again = await secrets.create("acme", NewSecret("signatures", required=True))
    await secrets.create("other", NewSecret("players"))
    found = {each.id: each for each in await secrets.active("acme")}
    assert found.keys() == {first.id, second.id}
    assert (found[first.id].key, found[second.id].key) == (made, again)
    assert (found[second.id].use, found[second.id].required) == ("signatures", True)
    assert [each.label for each in await secrets.secrets("acme")] == ["old", ""]
    assert len(await secrets.secrets()) == 3


async def test_a_revoked_secret_is_listed_but_not_active(secrets: SecretStore):
    secret, _ = await secrets.create("acme", NewSecret("players"))
    assert not await secrets.revoke(secret.id, project="other")
    assert await secrets.revoke(secret.id, project="acme")
    assert not await secrets.revoke(secret.id)
    assert await secrets.active("acme") == ()
    assert (await secrets.secrets("acme"))[0].revoked_at is not None


async def test_at_most_two_secrets_are_active_when_many_are_created_at_once(secrets: SecretStore):
    made = await asyncio.gather(
        *(secrets.create("acme", NewSecret("players")) for _ in range(6)), return_exceptions=True
    )
    assert sum(isinstance(each, Conflict) for each in made) == 4
    assert len(await secrets.active("acme")) == 2


async def test_every_change_is_announced(secrets: SecretStore, postgres: Postgres, announced: Announcements):
    secret, _ = await secrets.create("acme", NewSecret("players"))
    await secrets.revoke(secret.id)
    await secrets.revoke(secret.id)
    assert announced.names == [name_of_secrets("acme")] * 2
    announced.names.clear()
    keys = KeyStore(postgres, announced)
    key, _ = await keys.create("acme", ["read"])
    assert announced.names == []
    await keys.revoke(key.prefix)
    assert announced.names == [name_of_key(key.id)]
    known = await keys.ensure("known", "acme", ["read"], "label")
    assert announced.names[1:] == [name_of_key(known.id)]
