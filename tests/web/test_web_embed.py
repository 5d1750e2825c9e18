"""A board on another site's page: in a frame, or by one script tag."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from browsing import fits, violations
from playwright.async_api import expect
from ranked import Ranked, new_board

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from browsing import Open, Watch
    from cli_processes import Served

MOST_BYTES = 10_000  # of script and style, compressed: it comes along on every page that shows a board


@pytest.fixture
async def board(site: Served) -> AsyncGenerator[Ranked]:
    async with new_board(site, {"windows": [{"period": "daily"}, {"period": "all_time"}]}) as board:
        for member, score in (("ada", 300), ("bob", 200), ("eve", 100)):
            await board.submit(member, score)
        yield board


@pytest.fixture
async def reading_key(board: Ranked) -> str:
    answer = await board.client.post(f"/v1/projects/{board.project}/keys", json={"scopes": ["read"]})
    return answer.json()["key"]


def embedded(board: Ranked, key: str, query: str = "") -> str:
    return f"embed/{board.project}/{board.name}{query}#key={key}"


@asynccontextmanager
async def another_site(html: str) -> AsyncGenerator[str]:
    """The URL of a page at an origin of its own."""
    content = f"<!doctype html><meta charset=utf-8><title>Another site</title>{html}".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + content)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def test_the_best_of_a_board_are_shown_and_follow_its_changes(
    open_page: Open, board: Ranked, reading_key: str
):
    page = await open_page(embedded(board, reading_key, "?period=all_time&limit=2"))
    rows = page.get_by_role("row")
    await expect(rows).to_have_text(["RankMemberScore", "1ada300", "2bob200"])
    await expect(page.get_by_text("all time · 3 ranked")).to_be_visible()
    await board.submit("eve", 400)
    await expect(rows).to_have_text(["RankMemberScore", "1eve400", "2ada300"])


async def test_the_time_to_the_next_reset_is_shown_where_there_is_one(
    open_page: Open, board: Ranked, reading_key: str
):
    page = await open_page(embedded(board, reading_key))
    await expect(page.get_by_role("timer")).to_have_text(re.compile(r"^Resets in \d\d:\d\d:\d\d$"))
    link = page.get_by_role("link", name="arcade")
    await expect(link).to_have_attribute("href", re.compile(rf"/boards/{board.project}/arcade$"))


async def test_one_tag_puts_it_into_another_sites_page_as_high_as_it_is(
    open_page: Open, board: Ranked, reading_key: str
):
    tag = (
        f'<script async src="{board.client.base_url.join("embed.js")}" data-board="{board.project}/arcade" '
        f'data-key="{reading_key}" data-period="all_time" data-theme="dark"></script>'
    )
    async with another_site(f"<main><h1>Games</h1>{tag}</main>") as url:
        page = await open_page(url)
        frame = page.frame_locator(f'iframe[title="Leaderboard {board.project}/arcade"]')
        await expect(frame.get_by_role("row")).to_have_count(4)
        height = await frame.get_by_role("main").evaluate(
            "main => Math.ceil(main.getBoundingClientRect().height)"
        )
        await expect(page.locator("iframe")).to_have_css("height", f"{height}px")
        await board.submit("new", 50)
        await expect(frame.get_by_role("row")).to_have_count(5)
        await expect(page.locator("iframe")).not_to_have_css("height", f"{height}px")


async def test_only_embedded_boards_may_be_framed_by_others(
    open_page: Open, board: Ranked, reading_key: str, watch: Watch
):
    for path, framers in (
        ("embed/x/y", "*"),
        ("boards/x/y", "'none'"),
        ("console", "'none'"),
        ("", "'none'"),
    ):
        policy = (await board.client.get(f"/{path}")).headers["Content-Security-Policy"]
        assert policy.endswith(f"frame-ancestors {framers}")
    watch.expected += ["frame-ancestors", "net::ERR_BLOCKED", "Refused to frame", "Framing"]
    frame = f'<iframe src="{board.url()}"></iframe>'
    async with another_site(frame) as url:
        page = await open_page(url)
        await expect(page.locator("iframe")).to_be_visible()
        assert "arcade" not in await page.frames[-1].evaluate("document.body.innerText")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_it_is_light_or_dark_accessible_and_fits(
    open_page: Open, board: Ranked, reading_key: str, theme: str
):
    page = await open_page(
        embedded(board, reading_key, f"?theme={theme}"), viewport={"width": 320, "height": 600}
    )
    await expect(page.get_by_role("row")).to_have_count(4)
    paper = await page.evaluate("getComputedStyle(document.querySelector('main')).backgroundColor")
    lightness = sum(int(part) for part in re.findall(r"\d+", paper)[:3]) / 3
    assert (lightness > 128) is (theme == "light")
    assert await violations(page) == []
    assert await fits(page)


async def test_what_is_wrong_is_said_in_its_place(open_page: Open, board: Ranked, watch: Watch):
    watch.expected += ["status of 401", "status of 404"]
    page = await open_page(f"embed/{board.project}/arcade")
    await expect(page.get_by_text("This board needs a key")).to_be_visible()
    assert await violations(page) == []
    page = await open_page(embedded(board, "lk_wrong"))
    await expect(page.get_by_text("The key for this board is not valid.")).to_be_visible()
    page = await open_page(f"embed/{board.project}/nowhere#key={board.key}")
    await expect(page.get_by_text(re.compile("nowhere"))).to_have_count(2)


async def test_an_empty_board_waits_for_the_first_score(open_page: Open, site: Served):
    async with new_board(site, {}) as board:
        page = await open_page(embedded(board, board.key))
        await expect(page.get_by_text("No entries yet. The first score takes the lead.")).to_be_visible()
        await board.submit("ada", 1)
        await expect(page.get_by_role("row")).to_have_count(2)


async def test_it_is_small(board: Ranked):
    """With all that it loads, as a browser gets it."""
    html = (await board.client.get("/embed/x/y")).text
    files = set(re.findall(r'(?:src|href)="\./(assets/[^"]+)"', html))
    assert files
    sizes = [await _sent(board.client, name) for name in (*files, "embed.js")]
    assert sum(sizes) < MOST_BYTES


async def _sent(client: httpx.AsyncClient, name: str) -> int:
    async with client.stream("GET", f"/{name}", headers={"Accept-Encoding": "br"}) as answer:
        assert answer.status_code == httpx.codes.OK
        return sum([len(piece) async for piece in answer.aiter_raw()])
