from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import structlog

from laurels.http.app import create_app
from laurels.metrics import REGISTRY

if TYPE_CHECKING:
    from httpx import AsyncClient
    from starlette.types import Message, Scope

    from laurels.engine import Laurels

    from .conftest import Logged


@pytest.mark.parametrize("path", ["/", "/healthz", "/nothing", "/v1/projects", "/docs", "/openapi.json"])
async def test_every_answer_has_a_request_id_and_safe_headers(anybody: AsyncClient, path: str):
    answer = await anybody.get(path)
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["x-request-id"])
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "cache-control" in answer.headers


@pytest.mark.parametrize("sane", ["a", "req-1/2:3", "x" * 128, "~!@#$%^&*()"])
async def test_a_sane_request_id_is_kept(anybody: AsyncClient, sane: str):
    answer = await anybody.get("/healthz", headers={"X-Request-Id": sane})
    assert answer.headers["x-request-id"] == sane


@pytest.mark.parametrize("insane", [b"", b"x" * 129, b"a b", b"\xe9", b"a\tb", b"a\x1b[31m"])
async def test_another_request_id_is_replaced(anybody: AsyncClient, insane: bytes):
    answer = await anybody.get("/healthz", headers={b"X-Request-Id": insane})
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["x-request-id"])


async def test_every_request_is_logged_with_its_id(client: AsyncClient, board: str, logged: Logged):
    await client.get(f"{board}/entries/a%0Ab?period=daily", headers={"X-Request-Id": "r-1"})
    line = logged[-1]
    assert line.pop("milliseconds") > 0
    assert line == {
        "event": "request",
        "log_level": "info",
        "request_id": "r-1",
        "method": "GET",
        "path": f"{board}/entries/a%0Ab",
        "route": "/v1/projects/{project}/boards/{board}/entries/{member}",
        "status": 404,
        "client": "127.0.0.1",
    }
    assert structlog.contextvars.get_contextvars() == {}


@pytest.mark.parametrize(
    ("method", "path", "route", "status"),
    [
        (
            "GET",
            "/v1/projects/a/boards/b/entries/x",
            "/v1/projects/{project}/boards/{board}/entries/{member}",
            404,
        ),
        ("GET", "/v1/projects/a/boards/b", "/v1/projects/{project}/boards/{board}", 404),
        ("PATCH", "/v1/projects/a/boards/b", "/v1/projects/{project}/boards/{board}", 405),
        ("GET", "/nothing/at/all", "unmatched", 404),
        ("GET", "/healthz", "/healthz", 200),
        ("HEAD", "/readyz", "/readyz", 200),
        ("GET", "/openapi.json", "/openapi.json", 200),
        ("GET", "/problems/nothing", "/problems/{kind}", 404),
    ],
)
async def test_requests_are_counted_by_the_template_of_their_route(
    client: AsyncClient, method: str, path: str, route: str, status: int
):
    labels = {"method": method, "route": route, "status": str(status)}
    before = REGISTRY.get_sample_value("laurels_http_requests_total", labels) or 0
    assert (await client.request(method, path)).status_code == status
    assert REGISTRY.get_sample_value("laurels_http_requests_total", labels) == before + 1


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/docs", "/v1/projects", "/openapi.json"])
async def test_head_is_answered_like_get_without_the_body(client: AsyncClient, path: str):
    head, get = await client.head(path), await client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == get.headers["content-type"]


async def test_a_client_who_leaves_in_the_middle_of_a_body_is_no_error(
    laurels: Laurels, admin_key: str, board: str, logged: Logged
):
    sent: list[Message] = []
    received: list[Message] = [
        {"type": "http.request", "body": b'[{"member":', "more_body": True},
        {"type": "http.disconnect"},
    ]
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": f"{board}/scores/batch",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {admin_key}".encode())],
    }

    async def receive() -> Message:
        return received.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await create_app(laurels)(scope, receive, send)
    assert sent == []
    assert (logged[-1]["event"], logged[-1]["status"]) == ("request", 499)
