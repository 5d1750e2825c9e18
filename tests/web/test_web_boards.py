"""Exploring boards: what there is, its windows, groups and members."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from browsing import fits, violations
from playwright.async_api import expect
from ranked import Ranked, days_ago, new_board, ranking, row_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from browsing import Open, Watch
    from cli_processes import Served

DEFINITION = {
    "windows": [{"period": "daily", "keep": 10}, {"period": "all_time"}],
    "groups": [["country"], ["region", "city"]],
    "lateness": "P9D",
}


@pytest.fixture
async def board(site: Served) -> AsyncGenerator[Ranked]:
    """Three members today, and the day before in the opposite order; two of them from Brazil."""
    async with new_board(site, DEFINITION) as board:
        scores = [("ada", 300, 100, "BR"), ("bob", 200, 200, "BR"), ("eve", 100, 300, "JP")]
        for member, today, before, country in scores:
            groups = {"country": country}
            await board.submit(member, before, groups=groups, at=days_ago(1))
            await board.submit(member, today, groups=groups, metadata={"level": today // 100})
        yield board


async def test_the_boards_are_listed_and_lead_to_their_views(open_page: Open, board: Ranked):
    page = await open_page(f"boards#key={board.key}")
    await page.get_by_role("link", name=board.project, exact=True).click()
    await expect(page.get_by_text("Best score counts; also by country and region and city.")).to_be_visible()
    await page.get_by_role("link", name="arcade").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("arcade")
    await expect(row_of(page, "ada")).to_be_visible()
    await page.get_by_label("Project").select_option("demo")
    await expect(page).to_have_url(re.compile(r"/boards/demo$"))


async def test_among_others_a_project_of_many_boards_shows_some_and_leads_to_all(
    open_page: Open, board: Ranked
):
    names = sorted([board.name, *(f"more-{number}" for number in range(6))])
    for name in names[1:]:
        await replace(board, name=name).ask("PUT", json=DEFINITION)
    page = await open_page("docs")
    projects = {"projects": ["demo", board.project]}  # others may have been left by other tests
    await page.route("**/v1/projects", lambda route: route.fulfill(json=projects))
    await page.goto(board.url().replace(f"/{board.project}/{board.name}", ""))
    section = page.get_by_role("region", name=board.project)
    await expect(section.get_by_role("listitem")).to_have_count(6)
    await section.get_by_role("link", name=f"All 7 boards of {board.project}").click()
    await expect(page.get_by_role("heading", level=3)).to_have_text(names)


async def test_a_board_is_shown_best_first_with_its_window_and_what_members_gained(
    open_page: Open, board: Ranked
):
    page = await open_page(board.view())
    await expect(page.get_by_text(re.compile(r"3 entries · daily \d{4}-\d\d-\d\d"))).to_be_visible()
    assert await ranking(page) == [("1", "ada", "300"), ("2", "bob", "200"), ("3", "eve", "100")]
    await expect(row_of(page, "ada").get_by_text("Up 2 since the previous window")).to_be_attached()
    await expect(row_of(page, "eve").get_by_text("Down 2 since the previous window")).to_be_attached()
    table = page.get_by_role("table", name=re.compile("arcade, daily"))
    await expect(table).to_have_attribute("aria-rowcount", "4")


async def test_periods_and_windows_that_ended_can_be_chosen(open_page: Open, board: Ranked):
    page = await open_page(board.view())
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    slots = page.get_by_label("Window")
    await expect(slots.locator("option")).to_have_count(2)
    await slots.select_option(index=1)
    await expect(page.get_by_text("This window has ended")).to_be_visible()
    await expect(row_of(page, "eve").locator("td").first).to_have_text("1")
    assert await ranking(page) == [("1", "eve", "300"), ("2", "bob", "200"), ("3", "ada", "100")]
    await page.get_by_role("radio", name="All time").check()
    await expect(page.get_by_text("3 entries · all time")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_text("This window has ended")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()


async def test_a_group_is_chosen_from_known_values_or_typed(open_page: Open, board: Ranked):
    page = await open_page(board.view())
    await page.get_by_label("Within").select_option("country")
    await expect(page.get_by_label("Country")).to_be_focused()
    assert await page.locator('datalist option[value="BR"]').inner_text() == "Brazil"
    await page.keyboard.type("BR")
    await expect(page.get_by_text(re.compile("2 entries · .* · Brazil"))).to_be_visible()
    assert [member for _, member, _ in await ranking(page)] == ["ada", "bob"]
    await expect(page.get_by_label("Country")).to_be_focused()
    await page.get_by_label("Country").fill("country=JP")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"group=country%3DJP"))
    await expect(row_of(page, "eve")).to_be_visible()
    await page.get_by_label("Within").select_option("")
    await expect(page.get_by_text(re.compile("3 entries"))).to_be_visible()


async def test_a_group_of_two_dimensions_takes_both(open_page: Open, board: Ranked):
    await board.submit("kenji", 5, groups={"region": "asia, east", "city": "tokyo"})
    page = await open_page(board.view())
    await page.get_by_label("Within").select_option("region,city")
    await page.get_by_label("Region").fill("asia, east")
    await page.get_by_label("City").fill("tokyo")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text(re.compile("1 entry · .* · asia, east, tokyo"))).to_be_visible()
    assert await ranking(page) == [("1", "kenji", "5")]


async def test_a_group_that_the_board_does_not_have_is_told(open_page: Open, board: Ranked, watch: Watch):
    watch.expected.append("status of 422")
    page = await open_page(board.view(group="planet=mars"))
    await expect(page.get_by_role("alert")).to_contain_text("the board is not ranked by planet")


async def test_a_member_is_found_with_its_standing_neighbours_history_and_metadata(
    open_page: Open, board: Ranked
):
    page = await open_page(board.view())
    await page.get_by_label("Member", exact=True).fill("bob")
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_text("of 3 · top 66.7% · score 200")).to_be_visible()
    around = page.get_by_role("table", name="Around bob")
    await expect(around.get_by_role("row")).to_have_count(3)
    await expect(page.get_by_role("img", name=re.compile("Daily ranks of bob in 1 windows"))).to_be_visible()
    await expect(page.get_by_text("level", exact=True)).to_be_visible()
    await expect(row_of(page, "bob").get_by_role("button")).to_have_attribute("aria-current", "true")
    await around.get_by_role("button", name="eve").click()
    await expect(page).to_have_url(re.compile("member=eve"))
    await expect(page.get_by_text("of 3 · top 100% · score 100")).to_be_visible()
    past = page.get_by_role("region", name="Daily ranks")
    await past.get_by_text("As a table").click()
    await past.get_by_role("link").click()
    await expect(page.get_by_text("This window has ended")).to_be_visible()
    await expect(page.get_by_text("of 3 · top 33.3% · score 300")).to_be_visible()
    await page.get_by_role("button", name="Clear").click()
    await expect(page).not_to_have_url(re.compile("member="))


async def test_a_member_without_an_entry_is_said_to_have_none(open_page: Open, board: Ranked, watch: Watch):
    watch.expected.append("status of 404")
    page = await open_page(board.view())
    await page.get_by_label("Member", exact=True).fill("Ada")
    await page.keyboard.press("Enter")
    absent = page.get_by_text("“Ada” has no entry in this window. Names are exact.")
    await expect(absent).to_be_visible()
    await expect(row_of(page, "ada")).to_be_visible()


async def test_who_i_am_is_remembered_by_this_browser(open_page: Open, board: Ranked):
    page = await open_page(board.view())
    await row_of(page, "bob").get_by_role("button").click()
    await page.get_by_role("button", name="This is me").click()
    await expect(row_of(page, "bob").get_by_text("me", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Clear").click()
    await page.reload()
    await expect(row_of(page, "bob").get_by_text("me", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Me", exact=True).click()
    await expect(page.get_by_role("table", name="Around bob")).to_be_visible()


async def test_the_scores_are_plotted_and_the_member_is_seen_among_them(open_page: Open, board: Ranked):
    page = await open_page(board.view(member="ada"))
    plot = page.get_by_role("img", name=re.compile("Scores from 100 to 300; most, 1, from"))
    await expect(plot).to_be_visible()
    await expect(page.get_by_text(re.compile("ada is one of 1 from .* to 300"))).to_be_visible()


async def test_friends_are_ranked_among_themselves_and_remembered(open_page: Open, board: Ranked):
    page = await open_page(board.view())
    await page.get_by_role("tab", name="Friends").click()
    await expect(page.get_by_text("No friends yet")).to_be_visible()
    await page.get_by_label("Friends").last.fill("eve\nbob\nnobody")
    await page.get_by_role("button", name="Rank them").click()
    table = page.get_by_role("table", name=re.compile("3 friends"))
    await expect(table.get_by_role("row")).to_have_text(
        ["RankMemberScoreOn the board", "1bob2002", "2eve1003"]
    )
    await expect(page.get_by_text("Without an entry in this window: nobody")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"friends=eve%2Cbob%2Cnobody"))
    # The address tells others; this browser remembers by itself.
    await page.goto(board.url(show="friends"))
    await expect(table.get_by_role("row")).to_have_count(3)
    await table.get_by_role("button", name="eve").click()
    await expect(page.get_by_role("tab", name="Ranking")).to_have_attribute("aria-selected", "true")
    await expect(row_of(page, "eve").get_by_role("button")).to_have_attribute("aria-current", "true")
    await page.get_by_role("button", name="Remove from friends").click()
    await page.get_by_role("tab", name="Friends").click()
    await expect(page.get_by_role("table", name=re.compile("2 friends"))).to_be_visible()
    await page.get_by_role("button", name="Forget them").click()
    await expect(page.get_by_text("No friends yet")).to_be_visible()


async def test_the_time_to_the_next_reset_counts_down(open_page: Open, board: Ranked):
    page = await open_page(board.view())
    clock = page.get_by_role("timer")
    await expect(clock).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    before = await clock.inner_text()
    await expect(clock).not_to_have_text(before)


@pytest.mark.parametrize(
    "query",
    [
        {"period": "all_time", "group": "country=BR", "member": "ada"},
        {"show": "friends", "friends": "ada,eve"},
    ],
)
async def test_a_view_opened_again_by_its_address_is_the_same(
    open_page: Open, board: Ranked, query: dict[str, str]
):
    page = await open_page(board.view(**query))
    await expect(page.locator("main tbody th").first).to_be_visible()
    await expect(page.get_by_role("img", name=re.compile("Scores from"))).to_be_visible()
    shown = page.get_by_role("region", name="Entries")
    before, address = await shown.inner_text(), page.url
    await page.reload()
    await expect(page.get_by_role("img", name=re.compile("Scores from"))).to_be_visible()
    await expect(shown).to_have_text(before, use_inner_text=True)
    assert page.url == address


async def test_the_view_is_shared_as_an_address_and_as_a_tag(open_page: Open, board: Ranked):
    page = await open_page(board.view(period="all_time"), permissions=["clipboard-read", "clipboard-write"])
    await page.get_by_role("button", name="Share…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("The address of this view")).to_have_value(page.url)
    await dialog.get_by_role("radio", name="Dark").check()
    await dialog.get_by_role("radio", name="25").check()
    tag = await dialog.get_by_label("To embed this board in another page").input_value()
    assert f'data-board="{board.project}/arcade"' in tag
    assert 'data-period="all_time"' in tag
    assert 'data-limit="25"' in tag
    assert 'data-theme="dark"' in tag
    await dialog.get_by_role("button", name="Copy the tag").click()
    await expect(page.get_by_text("Copied the tag.")).to_be_attached()
    assert await page.evaluate("navigator.clipboard.readText()") == tag
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()


async def test_scores_of_64_bits_are_shown_to_the_last_digit(open_page: Open, site: Served):
    async with new_board(site, {"score": "int64", "order": "asc"}) as board:
        await board.submit("least", "-9223372036854775808")
        await board.submit("most", "9223372036854775807")
        page = await open_page(board.view())
        await expect(row_of(page, "most")).to_be_visible()
        assert [(member, score) for _, member, score in await ranking(page)] == [
            ("least", "-9,223,372,036,854,775,808"),
            ("most", "9,223,372,036,854,775,807"),
        ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_is_inaccessible(open_page: Open, board: Ranked, scheme: str):
    page = await open_page(f"boards#key={board.key}", color_scheme=scheme)
    await expect(page.get_by_role("link", name=board.project, exact=True)).to_be_visible()
    assert await violations(page) == []
    await page.goto(board.url(member="bob", group="country=BR"))
    await expect(page.get_by_role("img", name=re.compile("Daily ranks"))).to_be_visible()
    await expect(page.get_by_role("img", name=re.compile("Scores from"))).to_be_visible()
    assert await violations(page) == []
    await page.goto(board.url(show="friends", friends="ada,bob"))
    await expect(page.get_by_role("table", name=re.compile("2 friends"))).to_be_visible()
    assert await violations(page) == []


@pytest.mark.parametrize(("width", "height"), [(320, 640), (3840, 2160)])
async def test_it_fits_any_screen(open_page: Open, board: Ranked, width: int, height: int):
    await board.submit("a-very-long-name-" * 15, 123_456_789_012, groups={"country": "BR"})
    page = await open_page(board.view(member="bob"), viewport={"width": width, "height": height})
    await expect(page.get_by_role("img", name=re.compile("Daily ranks"))).to_be_visible()
    assert await fits(page)
    cut = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.innerText)"
    assert await page.locator("tr[data-member] td").evaluate_all(cut) == []
    await page.goto(board.url(show="friends", friends="ada," + "a-very-long-name-" * 15))
    await expect(page.get_by_role("table", name=re.compile("2 friends"))).to_be_visible()
    assert await fits(page)
    await page.goto(str(board.client.base_url.join("boards")))
    await expect(page.get_by_role("link", name=board.project, exact=True)).to_be_visible()
    assert await fits(page)
