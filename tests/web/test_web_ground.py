"""What all pages share: the frame, the key, the way from page to page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest
from browsing import fits, violations
from playwright.async_api import expect

if TYPE_CHECKING:
    from browsing import Open, Watch
    from cli_processes import Served
    from playwright.async_api import Page, Route


async def frame_stands(page: Page) -> None:
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


async def test_a_key_is_taken_from_the_address_and_leaves_no_trace(open_page: Open, key: str):
    page = await open_page(f"#key={key}")
    await expect(page).to_have_url(re.compile(r"/boards[^#]*$"))
    assert await page.evaluate("sessionStorage.getItem('laurels.key')") == key


async def test_without_a_key_the_first_page_asks_for_one(open_page: Open, key: str):
    page = await open_page()
    await page.get_by_label("API key").fill(key)
    await page.get_by_role("button", name="Open").click()
    await expect(page).to_have_url(re.compile("/boards"))


async def test_a_key_is_forgotten_when_it_is_told_so(open_page: Open, key: str):
    page = await open_page(f"docs#key={key}")
    await page.get_by_role("button", name="Forget the key").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    assert await page.evaluate("sessionStorage.length") == 0


async def test_addresses_of_the_page_that_stood_here_before_still_lead_there(open_page: Open, key: str):
    page = await open_page(f"?project=demo&board=arcade&period=weekly#key={key}")
    await expect(page).to_have_url(re.compile(r"/boards/demo/arcade\?.*period=weekly"))


async def test_the_way_leads_from_page_to_page_without_loading_anew(open_page: Open, key: str):
    page = await open_page(f"docs#key={key}")
    await page.evaluate("window.sameDocument = true")
    places = page.get_by_role("navigation", name="Pages")
    await places.get_by_role("link", name="Campus").click()
    await expect(page).to_have_url(re.compile("/leaderboards$"))
    await expect(places.get_by_role("link", name="Campus")).to_have_attribute("aria-current", "page")
    await expect(page.get_by_role("main")).to_be_focused()
    await expect(page.get_by_text("No campus yet")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Laurels API")
    assert await page.evaluate("window.sameDocument")


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_an_address_that_is_no_page_says_so_and_leads_home(open_page: Open, watch: Watch, colours: str):
    watch.expected.append("status of 404")
    page = await open_page("no/where", color_scheme=colours)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    assert not await violations(page)
    await page.get_by_role("link", name="Go to the start page").click()
    await expect(page.get_by_label("API key")).to_be_visible()


async def test_the_keyboard_may_skip_to_the_page(open_page: Open):
    page = await open_page("docs")
    await frame_stands(page)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()


async def test_colours_are_the_system_s_until_they_are_chosen(open_page: Open):
    page = await open_page("docs", color_scheme="dark")
    await frame_stands(page)
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = await page.evaluate(ground)
    await page.get_by_role("button", name="Colours: as your system").click()
    light = await page.evaluate(ground)
    assert light != dark
    await page.reload()
    await frame_stands(page)
    assert await page.evaluate(ground) == light
    await page.emulate_media(color_scheme="light")
    await page.get_by_role("button", name="Colours: light").click()
    assert await page.evaluate(ground) == dark
    await page.get_by_role("button", name="Colours: dark").click()
    assert await page.evaluate(ground) == light


async def test_it_works_behind_a_proxy_that_has_a_path_of_its_own(open_page: Open, site: Served, key: str):
    """The proxy is the browser's own: what it asks for below /scores/ is asked of Laurels without that."""
    page = await open_page("healthz")
    asked: list[str] = []

    async def forward(route: Route) -> None:
        path = route.request.url.removeprefix(f"{site.url}/scores")
        asked.append(path.partition("?")[0])
        await route.fulfill(response=await route.fetch(url=f"{site.url}{path}"))

    await page.route(f"{site.url}/scores/**", forward)
    async with page.expect_request(re.compile("/v1/projects")):
        await page.goto(f"{site.url}/scores/#key={key}")
    await expect(page).to_have_url(re.compile(re.escape(f"{site.url}/scores/boards")))
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="API").click()
    await expect(page).to_have_url(f"{site.url}/scores/docs")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Laurels API")
    assert "/openapi.json" in asked
    assert any(path.startswith("/v1/") for path in asked)


def test_the_page_is_served_with_what_it_needs_and_nothing_inline(site: Served):
    text = httpx.get(f"{site.url}/boards/demo/arcade").text
    files = re.findall(r'(?:src|href)="(\./[^"]+)"', text)
    assert len(files) > 3
    for file in set(files) - {"./"}:
        assert httpx.get(f"{site.url}/{file}").status_code == 200, file
    assert "<style" not in text
    assert " style=" not in text
    assert "<script>" not in text


async def test_pages_stand_in_nobody_s_frame(site: Served):
    async with httpx.AsyncClient(base_url=site.url) as client:
        policies = {
            path: (await client.get(path)).headers["content-security-policy"]
            for path in (
                "/",
                "/leaderboards",
                "/boards/demo/arcade",
                "/console",
                "/docs",
                "/embed/demo/arcade",
            )
        }
    assert {path for path, policy in policies.items() if "frame-ancestors 'none'" not in policy} == {
        "/embed/demo/arcade"
    }
    assert not any("unsafe" in policy for policy in policies.values())


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_wrong_with_the_gate(open_page: Open, colours: str):
    page = await open_page(color_scheme=colours)
    await expect(page.get_by_label("API key")).to_be_visible()
    assert await violations(page) == []
    await page.goto(page.url + "leaderboards")
    await expect(page.get_by_label("Token or key")).to_be_visible()
    assert await violations(page) == []


async def test_the_gate_fits_a_small_screen(open_page: Open):
    page = await open_page(viewport={"width": 320, "height": 640})
    await expect(page.get_by_label("API key")).to_be_visible()
    assert await fits(page)
