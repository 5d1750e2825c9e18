from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import httpx
import pytest

from laurels.access.credential_cache import FRESH_SECONDS
from laurels.engine import Laurels
from laurels.errors import Unavailable
from laurels.http.app import create_app
from laurels.http.authentication import Keyring

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.access.store.api_keys import ApiKey, Scope
    from laurels.embedded import Endpoints

    from .conftest import MakeKey

Route: TypeAlias = "tuple[str, str, Scope]"

ROUTES: list[Route] = [
    ("GET", "", "read"),
    ("PUT", "", "admin"),
    ("DELETE", "", "admin"),
    ("POST", "/scores", "submit"),
    ("POST", "/scores/batch", "submit"),
    ("GET", "/entries", "read"),
    ("GET", "/entries/ada", "read"),
    ("GET", "/entries/ada/around", "read"),
    ("POST", "/entries/among", "read"),
    ("DELETE", "/entries/ada", "admin"),
    ("GET", "/windows", "read"),
    ("GET", "/percentile/0.5", "read"),
    ("GET", "/distribution", "read"),
]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("route", ROUTES)
async def test_a_key_does_what_its_scopes_say(
    client: AsyncClient, scored: str, project: str, make_key: MakeKey, route: Route
):
    method, path, scope = route
    for held in ("read", "submit", "admin"):
        key = await make_key(project, held)
        # A body that is refused, so that nothing changes; a key without the scope gets 403 before.
        answer = await client.request(method, f"{scored}{path}?nothing=1", headers=bearer(key))
        allowed = held in (scope, "admin")
        assert answer.status_code == (422 if allowed else 403), (held, answer.text)
        if not allowed:
            assert answer.json()["type"] == "/problems/forbidden"
            assert answer.json()["detail"] == (
                f"this needs a key with the scope {scope}; this one has {held}"
            )


@pytest.mark.parametrize("route", ROUTES)
async def test_another_project_looks_the_same_whether_it_exists_or_not(
    client: AsyncClient, scored: str, project: str, make_key: MakeKey, route: Route
):
    method, path, scope = route
    key = await make_key("somebody-else", scope)
    existing = await client.request(method, f"{scored}{path}", headers=bearer(key))
    missing = await client.request(
        method, f"/v1/projects/{project}-not/boards/arcade{path}", headers=bearer(key)
    )
    assert existing.status_code == missing.status_code == 403
    details = [answer.json()["detail"] for answer in (existing, missing)]
    assert details[0] == f"this key is for the project somebody-else, not for {project}"
    assert details[1] == f"{details[0]}-not"
    assert existing.headers.keys() == missing.headers.keys()


@pytest.mark.parametrize("route", ROUTES)
async def test_nothing_is_told_without_a_key(anybody: AsyncClient, boards: str, route: Route):
    method, path, _ = route
    answer = await anybody.request(method, f"{boards}/arcade{path}")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="laurels"'
    assert answer.json()["type"] == "/problems/unauthorized"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic YTpi", "lk_12345678", "Bearer lk_unknown0_x", "Bearer \xe9"]
)
async def test_a_header_without_a_good_key_is_unauthorized(anybody: AsyncClient, header: str):
    answer = await anybody.get("/v1/projects", headers={b"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert "lk_" not in answer.json()["detail"]


async def test_the_scheme_may_be_of_any_case(anybody: AsyncClient, admin_key: str):
    answer = await anybody.get("/v1/projects", headers={"Authorization": f"bEARER  {admin_key} "})
    assert answer.status_code == 200


async def test_only_projects_that_the_key_may_see_are_listed(
    client: AsyncClient, board: str, project: str, make_key: MakeKey
):
    own = await client.get("/v1/projects", headers=bearer(await make_key(project, "read")))
    assert own.json() == {"projects": [project]}
    none = await client.get("/v1/projects", headers=bearer(await make_key("somebody-else", "read")))
    assert none.json() == {"projects": []}
    refused = await client.get("/v1/projects", headers=bearer(await make_key(project, "submit")))
    assert refused.status_code == 403


async def test_a_board_feeds_another_project_only_by_a_key_for_every_one(
    client: AsyncClient, boards: str, project: str, make_key: MakeKey
):
    await client.put(f"/v1/projects/{project}-global/boards/score", json={})
    own = bearer(await make_key(project, "admin"))
    for feed in (f"{project}-global/score", f"{project}-global/not-there"):
        answer = await client.put(f"{boards}/arcade", json={"feeds": [feed]}, headers=own)
        assert answer.status_code == 403
        assert answer.json()["detail"] == f"feeds: {feed} is in another project; this needs a key for *"
    feeding = {"feeds": [f"{project}-global/score"]}
    assert (await client.put(f"{boards}/arcade", json=feeding)).status_code == 201
    kept = await client.put(f"{boards}/arcade", json=feeding | {"lateness": "PT1H"}, headers=own)
    assert kept.status_code == 200
    await client.put(f"{boards}/fed", json={}, headers=own)
    within = await client.put(f"{boards}/feeder", json={"feeds": [f"{project}/fed"]}, headers=own)
    assert within.status_code == 201


async def test_the_bootstrap_key_may_do_everything(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAURELS_BOOTSTRAP_KEY", "from-the-first-start")
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as laurels:
        transport = httpx.ASGITransport(create_app(laurels))
        async with httpx.AsyncClient(transport=transport, base_url="http://laurels.test") as client:
            client.headers.update(bearer("from-the-first-start"))
            assert (await client.put("/v1/projects/bootstrap/boards/arcade", json={})).status_code == 201
            assert (await client.delete("/v1/projects/bootstrap/boards/arcade")).status_code == 204
            assert (await client.get("/v1/projects", headers=bearer("from-the-first"))).status_code == 401


async def test_a_key_revoked_by_this_process_is_out_of_force_at_once(
    client: AsyncClient, board: str, project: str, laurels: Laurels
):
    key, secret = await laurels.keys.create(project, ["read"])
    assert (await client.get(board, headers=bearer(secret))).status_code == 200
    await laurels.keys.revoke(key.prefix)
    assert (await client.get(board, headers=bearer(secret))).status_code == 401


class Lookups:
    """Counts lookups, and fails them when told to."""

    def __init__(self, laurels: Laurels, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.is_down = False
        find = laurels.keys.find_by_digest

        async def counted(digest: bytes) -> ApiKey | None:
            self.count += 1
            if self.is_down:
                raise Unavailable("PostgreSQL does not answer")
            return await find(digest)

        monkeypatch.setattr(laurels.keys, "find_by_digest", counted)


async def test_a_key_is_looked_up_again_after_a_few_seconds(
    laurels: Laurels, make_key: MakeKey, monkeypatch: pytest.MonkeyPatch
):
    lookups = Lookups(laurels, monkeypatch)
    now = 100.0
    keyring = Keyring(laurels, now=lambda: now)
    await laurels.revocations.listening()
    secret = await make_key("acme", "read")
    for _ in range(3):
        assert await keyring.find(secret)
    assert lookups.count == 1
    now += FRESH_SECONDS
    assert await keyring.find(secret)
    assert lookups.count == 2


async def test_a_remembered_key_outlives_postgresql(
    laurels: Laurels, make_key: MakeKey, monkeypatch: pytest.MonkeyPatch
):
    lookups = Lookups(laurels, monkeypatch)
    now = 100.0
    keyring = Keyring(laurels, now=lambda: now)
    await laurels.revocations.listening()
    secret, other = await make_key("acme", "read"), await make_key("acme", "read")
    assert await keyring.find(secret)
    lookups.is_down = True
    now += 100 * FRESH_SECONDS
    assert await keyring.find(secret)
    assert await keyring.find(secret)
    assert lookups.count == 2
    with pytest.raises(Unavailable):
        await keyring.find(other)


async def test_a_key_that_cannot_be_looked_up_is_no_fault_of_the_caller(
    anybody: AsyncClient, laurels: Laurels, monkeypatch: pytest.MonkeyPatch
):
    Lookups(laurels, monkeypatch).is_down = True
    answer = await anybody.get("/v1/projects", headers=bearer("lk_new"))
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["type"] == "/problems/unavailable"
