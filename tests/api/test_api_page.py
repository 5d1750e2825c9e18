from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from laurels.api import page
from laurels.api.envelope import Envelope

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from httpx import AsyncClient

OWN = "default-src 'self'"


def browser(folder: Path) -> httpx.AsyncClient:
    app = Starlette(routes=page.routes(folder), middleware=[Middleware(Envelope)])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://laurels.test")


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """A package that was built with a page."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Laurels</title>")
    (tmp_path / "assets" / "index-1a2b.js").write_text("render()")
    (tmp_path / "__init__.py").write_text("")
    async with browser(tmp_path) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/index.html"])
async def test_the_page_is_served_under_a_strict_policy(built: httpx.AsyncClient, path: str):
    answer = await built.get(path)
    assert answer.text == "<!doctype html><title>Laurels</title>"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-security-policy"].startswith(OWN)
    assert "unsafe" not in answer.headers["content-security-policy"]


async def test_files_whose_names_change_with_their_contents_are_kept(built: httpx.AsyncClient):
    answer = await built.get("/assets/index-1a2b.js")
    assert answer.text == "render()"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_a_file_that_the_browser_has_is_not_sent_again(built: httpx.AsyncClient):
    tag = (await built.get("/")).headers["etag"]
    answer = await built.get("/", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/",
        "/assets",
        "/../conftest.py",
        "/%2e%2e/etc/passwd",
        "/assets/..%2findex.html",
        "/__init__.py",
    ],
)
async def test_nothing_else_is_served(built: httpx.AsyncClient, path: str):
    assert (await built.get(path)).status_code == 404


async def test_without_a_page_there_are_links(tmp_path: Path):
    async with browser(tmp_path) as client:
        answer = await client.get("/")
    assert answer.json() == page.LINKS


async def test_the_documentation_runs_no_script_but_its_own(anybody: AsyncClient):
    answer = await anybody.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "url: 'openapi.json'" in answer.text
    policy = answer.headers["content-security-policy"]
    assert re.search(r"script-src https://cdn\.jsdelivr\.net 'sha256-[\w+/]{43}='", policy)
    assert "script-src 'unsafe" not in policy
