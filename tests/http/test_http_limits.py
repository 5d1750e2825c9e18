from __future__ import annotations

import asyncio
import re
import signal
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from valkey_cluster import running_cluster
from valkey_servers import running_valkey

from laurels.access.limits import Limiter, Rates
from laurels.access.principal import Principal
from laurels.access.store.secrets import NewSecret
from laurels.engine import Laurels
from laurels.metrics import REGISTRY
from laurels.settings import Settings
from laurels.valkey import functions
from laurels.valkey.client import Valkey
from laurels.valkey.names import LIMIT

from .player_tokens import bearer, token

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from httpx import AsyncClient, Response

    from laurels.embedded import Endpoints
    from laurels.valkey.messages import HitReply

    from .conftest import ClientWith, MakeKey

pytestmark = pytest.mark.usefixtures("clock")


def limits(answer: Response) -> tuple[str, ...]:
    return tuple(answer.headers.get(name, "") for name in ("RateLimit-Policy", "RateLimit"))


def engine_of(client: AsyncClient) -> Laurels:
    transport: Any = client._transport  # pyright: ignore[reportPrivateUsage]  # where httpx keeps the app
    return transport.app.state.laurels


async def statuses(client: AsyncClient, url: str, key: str, count: int) -> list[int]:
    return [(await client.get(url, headers=bearer(key))).status_code for _ in range(count)]


async def test_each_key_has_its_own_limit(
    client_with: ClientWith, board: str, project: str, make_key: MakeKey
):
    client = await client_with(rate_limit_key="3/hour")
    one, other = await make_key(project, "read"), await make_key(project, "read")
    first = await client.get(board, headers=bearer(one))
    policy, left = limits(first)
    assert policy == '"key";q=3;w=3600'
    assert re.fullmatch(r'"key";r=2;t=\d+', left)
    assert await statuses(client, board, one, 3) == [200, 200, 429]
    assert await statuses(client, board, other, 1) == [200]
    refused = await client.get(board, headers=bearer(one))
    assert refused.json()["type"] == "/problems/rate-limited"
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["retry-after"]) <= 3600
    assert refused.json()["detail"] == "too many requests: at most 3 per 1 hour for each key"
    assert re.fullmatch(r'"key";r=0;t=\d+', limits(refused)[1])


async def test_processes_count_together(client_with: ClientWith, board: str, project: str, make_key: MakeKey):
    clients = [await client_with(rate_limit_key="4/hour") for _ in range(2)]
    key = await make_key(project, "read")
    found = [await statuses(client, board, key, 1) for client in clients * 3]
    assert sorted(status for (status,) in found) == [200] * 4 + [429] * 2


async def test_requests_at_once_are_counted_exactly(
    client_with: ClientWith, board: str, project: str, make_key: MakeKey
):
    client = await client_with(rate_limit_key="5/hour")
    key = await make_key(project, "read")
    answers = await asyncio.gather(*(client.get(board, headers=bearer(key)) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429] * 15


async def test_several_limits_hold_at_once(
    client_with: ClientWith, board: str, project: str, make_key: MakeKey
):
    client = await client_with(rate_limit_key="100/minute;2/hour")
    key = await make_key(project, "read")
    answer = await client.get(board, headers=bearer(key))
    assert limits(answer)[0] == '"key";q=100;w=60, "key";q=2;w=3600'
    assert await statuses(client, board, key, 2) == [200, 429]


async def test_each_player_has_its_own_limit(client_with: ClientWith, board: str, project: str):
    client = await client_with(rate_limit_player="2/hour")
    laurels = engine_of(client)
    _, secret = await laurels.secrets.create(project, NewSecret("players"))
    ada, bob = (token(secret or "", project, member, exp=2**33) for member in ("ada}{/x", "bob"))
    assert await statuses(client, board, ada, 3) == [200, 200, 429]
    assert await statuses(client, board, bob, 1) == [200]


async def test_each_address_has_its_own_limit(client_with: ClientWith, board: str, admin_key: str):
    addresses = {
        "192.0.2.7": [200, 429],
        "192.0.2.8": [200, 429],
        "2001:db8::1": [200, 429],
        "2001:db8::2": [429] * 2,
    }
    for address, expected in addresses.items():
        client = await client_with(address, rate_limit_address=f"1/{97} hours")
        assert await statuses(client, board, admin_key, 2) == expected, address


async def test_without_limits_nothing_is_said(client_with: ClientWith, board: str):
    answer = await (await client_with()).get(board)
    assert limits(answer) == ("", "")


async def test_bad_secrets_are_limited_by_address(
    client_with: ClientWith, board: str, project: str, admin_key: str, make_key: MakeKey
):
    def counted() -> list[float]:
        names = ("secret", "failures")
        return [REGISTRY.get_sample_value("laurels_refusals_total", {"reason": name}) or 0 for name in names]

    before = counted()
    client = await client_with("192.0.2.21", rate_limit_failures="3/hour")
    assert await statuses(client, board, admin_key, 1) == [200]
    found = [(await client.get(board, headers=bearer(f"lk_wrong_{n}"))).status_code for n in range(5)]
    assert found == [401, 401, 401, 429, 429]
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [4, 2]
    # A key that is known goes on; one that would have to be looked up does not.
    assert await statuses(client, board, admin_key, 2) == [200, 200]
    assert await statuses(client, board, await make_key(project, "read"), 1) == [429]
    assert (await client.get(board, headers={"Authorization": ""})).status_code == 401
    elsewhere = await client_with("192.0.2.22", rate_limit_failures="3/hour")
    assert await statuses(elsewhere, board, "lk_wrong_0", 1) == [401]


async def test_bad_tokens_and_signatures_count_as_bad_secrets(
    client_with: ClientWith, board: str, project: str
):
    client = await client_with("192.0.2.23", rate_limit_failures="2/hour")
    forged = token("x" * 40, project, "ada", exp=2**33)
    assert await statuses(client, board, forged, 1) == [401]
    signed = {"X-Laurels-Signature": "v1=" + "0" * 64}
    answer = await client.post(f"{board}/scores", json={"member": "ada", "score": 1}, headers=signed)
    assert answer.status_code == 401
    assert await statuses(client, board, forged, 1) == [429]


async def test_the_address_is_what_trusted_proxies_say(client_with: ClientWith, board: str, admin_key: str):
    behind = await client_with(
        "10.0.0.1", rate_limit_address="1/89 hours", trusted_proxies="10.0.0.0/8,192.0.2.99"
    )
    key = bearer(admin_key)
    ways = [
        ("198.51.100.1", 200),
        ("198.51.100.1", 429),
        ("203.0.113.5, 198.51.100.1", 429),  # what a client makes up stands on the left
        ("198.51.100.2, 192.0.2.99, 10.9.9.9", 200),
        ("198.51.100.3, nonsense, 10.9.9.9", 200),  # no further than it can be read
    ]
    for forwarded, status in ways:
        answer = await behind.get(board, headers={**key, "X-Forwarded-For": forwarded})
        assert answer.status_code == status, forwarded
    untrusted = await client_with("192.0.2.33", rate_limit_address="1/89 hours", trusted_proxies="10.0.0.0/8")
    found = [
        (await untrusted.get(board, headers={**key, "X-Forwarded-For": f"198.51.100.{n}"})).status_code
        for n in (50, 51)
    ]
    assert found == [200, 429]


async def test_while_valkey_does_not_answer_nobody_is_limited(
    client_with: ClientWith, board: str, project: str, make_key: MakeKey
):
    client = await client_with(rate_limit_key="1/hour")
    laurels = engine_of(client)
    key = await make_key(project, "read")
    assert await statuses(client, board, key, 2) == [200, 429]
    working, away = laurels.valkey, Valkey("redis://127.0.0.1:1")
    laurels.valkey = away
    try:
        answer = await client.get(board, headers=bearer(key))
        assert (answer.status_code, limits(answer)) == (200, ("", ""))
    finally:
        laurels.valkey = working
        await away.close()


async def test_while_valkey_is_frozen_requests_wait_no_longer_than_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("laurels.access.limits.ANSWER_SECONDS", 0.2)
    calls: list[int] = []
    hit = functions.hit

    async def noted(valkey: Valkey, keys: Sequence[str], *rest: int) -> list[HitReply]:
        calls.append(len(keys))
        return await hit(valkey, keys, *rest)

    monkeypatch.setattr(functions, "hit", noted)
    with running_valkey() as server:
        valkey = Valkey(server.url)
        await valkey.load_functions()
        limiter = Limiter(Settings(rate_limit_key="5/hour"), lambda: valkey)
        request: Any = None  # addresses are not limited
        server.process.send_signal(signal.SIGSTOP)
        await asyncio.gather(
            *(limiter.count(request, Principal("p", frozenset(), str(number)), {}) for number in range(500))
        )
        assert sum(calls) < 500, "none waits for the calls of others"
        server.process.send_signal(signal.SIGCONT)
        await valkey.close()


@pytest.fixture(scope="module", params=["node", "cluster"])
async def valkey(request: pytest.FixtureRequest, endpoints: Endpoints) -> AsyncGenerator[Valkey]:
    if request.param == "node":
        async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as laurels:
            yield laurels.valkey
        return
    with running_cluster(3) as url:
        async with Laurels(valkey_url=url, postgres_url=endpoints.postgres_url) as laurels:
            yield laurels.valkey


async def test_windows_count_on_one_node_and_on_a_cluster(valkey: Valkey):
    rates = Rates("key", "2/hour", lambda: valkey)
    for name in ("a", "b}{c", "{"):
        who = f"{uuid4()}/{name}"
        hits = [await rates.hit(who) for _ in range(3)]
        assert [(hit.is_allowed, hit.remaining) for hit in hits] == [(True, 1), (True, 0), (False, 0)]
        assert all(0 < hit.resets_in <= 3600 for hit in hits)


async def test_the_tightest_of_several_limits_decides(valkey: Valkey):
    rates, who = Rates("key", "3/hour;2/minute", lambda: valkey), str(uuid4())
    hits = [await rates.hit(who) for _ in range(3)]
    assert [(hit.is_allowed, hit.remaining) for hit in hits] == [(True, 1), (True, 0), (False, 0)]


async def moved_back(valkey: Valkey, key: str, minutes: int) -> None:
    """As if the present stretch of the window had begun so much earlier."""
    start, before, now = (await valkey.command("GET", key)).split()
    moved = f"{int(start) - minutes * 60_000} {int(before)} {int(now)}"
    await valkey.command("SET", key, moved, "KEEPTTL")


async def test_a_window_slides(valkey: Valkey):
    """What was spent before counts for less and less."""
    rates, who = Rates("key", "10/hour", lambda: valkey), str(uuid4())
    key = f"{LIMIT}:10/3600:key:{who}"
    for _ in range(4):
        await rates.hit(who)
    await moved_back(valkey, key, 61)
    hit = await rates.hit(who)
    assert (hit.is_allowed, hit.remaining) == (True, 6)  # a little less than the four before, and this one
    await moved_back(valkey, key, 30)
    hit = await rates.hit(who)
    assert (hit.is_allowed, hit.remaining) == (True, 7)  # a little less than two of the four, and these two
    assert 0 < hit.resets_in <= 900
    await moved_back(valkey, key, 120)
    assert (await rates.hit(who)).remaining == 9


async def test_a_clock_that_was_set_back_starts_the_window_anew(valkey: Valkey):
    rates, who = Rates("key", "2/hour", lambda: valkey), str(uuid4())
    key = f"{LIMIT}:2/3600:key:{who}"
    for _ in range(2):
        await rates.hit(who)
    await moved_back(valkey, key, -90)
    hit = await rates.hit(who)
    assert (hit.is_allowed, hit.remaining) == (True, 1)
    assert 0 < await valkey.command("PTTL", key) <= 7_200_000


async def test_hits_at_the_same_time_count_each_by_itself(valkey: Valkey):
    rates, run = Rates("key", "5/hour", lambda: valkey), uuid4()
    hits = await asyncio.gather(*(rates.hit(f"{run}/{number % 3}") for number in range(21)))
    for member in range(3):
        own = hits[member::3]
        assert [hit.is_allowed for hit in own] == [True] * 5 + [False] * 2
        assert [hit.remaining for hit in own] == [4, 3, 2, 1, 0, 0, 0]


def not_asked() -> Valkey:
    raise AssertionError


def test_a_policy_names_every_limit():
    for rates, policy in ((None, ""), ("5/2 minutes", '"key";q=5;w=120')):
        assert Rates("key", rates, not_asked).policy == policy


async def test_every_kind_of_route_counts_with_the_one_limiter_of_the_app(
    client_with: ClientWith, board: str, project: str, make_key: MakeKey
):
    client = await client_with(rate_limit_key="3/hour")
    headers = bearer(await make_key(project, "read", "submit"))
    submission = {"member": "ada", "score": 5}
    answers = [
        await client.post(f"{board}/scores", headers=headers, json=submission),
        await client.get(board, headers=headers),
        await client.get(f"/v1/projects/{project}/boards", headers=headers),
        await client.get(board, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
