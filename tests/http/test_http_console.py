"""Sessions of the console: who gets one, what it counts for, and what ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laurels.access.store.api_keys import SCOPES

if TYPE_CHECKING:
    import httpx

    from laurels.engine import Laurels

    from .conftest import ClientWith, MakeKey

SESSION = "/console/session"
HOST = "laurels.test"
OURS = {"X-Laurels-Console": "1", "Sec-Fetch-Site": "same-origin"}
# As browsers ask over plain HTTP.
WITHOUT_FETCH_METADATA = {"X-Laurels-Console": "1", "Origin": f"http://{HOST}"}


@pytest.fixture
async def browser(anybody: httpx.AsyncClient) -> httpx.AsyncClient:
    """Keeps its cookies, and asks as our pages do."""
    anybody.headers.update(OURS)
    return anybody


async def sign_in(browser: httpx.AsyncClient, key: str) -> httpx.Response:
    return await browser.post(SESSION, json={"key": key})


async def test_a_session_counts_as_its_key_does(
    browser: httpx.AsyncClient, make_key: MakeKey, laurels: Laurels, project: str
):
    answer = await sign_in(browser, await make_key(project, "admin"))
    assert answer.status_code == 201
    assert answer.json()["project"] == project
    board = f"/v1/projects/{project}/boards/arcade"
    assert (await browser.put(board, json={})).status_code == 201
    submitted = await browser.post(f"{board}/scores", json={"member": "ada", "score": 5})
    assert submitted.json()["rank"] == 1
    assert (await browser.get(f"{board}/entries")).json()["total"] == 1
    # Not beyond its project, and not beyond its scopes.
    assert (await browser.get("/v1/projects/another/boards")).status_code == 403
    assert (await browser.get("/v1/overview")).status_code == 403
    session = await browser.get(SESSION)
    (key,) = await laurels.keys.keys(project)
    assert session.json() == {"project": project, "scopes": ["admin"], "key": str(key.id)}


async def test_an_operator_can_sign_in_while_valkey_is_out_of_memory(
    browser: httpx.AsyncClient, make_key: MakeKey, laurels: Laurels, project: str
):
    key = await make_key(project, "admin")
    await laurels.valkey.command("CONFIG", "SET", "maxmemory", 1)
    try:
        assert (await sign_in(browser, key)).status_code == 201
    finally:
        await laurels.valkey.command("CONFIG", "SET", "maxmemory", 0)
    assert (await browser.get(SESSION)).json()["project"] == project


async def test_the_cookie_is_kept_from_scripts_and_from_other_sites(
    browser: httpx.AsyncClient, make_key: MakeKey, project: str
):
    key = await make_key(project, "admin")
    cookie = (await sign_in(browser, key)).headers["set-cookie"]
    parts = cookie.split("; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(parts)
    assert "Secure" not in parts
    assert key not in cookie
    behind_a_proxy = await browser.post(SESSION, json={"key": key}, headers={"Origin": f"https://{HOST}"})
    parts = behind_a_proxy.headers["set-cookie"].split("; ")
    assert parts[0].startswith("__Host-laurels_session=")
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Secure"} <= set(parts)


async def test_valkey_knows_neither_the_session_nor_the_key(
    browser: httpx.AsyncClient, make_key: MakeKey, laurels: Laurels, project: str
):
    key = await make_key(project, "admin")
    before = {*await laurels.valkey.command("KEYS", "laurels:session:*")}
    assert (await sign_in(browser, key)).status_code == 201
    (kept,) = {*await laurels.valkey.command("KEYS", "laurels:session:*")} - before
    stored = await laurels.valkey.command("GET", kept)
    assert browser.cookies["laurels_session"].encode() not in kept
    assert await laurels.keys.find_by_digest(stored) is None
    assert 0 < await laurels.valkey.command("TTL", kept) <= 12 * 3600


@pytest.mark.parametrize(("scopes", "status"), [(("read", "submit"), 403), (("admin",), 201), (SCOPES, 201)])
async def test_only_a_key_with_admin_signs_in(
    browser: httpx.AsyncClient, make_key: MakeKey, project: str, scopes: tuple[str, ...], status: int
):
    answer = await sign_in(browser, await make_key(project, *scopes))  # pyright: ignore[reportArgumentType]  # as parametrized
    assert answer.status_code == status
    assert ("set-cookie" in answer.headers) == (status == 201)


@pytest.mark.parametrize("key", ["", "wrong", "lk_wrong000_" + "x" * 43, "é", "d.e.f"])
async def test_a_key_that_is_not_good_does_not_sign_in(browser: httpx.AsyncClient, key: str):
    answer = await sign_in(browser, key)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert "set-cookie" not in answer.headers
    assert (await browser.get(SESSION)).status_code == 204


async def test_a_revoked_key_ends_its_sessions_at_once(
    browser: httpx.AsyncClient, make_key: MakeKey, project: str
):
    await sign_in(browser, await make_key(project, "admin"))
    keys = f"/v1/projects/{project}/keys"
    (own,) = (await browser.get(keys)).json()["keys"]
    assert (await browser.delete(f"{keys}/{own['prefix']}")).status_code == 204
    answer = await browser.get(keys)
    assert answer.status_code == 401
    assert "sign in again" in answer.json()["detail"]
    assert (await browser.get(SESSION)).status_code == 204


async def test_who_signs_out_is_out(browser: httpx.AsyncClient, make_key: MakeKey, project: str):
    await sign_in(browser, await make_key(project, "admin"))
    cookie = browser.cookies["laurels_session"]
    assert (await browser.delete(SESSION)).status_code == 204
    assert "laurels_session" not in browser.cookies
    stolen = {"Cookie": f"laurels_session={cookie}"}
    assert (await browser.get("/v1/projects", headers=stolen)).status_code == 401
    assert (await browser.delete(SESSION)).status_code == 204


async def test_who_signs_in_again_leaves_no_session_behind(
    browser: httpx.AsyncClient, make_key: MakeKey, project: str
):
    key = await make_key(project, "admin")
    await sign_in(browser, key)
    before = browser.cookies["laurels_session"]
    await sign_in(browser, key)
    assert browser.cookies["laurels_session"] != before
    old = {"Cookie": f"laurels_session={before}"}
    assert (await browser.get("/v1/projects", headers=old)).status_code == 401
    assert (await browser.get("/v1/projects")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Laurels-Console": "1"},
        {"X-Laurels-Console": "", "Sec-Fetch-Site": "same-origin"},
        {"X-Laurels-Console": "", "Origin": f"http://{HOST}"},
        {"X-Laurels-Console": "1", "Sec-Fetch-Site": "cross-site"},
        {"X-Laurels-Console": "1", "Sec-Fetch-Site": "same-site"},
        {"X-Laurels-Console": "1", "Sec-Fetch-Site": "none"},
        {"X-Laurels-Console": "1", "Sec-Fetch-Site": "cross-site", "Origin": f"http://{HOST}"},
        {"X-Laurels-Console": "1", "Origin": "http://evil.test"},
        {"X-Laurels-Console": "1", "Origin": f"http://{HOST}.evil.test"},
        {"X-Laurels-Console": "1", "Origin": "null"},
        {"X-Laurels-Console": "1", "Origin": "http://["},
        {"X-Laurels-Console": "1", "Origin": f"http://user@{HOST}"},
    ],
    ids=str,
)
async def test_a_session_changes_nothing_for_other_pages(
    anybody: httpx.AsyncClient, make_key: MakeKey, laurels: Laurels, project: str, headers: dict[str, str]
):
    key = await make_key(project, "admin")
    signed_in = await anybody.post(SESSION, json={"key": key}, headers=OURS)
    assert signed_in.status_code == 201
    board = f"/v1/projects/{project}/boards/arcade"
    for method, path in (("PUT", board), ("POST", SESSION), ("DELETE", SESSION)):
        answer = await anybody.request(
            method, path, json={"key": key} if method == "POST" else {}, headers=headers
        )
        assert answer.status_code == 403, (method, answer.text)
    assert await laurels.store.get(project, "arcade") is None
    assert (await anybody.get(SESSION)).status_code == 200


async def test_a_browser_without_fetch_metadata_is_known_by_its_origin(
    anybody: httpx.AsyncClient, make_key: MakeKey, project: str
):
    anybody.headers.update(WITHOUT_FETCH_METADATA)
    assert (await sign_in(anybody, await make_key(project, "admin"))).status_code == 201
    assert (await anybody.put(f"/v1/projects/{project}/boards/arcade", json={})).status_code == 201


async def test_pages_of_other_sites_cannot_even_ask(
    browser: httpx.AsyncClient, make_key: MakeKey, project: str
):
    await sign_in(browser, await make_key(project, "admin"))
    boards = f"/v1/projects/{project}/boards"
    for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
        answer = await browser.get(boards, headers={"Sec-Fetch-Site": site})
        assert answer.status_code == status, site


async def test_a_key_that_is_sent_goes_before_the_session(
    browser: httpx.AsyncClient, make_key: MakeKey, project: str
):
    await sign_in(browser, await make_key(project, "admin"))
    reader = {"Authorization": f"Bearer {await make_key('elsewhere', 'read')}"}
    assert (await browser.get(f"/v1/projects/{project}/boards", headers=reader)).status_code == 403
    assert (await browser.get(SESSION, headers=reader)).status_code == 204


async def test_wrong_keys_are_limited_but_a_session_that_is_over_is_not(
    client_with: ClientWith, make_key: MakeKey, project: str
):
    elsewhere = await client_with("192.0.2.77", rate_limit_failures="2/hour")
    elsewhere.headers["Authorization"] = ""
    elsewhere.headers.update(OURS)
    old = {"Cookie": "laurels_session=over"}
    for _ in range(5):
        assert (await elsewhere.get("/v1/projects", headers=old)).status_code == 401
    statuses = [(await sign_in(elsewhere, "wrong")).status_code for _ in range(3)]
    assert statuses == [401, 401, 429]
    assert (await sign_in(elsewhere, await make_key(project, "admin"))).status_code == 429


async def test_a_session_holds_in_every_process(
    browser: httpx.AsyncClient, client_with: ClientWith, make_key: MakeKey, project: str
):
    await sign_in(browser, await make_key(project, "admin"))
    other = await client_with()
    cookie = {"Cookie": f"laurels_session={browser.cookies['laurels_session']}", "Authorization": ""}
    assert (await other.get(f"/v1/projects/{project}/boards", headers=cookie)).status_code == 200
    assert (await browser.delete(SESSION)).status_code == 204
    assert (await other.get(f"/v1/projects/{project}/boards", headers=cookie)).status_code == 401


async def test_the_bootstrap_key_signs_in(client_with: ClientWith):
    other = await client_with(bootstrap_key="a-known-key")
    other.headers["Authorization"] = ""
    other.headers.update(OURS)
    answer = await sign_in(other, "a-known-key")
    assert answer.json() == {"project": "*", "scopes": ["read", "submit", "admin"], "key": "bootstrap"}
    assert (await other.get("/v1/overview")).status_code == 200
