"""A real browser on a real `laurels serve --demo`.

Whatever a page logs as an error, and any request that it sends to another machine, fails the test.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import build_guide
import build_pages
import pytest
from browsing import Open, Watch
from cli_processes import Served, serving
from install_browser import on_the_machine
from places import fast_place, folder_that_anybody_may_pass
from playwright.async_api import async_playwright, expect

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from playwright.async_api import Browser, BrowserContext, Page

# Milliseconds that the browser waits for what a test expects, on a machine that is busy.
PATIENCE = 15_000


@pytest.fixture(scope="session")
def built() -> None:
    """The pages and the guide, of these very sources; nothing happens if they are there."""
    build_pages.build()
    build_guide.build()


@pytest.fixture(scope="session")
def site(built: None) -> Iterator[Served]:
    """One `laurels serve --demo` for all tests of the web; its key may do everything."""
    limits = {"LAURELS_RATE_LIMIT_FAILURES": "none", "LAURELS_RATE_LIMIT_PLAYER": "none"}
    with (
        folder_that_anybody_may_pass(fast_place()) as place,
        serving(place / "data", "--demo", settings=limits) as served,
    ):
        yield served


@pytest.fixture
def key(site: Served) -> str:
    """For every project."""
    return site.welcome["key"]


@pytest.fixture(scope="session")
async def browser() -> AsyncGenerator[Browser]:
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        # Chromium's own sandbox refuses root. Without a program, the browser that Playwright installed.
        browser = await playwright.chromium.launch(
            executable_path=on_the_machine(), chromium_sandbox=os.geteuid() != 0, args=["--disable-gpu"]
        )
        yield browser
        await browser.close()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
async def open_page(browser: Browser, request: pytest.FixtureRequest, watch: Watch) -> AsyncGenerator[Open]:
    """Opens a page in a context of its own.

    `await open_page("boards#key=…", color_scheme="dark")`: the path is below the root of `site`, or a URL.
    The options are those of Playwright's `new_context`.
    """
    contexts: list[BrowserContext] = []

    async def open_page(path: str = "", **options: Any) -> Page:  # noqa: ANN401  # Playwright's own
        settings: dict[str, Any] = {
            "locale": "en-GB",
            "timezone_id": "UTC",
            "reduced_motion": "reduce",
            **options,
        }
        context = await browser.new_context(**settings)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        watch.over(context)
        page = await context.new_page()
        if not path.startswith("http"):
            site: Served = request.getfixturevalue("site")  # not started for tests that have their own
            path = f"{site.url}/{path}"
        await page.goto(path)
        return page

    yield open_page
    for context in contexts:
        await context.close()
    assert not watch.complaints
