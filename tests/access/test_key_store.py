from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, cast

import pytest
from sqlalchemy import select

from laurels.access.store.api_keys import EVERY_PROJECT, SCOPES, KeyStore, Scope
from laurels.errors import Conflict, InvalidInput
from laurels.postgres import tables

if TYPE_CHECKING:
    from collections.abc import Collection

    from laurels.postgres.engine import Postgres


async def announce(_: str) -> None:
    """There is no other process to tell."""


@pytest.fixture
def keys(postgres: Postgres) -> KeyStore:
    return KeyStore(postgres, announce)


async def test_a_created_key_is_found_by_its_secret(keys: KeyStore):
    key, secret = await keys.create("acme", {"submit", "read"}, "game server")
    assert re.fullmatch(r"lk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", secret)
    assert secret.startswith(f"{key.prefix}_")
    assert await keys.find(secret) == key
    assert (key.project, key.scopes, key.label) == ("acme", {"read", "submit"}, "game server")
    assert key.revoked_at is None


async def test_an_unknown_secret_finds_nothing(keys: KeyStore):
    _, secret = await keys.create("acme", ["read"])
    for wrong in ("", secret[:-1], secret + "x", "\x00", "\ud800", "é"):
        assert await keys.find(wrong) is None


async def test_the_secret_itself_is_not_stored(keys: KeyStore, postgres: Postgres):
    key, secret = await keys.create("acme", ["read"])
    async with postgres.reading() as connection:
        row = (await connection.execute(select(tables.api_keys))).one()
    assert secret.removeprefix(f"{key.prefix}_") not in repr(row)
    assert len(row.digest) == 32


async def test_keys_are_listed_by_project_oldest_first(keys: KeyStore):
    first, _ = await keys.create("acme", ["read"])
    other, _ = await keys.create("zoo", ["read"])
    second, _ = await keys.create("acme", ["admin"])
    assert await keys.keys("acme") == [first, second]
    assert await keys.keys() == [first, other, second]


@pytest.mark.parametrize("by", ["prefix", "id"])
async def test_a_revoked_key_is_listed_but_no_longer_found(keys: KeyStore, by: str):
    key, secret = await keys.create("acme", ["read"])
    _, other_secret = await keys.create("acme", ["read"])
    assert await keys.revoke(str(getattr(key, by)))
    assert not await keys.revoke(str(getattr(key, by)))
    assert await keys.find(secret) is None
    assert await keys.find(other_secret) is not None
    revoked = {listed.id: listed.revoked_at for listed in await keys.keys()}
    assert revoked[key.id] is not None


async def test_a_key_of_another_project_is_not_revoked(keys: KeyStore):
    key, secret = await keys.create("acme", ["read"])
    assert not await keys.revoke(key.prefix, project="zoo")
    assert await keys.find(secret) == key
    assert not await keys.revoke("lk_unknown0")


@pytest.mark.parametrize("scopes", [[], ["read", "write"]])
async def test_scopes_are_one_or_more_of_the_three(keys: KeyStore, scopes: list[str]):
    with pytest.raises(InvalidInput, match="scopes: must be one or more of read, submit, admin"):
        await keys.create("acme", cast("Collection[Scope]", scopes))


@pytest.mark.parametrize("label", ["a\x00b", "x" * 201])
async def test_a_label_that_cannot_be_stored_is_refused(keys: KeyStore, label: str):
    with pytest.raises(InvalidInput, match="label: "):
        await keys.create("acme", ["read"], label)


async def test_a_label_may_be_any_other_text(keys: KeyStore):
    label = "Robert'); DROP TABLE api_keys;-- 🏆"
    key, _ = await keys.create("acme", ["read"], label)
    assert await keys.keys() == [key]
    assert key.label == label


async def test_ensuring_a_key_again_changes_nothing(keys: KeyStore):
    first = await keys.ensure("known", EVERY_PROJECT, SCOPES, "bootstrap")
    assert await keys.ensure("known", EVERY_PROJECT, SCOPES, "bootstrap") == first
    assert await keys.find("known") == first
    assert first.prefix == "bootstrap"


async def test_ensuring_from_many_processes_at_once_makes_one_key(keys: KeyStore):
    ensured = await asyncio.gather(*(keys.ensure("known", "*", SCOPES, "bootstrap") for _ in range(8)))
    assert len({key.id for key in ensured}) == 1


async def test_another_secret_replaces_the_ensured_one(keys: KeyStore):
    await keys.ensure("old", EVERY_PROJECT, SCOPES, "bootstrap")
    await keys.ensure("new", EVERY_PROJECT, SCOPES, "bootstrap")
    assert await keys.find("old") is None
    assert await keys.find("new") is not None
    assert len(await keys.keys()) == 1


async def test_an_ensured_key_that_was_revoked_is_in_force_again(keys: KeyStore):
    await keys.ensure("known", EVERY_PROJECT, SCOPES, "bootstrap")
    assert await keys.revoke("bootstrap")
    assert await keys.find("known") is None
    await keys.ensure("known", EVERY_PROJECT, SCOPES, "bootstrap")
    assert await keys.find("known") is not None


async def test_a_secret_belongs_to_one_key(keys: KeyStore):
    _, secret = await keys.create("acme", ["read"])
    with pytest.raises(Conflict, match="another key has the same secret as the key 'bootstrap'") as caught:
        await keys.ensure(secret, EVERY_PROJECT, SCOPES, "bootstrap")
    assert secret not in str(caught.value)
