"""The guide under /guide, as a package that was built with it serves it, and one that was not."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from laurels.errors import LaurelsError
from laurels.http.access_log import AccessLog
from laurels.http.middleware import RequestMiddleware
from laurels.http.problems import handle
from laurels.http.routes import guide

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

PAGE = "<!doctype html><title>Laurels</title>"


def browser(folder: Path) -> httpx.AsyncClient:
    app = Starlette(
        routes=guide.routes(folder),
        middleware=[Middleware(RequestMiddleware, AccessLog("off", 1.0))],
        exception_handlers={LaurelsError: handle},
    )
    app.router.redirect_slashes = False
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://laurels.test")


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    for name in ("index.html", "reference/cli.html", "search/search_index.json", "assets/bundle.1a2b.js"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{PAGE}{name}")
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    async with browser(tmp_path) as client:
        yield client


async def test_the_guide_leads_to_its_first_page_wherever_laurels_is_served(built: httpx.AsyncClient):
    answer = await built.get("/guide")
    assert (answer.status_code, answer.headers["location"]) == (307, "guide/")
    assert (await built.get("/guide/")).text == f"{PAGE}index.html"


@pytest.mark.parametrize("name", ["index.html", "reference/cli.html", "search/search_index.json"])
async def test_a_file_of_the_guide_is_asked_for_again_and_sent_once(built: httpx.AsyncClient, name: str):
    answer = await built.get(f"/guide/{name}")
    assert (answer.text, answer.headers["cache-control"]) == (f"{PAGE}{name}", "no-cache")
    assert answer.headers["content-encoding"] == "gzip"
    again = await built.get(f"/guide/{name}", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_files_whose_names_change_with_their_contents_are_kept(built: httpx.AsyncClient):
    answer = await built.get("/guide/assets/bundle.1a2b.js")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_the_guide_has_the_security_headers_of_all_pages(built: httpx.AsyncClient):
    headers = (await built.get("/guide/")).headers
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert headers["content-security-policy"].endswith("frame-ancestors 'none'")
    assert "unsafe" not in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


@pytest.mark.parametrize(
    "path",
    [
        "/guide/reference/",
        "/guide/gone.html",
        "/guide/../index.html",
        "/guide/index.html.gz",
        "/guide/%2e%2e/x",
    ],
)
async def test_nothing_else_is_served(built: httpx.AsyncClient, path: str):
    assert (await built.get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/guide", "/guide/", "/guide/reference/cli.html"])
async def test_without_a_guide_the_answer_says_how_to_build_it(tmp_path: Path, path: str):
    async with browser(tmp_path) as client:
        answer = await client.get(path)
    assert answer.status_code == 404
    assert "make docs" in answer.json()["detail"]
