"""Errors for people: a page in a browser, where programs get a problem."""

from __future__ import annotations

import asyncio
import re
import socket
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn

from laurels.errors import Unavailable
from laurels.http.error_page import prefers_html

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fastapi import FastAPI

    from laurels.engine import Laurels

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"}


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.hrefs += [value or "" for name, value in attrs if tag == "a" and name == "href"]


@pytest.fixture
async def served(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient]:
    """A client without a key, of a real server."""
    server = uvicorn.Server(uvicorn.Config(app, http="h11", log_config=None, access_log=False))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        address = "http://{}:{}".format(*listener.getsockname())
        async with httpx.AsyncClient(base_url=address, headers=BROWSER) as client:
            yield client
        server.should_exit = True
        await serving


def page_of(answer: httpx.Response) -> Links:
    """What the page has, if it is one that every browser may show."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["cache-control"] == "no-store"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-request-id"] in answer.text
    page = Links()
    page.feed(answer.text)
    assert not {"script", "img", "b"} & set(page.tags)
    return page


@pytest.mark.parametrize(
    ("method", "path", "status", "told", "home"),
    [
        ("GET", "/nowhere", 404, "there is no GET /nowhere", "./"),
        ("GET", "/no/where/", 404, "there is no GET /no/where/", "../../"),
        ("GET", "/v1/projects", 401, "A valid API key is needed", "../"),
        ("POST", "/healthz", 405, "this path has GET, HEAD", "./"),
    ],
)
async def test_a_browser_is_shown_a_page(
    served: httpx.AsyncClient, *, method: str, path: str, status: int, told: str, home: str
):
    answer = await served.request(method, path)
    assert answer.status_code == status
    assert told in answer.text
    assert page_of(answer).hrefs == [home]


async def test_the_page_has_the_headers_of_the_problem(served: httpx.AsyncClient):
    refused = await served.get("/v1/projects")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert (await served.post("/healthz")).headers["allow"] == "GET, HEAD"


async def test_a_key_that_may_not_is_told_so_in_a_page(served: httpx.AsyncClient, laurels: Laurels):
    key = (await laurels.keys.create("error-page", ["read"]))[1]
    answer = await served.get("/v1/overview", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 403
    page_of(answer)


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("the <secret> cause"), 500), (Unavailable("at db.internal"), 503)]
)
async def test_a_failure_is_shown_without_its_cause(
    served: httpx.AsyncClient,
    laurels: Laurels,
    monkeypatch: pytest.MonkeyPatch,
    admin_key: str,
    *,
    error: Exception,
    status: int,
):
    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(laurels.all_windows, "page", fail)
    headers = {"Authorization": f"Bearer {admin_key}"}
    answer = await served.get("/v1/projects/a/boards/b/entries", headers=headers)
    assert answer.status_code == status
    page_of(answer)
    assert "secret" not in answer.text
    assert "internal" not in answer.text


async def test_nothing_that_was_sent_becomes_markup(served: httpx.AsyncClient, admin_key: str):
    headers = {"Authorization": f"Bearer {admin_key}"}
    for path in ("/<script>alert(1)</script>", "/v1/projects?%3Cimg%3E=1"):
        page_of(await served.get(path, headers=headers))
    escaped = await served.get("/nowhere", headers={"X-Request-Id": "<b>&"})
    assert "&lt;b&gt;&amp;" in escaped.text
    assert "<b>" not in escaped.text


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/event-stream", "text/html;q=0"])
async def test_a_program_gets_a_problem(served: httpx.AsyncClient, accept: str | None):
    headers: dict[str, Any] = {} if accept is None else {"Accept": accept}
    async with httpx.AsyncClient(base_url=served.base_url) as client:
        del client.headers["accept"]
        answer = await client.get("/nowhere", headers=headers)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["vary"] == "Accept"
    assert answer.json()["status"] == 404


async def test_several_accept_headers_are_one_list(served: httpx.AsyncClient):
    headers = [("Accept", "text/html;q=0.5"), ("Accept", "application/json")]
    async with httpx.AsyncClient(base_url=served.base_url) as client:
        del client.headers["accept"]
        answer = await client.get("/nowhere", headers=headers)
    assert answer.headers["content-type"] == "application/problem+json"


async def test_head_has_the_headers_of_the_page_alone(served: httpx.AsyncClient):
    page, head = await served.get("/nowhere"), await served.head("/nowhere")
    assert (head.status_code, head.content) == (404, b"")
    for name in ("content-type", "content-security-policy", "vary"):
        assert head.headers[name] == page.headers[name]


async def test_the_page_s_style_is_the_one_that_its_policy_allows(served: httpx.AsyncClient):

    answer = await served.get("/nowhere")
    style = re.search("<style>(.*)</style>", answer.text, re.DOTALL)
    assert style is not None
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("*/*", False),
        ("text/html", True),
        ("TEXT/HTML", True),
        ("text/*", True),
        ("text/html, application/json", False),
        ("text/html;q=0.9, application/json", False),
        ("text/html, application/json;q=0.9", True),
        ("text/html, application/problem+json", False),
        ("text/html;q=0.5, */*;q=0.8", False),
        ("text/html;q=0.5, */*;q=0.1", True),
        ("text/html;level=1;q=0.7, */*;q=0.5", True),
        ("text/*;q=0.3, text/html;q=0.9, application/*;q=0.5", True),
        ("text/html; Q=0.9, */*; q=0.8", True),
        ("text/html;q=high", False),
        ("text/html;q=nan", False),
        (",;,text/html;;", True),
    ],
)
def test_html_is_preferred_by_its_quality(accept: str, *, expected: bool):
    assert prefers_html(accept) is expected
