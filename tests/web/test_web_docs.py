"""The page of the API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from browsing import fits, violations
from playwright.async_api import expect

if TYPE_CHECKING:
    from browsing import Open
    from cli_processes import Served
    from playwright.async_api import Locator, Page


@pytest.fixture(scope="module")
def document(site: Served) -> dict[str, Any]:
    return httpx.get(f"{site.url}/openapi.json").json()


def operations(page: Page) -> Locator:
    return page.locator("[data-operation]")


async def test_every_operation_is_there(open_page: Open, document: dict[str, Any]):
    page = await open_page("docs")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Laurels API")
    paths = document["paths"].items()
    ids = {operation["operationId"] for _, methods in paths for operation in methods.values()}
    await expect(operations(page)).to_have_count(len(ids))
    shown = await operations(page).evaluate_all("(all) => all.map((each) => each.dataset.operation)")
    assert set(shown) == ids


async def test_operations_are_found_by_words(open_page: Open):
    page = await open_page("docs")
    await page.get_by_label("Find").fill("post scores")
    await expect(operations(page)).to_have_count(2)
    await page.get_by_label("Find").fill("no such thing")
    await expect(page.get_by_text("No operation matches.")).to_be_visible()


async def test_an_operation_tells_what_it_takes_and_has_an_address(open_page: Open):
    page = await open_page("docs")
    await page.locator("summary", has_text="Submit a score").click()
    await expect(page).to_have_url(re.compile("operation="))
    opened = page.locator("[data-operation][open]")
    await expect(opened.get_by_role("table", name="Parameters")).to_contain_text("Idempotency-Key")
    await expect(opened.get_by_label("Example").first).to_contain_text('"member"')
    await page.reload()
    await expect(page.locator("[data-operation][open]")).to_contain_text("Submit a score")


async def test_an_operation_can_be_tried(open_page: Open, key: str):
    page = await open_page(f"docs#key={key}")
    await page.locator("summary", has_text="Submit a score").click()
    opened = page.locator("[data-operation][open]")
    await opened.get_by_label("project", exact=True).fill("demo")
    await opened.get_by_label("board", exact=True).fill("arcade")
    await opened.get_by_label("Body").fill('{"member": "tried", "score": 7}')
    await opened.get_by_role("button", name="Send").click()
    await expect(opened.get_by_role("status")).to_contain_text("200")
    await expect(opened.get_by_label("Answer", exact=True)).to_contain_text('"member": "tried"')


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_wrong_with_the_documentation(open_page: Open, colours: str):
    page = await open_page("docs?operation=submit", color_scheme=colours)
    await expect(page.locator("[data-operation][open]")).to_be_visible()
    assert await violations(page) == []


@pytest.mark.parametrize(("width", "height"), [(320, 640), (3840, 2160)])
async def test_the_documentation_fits_small_and_large_screens(open_page: Open, width: int, height: int):
    page = await open_page("docs?operation=submit", viewport={"width": width, "height": height})
    await expect(page.locator("[data-operation][open]")).to_be_visible()
    assert await fits(page)
    assert await violations(page) == []
