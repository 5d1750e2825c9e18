from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from laurels.http.access_log import AccessLog
from laurels.http.middleware import RequestMiddleware
from laurels.http.routes import pages

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

PAGE = '<!doctype html><base href="./" /><title>Laurels</title>'
SCRIPT = "render()"


def browser(folder: Path) -> httpx.AsyncClient:
    app = Starlette(
        routes=pages.routes(folder), middleware=[Middleware(RequestMiddleware, AccessLog("off", 1.0))]
    )
    app.router.redirect_slashes = False
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://laurels.test")


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """A package that was built with pages."""
    for folder in ("assets", ".vite"):
        (tmp_path / folder).mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "embed.html").write_text(PAGE.replace("Laurels", "Embedded"))
    (tmp_path / "embed.js").write_text("embed()")
    (tmp_path / "assets" / "index-1a2b.js").write_text(SCRIPT)
    (tmp_path / "assets" / "index-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT.encode(), mtime=0))
    (tmp_path / "assets" / "index-1a2b.js.br").write_bytes(b"as brotli has it")
    (tmp_path / ".vite" / "manifest.json").write_text("{}")
    (tmp_path / "__init__.py").write_text("")
    async with browser(tmp_path) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/", "./"),
        ("/leaderboards", "./"),
        ("/boards", "./"),
        ("/boards/", "../"),
        ("/boards/demo/arcade", "../../"),
        ("/boards/demo/a%2Fb", "../../"),
        ("/console", "./"),
        ("/console/keys", "../"),
        ("/docs", "./"),
    ],
)
async def test_every_address_of_a_page_leads_to_it_and_says_where_the_root_is(
    built: httpx.AsyncClient, path: str, root: str
):
    answer = await built.get(path)
    assert answer.text == PAGE.replace("./", root)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


async def test_pages_run_nothing_but_their_own_and_stand_in_nobody_s_frame(built: httpx.AsyncClient):
    policy = (await built.get("/boards/demo/arcade")).headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert policy.endswith("frame-ancestors 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_what_is_made_to_be_embedded_may_be(built: httpx.AsyncClient):
    answer = await built.get("/embed/demo/arcade")
    assert "Embedded" in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert policy.endswith("frame-ancestors *")


async def test_files_whose_names_change_with_their_contents_are_kept(built: httpx.AsyncClient):
    answer = await built.get("/assets/index-1a2b.js")
    assert answer.text == SCRIPT
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_other_files_are_asked_for_again(built: httpx.AsyncClient):
    answer = await built.get("/embed.js")
    assert (answer.text, answer.headers["cache-control"]) == ("embed()", "no-cache")


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("identity", None),
        ("", None),
    ],
)
async def test_files_are_sent_as_small_as_the_browser_takes_them(
    built: httpx.AsyncClient, accepted: str, sent: str | None
):
    async with built.stream("GET", "/assets/index-1a2b.js", headers={"Accept-Encoding": accepted}) as answer:
        content = b"".join([piece async for piece in answer.aiter_raw()])
    assert answer.headers.get("content-encoding") == sent
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) == len(content)
    assert (
        content
        == {
            "br": b"as brotli has it",
            "gzip": gzip.compress(SCRIPT.encode(), mtime=0),
            None: SCRIPT.encode(),
        }[sent]
    )


async def test_pages_are_sent_compressed_too(built: httpx.AsyncClient):
    answer = await built.get("/boards/demo/arcade", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.text == PAGE.replace("./", "../../")


@pytest.mark.parametrize("path", ["/", "/assets/index-1a2b.js"])
async def test_a_file_that_the_browser_has_is_not_sent_again(built: httpx.AsyncClient, path: str):
    tag = (await built.get(path)).headers["etag"]
    answer = await built.get(path, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")


async def test_pages_at_other_depths_are_others(built: httpx.AsyncClient):
    tags = {(await built.get(path)).headers["etag"] for path in ("/boards", "/boards/demo", "/boards/a/b")}
    assert len(tags) == 3


@pytest.mark.parametrize(
    "path",
    [
        "/assets/",
        "/assets",
        "/assets/index-1a2b.js.gz",
        "/assets/index-9z9z.js",
        "/index.html",
        "/../conftest.py",
        "/%2e%2e/etc/passwd",
        "/assets/..%2findex.html",
        "/.vite/manifest.json",
        "/__init__.py",
        "/leaderboards/",
    ],
)
async def test_nothing_else_is_served(built: httpx.AsyncClient, path: str):
    assert (await built.get(path)).status_code == 404


async def test_without_pages_there_are_links(tmp_path: Path):
    async with browser(tmp_path) as client:
        answer = await client.get("/")
    assert answer.json() == pages.LINKS


async def test_images_of_named_hosts_are_allowed_and_the_page_knows_them(
    built: httpx.AsyncClient, tmp_path: Path
):
    del built  # makes the files
    hosts = ("images.example.com", "https://*.example.org:8443")
    named = '<base href="./" /><meta name="image-hosts" content="" />'
    (tmp_path / "index.html").write_text(PAGE.replace('<base href="./" />', named))
    app = Starlette(routes=pages.routes(tmp_path, hosts))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://laurels.test"
    ) as client:
        answer = await client.get("/leaderboards")
    policy = answer.headers["content-security-policy"]
    assert "img-src 'self' data: images.example.com https://*.example.org:8443;" in policy
    assert 'content="images.example.com https://*.example.org:8443"' in answer.text


async def test_without_named_hosts_only_our_own_images_are_allowed(built: httpx.AsyncClient):
    assert "img-src 'self' data:;" in (await built.get("/")).headers["content-security-policy"]
