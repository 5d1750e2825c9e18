"""Names and avatars where members are listed, and the pages that students see."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import httpx
import jwt
import pytest
from browsing import violations
from playwright.async_api import expect
from ranked import Ranked, new_board, row_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from browsing import Open
    from cli_processes import Served


@pytest.fixture
async def board(site: Served) -> AsyncGenerator[Ranked]:
    """Ada with a name and an avatar, Bob with a name, and Eve."""
    async with new_board(site, {}) as board:
        for member, score in (("ada", 300), ("bob", 200), ("eve", 100)):
            await board.submit(member, score)
        await put_person(site, board, "ada", name="Ada Lovelace", avatar_url=f"{site.url}/mark.svg")
        await put_person(site, board, "bob", name="Bob")
        yield board


async def put_person(site: Served, board: Ranked, person: str, **about: str) -> None:
    async with httpx.AsyncClient(base_url=site.url) as client:
        answer = await client.put(
            f"/v1/projects/{board.project}/people/{person}",
            json=about,
            headers={"Authorization": f"Bearer {board.key}"},
        )
    assert answer.status_code == 200, answer.text


async def test_members_are_listed_with_their_names_and_avatars(open_page: Open, site: Served, board: Ranked):
    page = await open_page(board.view())
    ada = row_of(page, "ada")
    await expect(ada.get_by_role("button", name="Ada Lovelace")).to_have_attribute("title", "ada")
    await expect(ada.locator("img")).to_have_attribute("src", f"{site.url}/mark.svg")
    await expect(row_of(page, "bob").get_by_role("button", name="Bob")).to_be_visible()
    await expect(row_of(page, "eve").get_by_role("button", name="eve")).to_be_visible()
    assert await violations(page) == []
    await ada.get_by_role("button").click()
    around = page.get_by_role("table", name="Around ada")
    await expect(around.get_by_role("button", name="Ada Lovelace")).to_be_visible()


async def test_a_new_name_comes_with_the_next_score(open_page: Open, site: Served, board: Ranked):
    page = await open_page(board.view())
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    await put_person(site, board, "eve", name="Eve Adams")
    await board.submit("eve", 400)
    await expect(row_of(page, "eve").get_by_role("button", name="Eve Adams")).to_be_visible()


async def test_a_student_sees_neither_console_nor_api(open_page: Open, site: Served, key: str):
    async with httpx.AsyncClient(base_url=site.url, headers={"Authorization": f"Bearer {key}"}) as client:
        made = await client.post("/v1/projects/campus/secrets", json={"use": "players"})
        assert made.status_code == 201, made.text
        secret = made.json()
    claims = {
        "project": "campus",
        "sub": "0b8f0a3c-52a5-4b53-8ab5-3a1c5e1b7c55",
        "aud": "laurels",
        "exp": int(time.time()) + 600,
    }
    token = jwt.encode(claims, secret["secret"], algorithm="HS256")
    page = await open_page(f"leaderboards#token={token}")
    pages = page.get_by_role("navigation", name="Pages").get_by_role("link")
    await expect(pages).to_have_text(["Campus"])
    for path in ("console", "console/keys", "docs", "boards"):
        await page.goto(f"{site.url}/{path}")
        await expect(page.get_by_text("Page not found")).to_be_visible()
    await page.get_by_role("link", name="Go to the leaderboards").click()
    await page.get_by_role("button", name=re.compile("Forget the player")).click()
    await expect(pages).to_have_text(["Boards", "Campus", "Console", "API"])
    async with httpx.AsyncClient(base_url=site.url, headers={"Authorization": f"Bearer {key}"}) as client:
        assert (await client.delete(f"/v1/projects/campus/secrets/{secret['id']}")).status_code == 204
