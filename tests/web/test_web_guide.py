"""The guide in a browser, under the Content-Security-Policy of all pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from browsing import fits, violations
from playwright.async_api import expect

if TYPE_CHECKING:
    from browsing import Open


async def test_a_reader_finds_a_page_by_searching(open_page: Open):
    page = await open_page("guide")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Laurels")
    await expect(page.locator(".md-search-result__meta")).to_have_text("Type to start searching")
    await page.get_by_role("textbox", name="Search").press_sequentially("percentile")
    await page.locator(".md-search-result__item a").first.click()
    await expect(page).to_have_url(re.compile(r"/guide/[a-z-]+(/[a-z0-9-]+)?\.html"))


async def test_a_link_leads_from_page_to_page(open_page: Open):
    page = await open_page("guide/tutorials/first-board.html")
    await page.get_by_role("article").get_by_role("link", name="Deploy it").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Deploy behind TLS")


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_wrong_with_the_guide(open_page: Open, colours: str):
    page = await open_page("guide/tutorials/first-board.html", color_scheme=colours)
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    found = await violations(page)
    # The theme makes each button that copies code a landmark of its own.
    assert [each for each in found if not each.startswith("landmark-unique")] == []


@pytest.mark.parametrize(("width", "height"), [(320, 640), (3840, 2160)])
async def test_the_guide_fits_small_and_large_screens(open_page: Open, width: int, height: int):
    page = await open_page("guide/reference/http-routes.html", viewport={"width": width, "height": height})
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert await fits(page)
