"""A board of many members: the first entries, a jump into the middle, a search; the page never stalls.

`make million` does the same with a million.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect
from ranked import Ranked, new_board, row_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from browsing import Open
    from cli_processes import Served
    from playwright.async_api import Page

MEMBERS = int(os.environ.get("MANY_MEMBERS", "20000"))
MIDDLE = MEMBERS // 2
# Milliseconds of work that the page may do at a time, and be deaf for: of a processor's own time, since the
# clock on the wall would measure other tests too. One task may take longer: where a virtual processor is
# taken away, that counts as its own time. A page that stalls does so at every jump.
LONGEST_TASK = 200


@pytest.fixture(scope="module")
async def board(site: Served) -> AsyncGenerator[Ranked]:
    """`member-1` is the best, and so on; no ranks are shared."""
    async with new_board(site, {}) as board:
        await board.submit_many(
            {"member": f"member-{n}", "score": MEMBERS - n} for n in range(1, MEMBERS + 1)
        )
        yield board


@pytest.fixture
async def page(open_page: Open, board: Ranked) -> AsyncGenerator[Page]:
    """The board's page; what it did meanwhile is looked at in the end."""
    page = await open_page("docs")
    browser = page.context.browser
    assert browser is not None
    await browser.start_tracing(page=page, categories=["toplevel"])
    try:
        await page.goto(board.url())
        await expect(row_of(page, "member-1")).to_be_visible()
        yield page
    finally:
        events = json.loads(await browser.stop_tracing())["traceEvents"]
    *work, almost_longest, longest = sorted(tasks(events))
    print(f"the longest of {len(work) + 2} tasks: {longest:.0f} ms")  # noqa: T201  # what `make million` tells
    assert almost_longest < LONGEST_TASK, longest


def tasks(events: list[dict[str, Any]]) -> list[float]:
    """The milliseconds of processor time that each task of the page took."""
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    return [
        event["tdur"] / 1000
        for event in events
        if event["name"] == "ThreadControllerImpl::RunTask"
        and "tdur" in event
        and (event["pid"], event["tid"]) in threads
    ]


def grouped(number: int) -> str:
    return f"{number:,}"


async def test_it_begins_at_the_top_and_draws_only_what_is_in_view(page: Page):
    await expect(page.get_by_text(f"{grouped(MEMBERS)} entries")).to_be_visible()
    await expect(page.locator("table[aria-rowcount]").first).to_have_attribute(
        "aria-rowcount", str(MEMBERS + 1)
    )
    assert await page.locator("tbody tr").count() < 100


async def test_a_rank_is_jumped_to_and_stays_in_the_address(page: Page):
    await page.get_by_label("Go to rank").fill(grouped(MIDDLE))
    await page.keyboard.press("Enter")
    await expect(row_of(page, f"member-{MIDDLE}")).to_be_in_viewport()
    await expect(page).to_have_url(re.compile(rf"rank={MIDDLE}$"))
    await expect(
        page.get_by_text(re.compile(rf"^{grouped(MIDDLE)}.+ of {grouped(MEMBERS)}$"))
    ).to_be_visible()
    await page.reload()
    await expect(row_of(page, f"member-{MIDDLE}")).to_be_in_viewport()
    await page.go_back()
    await expect(row_of(page, "member-1")).to_be_in_viewport()
    await page.get_by_role("button", name="Bottom").click()
    await expect(row_of(page, f"member-{MEMBERS}")).to_be_in_viewport()
    await page.get_by_role("button", name="Top").click()
    await expect(row_of(page, "member-1")).to_be_in_viewport()


async def test_a_jump_just_after_scrolling_is_made_though_the_address_does_not_change(page: Page):
    scroller = page.locator("table[aria-rowcount]").first.locator("xpath=..")
    top = await page.get_by_role("button", name="Top").element_handle()
    address = page.url
    await scroller.evaluate(
        """async (box, top) => {
            const scrolled = new Promise((done) => box.addEventListener("scroll", done, { once: true }));
            box.scrollTop = 44_000;
            await scrolled;
            top.click();
        }""",
        top,
    )
    await expect(row_of(page, "member-1")).to_be_in_viewport()
    assert page.url == address


async def test_a_member_is_found_in_its_row(page: Page):
    wanted = f"member-{MIDDLE + 123}"
    await page.get_by_label("Member", exact=True).fill(wanted)
    await page.keyboard.press("Enter")
    await expect(row_of(page, wanted)).to_be_in_viewport()
    await expect(row_of(page, wanted).get_by_role("button")).to_have_attribute("aria-current", "true")
    await expect(page).to_have_url(re.compile(rf"member={wanted}&rank=\d+$"))
    address = page.url
    await page.reload()
    await expect(row_of(page, wanted)).to_be_in_viewport()
    assert page.url == address


async def test_it_scrolls_on_and_on(page: Page):
    scroller = page.locator("table[aria-rowcount]").first.locator("xpath=..")
    await scroller.hover()
    for _ in range(20):
        await page.mouse.wheel(0, 4_400)
    await expect(row_of(page, "member-1990")).to_be_attached()
    await expect(page).to_have_url(re.compile(r"rank=\d{4}$"))


async def test_all_of_it_is_walked_by_keyboard_alone(page: Page):
    focused = "document.activeElement.textContent"
    await page.get_by_role("tab", name="Ranking").focus()
    await page.keyboard.press("Tab")
    await expect(row_of(page, "member-1").get_by_role("button")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(row_of(page, "member-3").get_by_role("button")).to_be_focused()
    await page.keyboard.press("PageDown")
    paged = int((await page.evaluate(focused)).removeprefix("member-"))
    assert paged > 5
    await page.keyboard.press("PageUp")
    await expect(row_of(page, "member-3").get_by_role("button")).to_be_focused()
    await page.keyboard.press("End")
    last = row_of(page, f"member-{MEMBERS}").get_by_role("button")
    await expect(last).to_be_focused()
    await expect(last).to_be_in_viewport()
    await page.keyboard.press("ArrowUp")
    await expect(row_of(page, f"member-{MEMBERS - 1}").get_by_role("button")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("table", name=f"Around member-{MEMBERS - 1}")).to_be_visible()
    await page.keyboard.press("Home")
    await expect(row_of(page, "member-1").get_by_role("button")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Go to rank")).to_be_focused()
