"""What happens to a board while somebody looks at it: moves, turns, keys that go, broken lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.async_api import expect
from ranked import Ranked, new_board, ranking, row_of
from waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from browsing import Open, Watch
    from cli_processes import Served
    from playwright.async_api import Page, Route

# Before a page's own scripts: remembers what was moved, and by how much.
COUNT_MOVES = """
window.moves = [];
const animate = Element.prototype.animate;
Element.prototype.animate = function (frames, timing) {
  if (frames[0]?.transform) window.moves.push([this.dataset.member, frames[0].transform]);
  return animate.call(this, frames, timing);
};
"""
IS_LIVE = re.compile("^Live$")


@pytest.fixture
async def board(site: Served) -> AsyncGenerator[Ranked]:
    async with new_board(site, {"aggregate": "last"}) as board:
        for member, score in (("ada", 300), ("bob", 200), ("eve", 100)):
            await board.submit(member, score)
        yield board


async def is_live(page: Page) -> None:
    await expect(page.get_by_text(IS_LIVE)).to_be_visible()


async def test_a_move_is_seen_without_a_reload_and_glides(open_page: Open, board: Ranked):
    page = await open_page("", reduced_motion="no-preference")
    await page.add_init_script(COUNT_MOVES)
    await page.goto(board.url())
    await is_live(page)
    await board.submit("eve", 400)
    await expect(row_of(page, "eve")).to_have_attribute("data-index", "0")
    assert await ranking(page) == [("1", "eve", "400"), ("2", "ada", "300"), ("3", "bob", "200")]
    assert await page.evaluate("window.moves.toSorted()") == [
        ["ada", "translateY(-44px)"], ["bob", "translateY(-44px)"], ["eve", "translateY(88px)"],
    ]  # fmt: skip
    await board.submit("new", 350)
    await expect(row_of(page, "new")).to_have_attribute("data-index", "1")
    await expect(page.get_by_text("4 entries")).to_be_visible()


async def test_nothing_moves_for_who_prefers_less_motion(open_page: Open, board: Ranked):
    page = await open_page("", reduced_motion="reduce")
    await page.add_init_script(COUNT_MOVES)
    await page.goto(board.url())
    await is_live(page)
    await board.submit("eve", 400)
    await expect(row_of(page, "eve")).to_have_attribute("data-index", "0")
    assert await page.evaluate("window.moves") == []


async def test_the_member_and_its_neighbours_follow_the_changes(open_page: Open, board: Ranked):
    page = await open_page(board.view(member="eve"))
    await expect(page.get_by_text("of 3 · top 100% · score 100")).to_be_visible()
    await is_live(page)
    await board.submit("eve", 250)
    await expect(page.get_by_text("of 3 · top 66.7% · score 250")).to_be_visible()
    around = page.get_by_role("table", name="Around eve")
    await expect(around.get_by_role("row")).to_have_text(["1ada300", "2eve250", "3bob200"])


async def test_a_keyboard_stays_at_the_member_that_moves(open_page: Open, board: Ranked):
    page = await open_page(board.view())
    await is_live(page)
    await row_of(page, "eve").get_by_role("button").focus()
    await board.submit("eve", 400)
    await expect(row_of(page, "eve")).to_have_attribute("data-index", "0")
    await expect(row_of(page, "eve").get_by_role("button")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(row_of(page, "ada").get_by_role("button")).to_be_focused()


async def test_friends_follow_the_changes(open_page: Open, board: Ranked):
    page = await open_page(board.view(show="friends", friends="bob,eve"))
    table = page.get_by_role("table", name=re.compile("2 friends"))
    await expect(table.get_by_role("row").nth(1)).to_have_text("1bob2002")
    await is_live(page)
    await board.submit("eve", 500)
    await expect(table.get_by_role("row").nth(1)).to_have_text("1eve5001")


async def test_the_page_goes_along_when_the_window_turns(open_page: Open, site: Served):
    async with new_board(site, {"windows": [{"period": "every", "seconds": 5, "keep": 5}]}) as board:
        await board.submit("ada", 1)
        page = await open_page(board.view())
        await expect(page.get_by_text("No entries yet")).to_be_visible()
        # Not right before the next turn.
        await expect(page.get_by_role("timer")).to_have_text(re.compile("^00:00:0[345]$"))
        await board.submit("bob", 2)
        await expect(row_of(page, "bob")).to_be_visible()
        await page.get_by_label("Window").select_option(index=1)
        await expect(page.get_by_text("This window has ended")).to_be_visible()


async def test_while_there_is_no_connection_the_page_says_so_and_then_catches_up(
    open_page: Open, board: Ranked, watch: Watch
):
    watch.expected += ["ERR_INTERNET_DISCONNECTED", "net::ERR"]
    page = await open_page(board.view())
    await is_live(page)
    await page.context.set_offline(True)
    await expect(page.get_by_text("Laurels cannot be reached.")).to_be_visible()
    await expect(row_of(page, "ada")).to_be_visible()
    await board.submit("eve", 999)
    await page.context.set_offline(False)
    await expect(row_of(page, "eve")).to_have_attribute("data-index", "0")
    await expect(page.get_by_text("Laurels cannot be reached.")).to_be_hidden()
    await is_live(page)


async def test_where_the_stream_is_held_back_the_page_asks_by_itself(
    open_page: Open, board: Ranked, watch: Watch
):
    watch.expected.append("net::ERR_FAILED")
    page = await open_page()
    await page.route("**/live?*", lambda route: route.abort())
    await page.goto(board.url())
    await expect(page.get_by_text("Every 3 seconds")).to_be_visible()
    await board.submit("eve", 999)
    await expect(row_of(page, "eve")).to_have_attribute("data-index", "0")


async def test_a_board_without_entries_waits_for_the_first(open_page: Open, site: Served):
    async with new_board(site, {}) as board:
        page = await open_page(board.view())
        await expect(page.get_by_text("The first score takes the lead.")).to_be_visible()
        await is_live(page)
        await board.submit("ada", 1)
        await expect(row_of(page, "ada")).to_be_visible()


async def test_a_board_that_is_not_there_is_said_to_be_missing(open_page: Open, board: Ranked, watch: Watch):
    watch.expected.append("status of 404")
    page = await open_page(f"boards/{board.project}/nowhere#key={board.key}")
    await expect(page.get_by_role("alert")).to_contain_text("nowhere")
    await page.get_by_role("link", name="All boards").click()
    await expect(page.get_by_role("link", name=board.project, exact=True)).to_be_visible()


async def test_a_board_that_is_dropped_is_told(open_page: Open, board: Ranked, watch: Watch):
    watch.expected.append("status of 404")
    page = await open_page(board.view())
    await is_live(page)
    await board.ask("DELETE", params={"allow_drop": "all"})
    await expect(page.get_by_text("Not live")).to_be_visible()
    await expect(page.get_by_role("status").get_by_text(re.compile("arcade"))).to_be_visible()


async def test_a_key_that_is_revoked_is_asked_for_again(open_page: Open, board: Ranked, watch: Watch):
    watch.expected.append("status of 401")
    keys = f"/v1/projects/{board.project}/keys"
    made = (await board.client.post(keys, json={"scopes": ["read"]})).json()
    page = await open_page(board.view().replace(board.key, made["key"]))
    await is_live(page)
    await page.get_by_label("Member", exact=True).fill("ada")
    answer = await board.client.delete(f"{keys}/{made['prefix']}")
    assert answer.status_code == httpx.codes.NO_CONTENT
    await page.keyboard.press("Enter")  # unless the page asked something by itself before
    await expect(page.get_by_role("heading", name="Enter an API key")).to_be_visible()
    await page.get_by_label("API key").fill(board.key)
    await page.get_by_role("button", name="Open").click()
    await expect(page.get_by_role("table").first).to_be_visible()


async def test_while_an_answer_is_on_its_way_the_page_shows_where_it_will_be(open_page: Open, board: Ranked):
    page = await open_page()

    async def hold(route: Route) -> None:
        await expect(page.get_by_role("status", name="Loading")).to_be_visible()
        await route.continue_()

    await page.route("**/entries?*", hold)
    await page.goto(board.url())
    await expect(row_of(page, "ada")).to_be_visible()
    await page.unroute_all(behavior="wait")


async def test_windows_past_their_keep_come_from_the_archive(open_page: Open, site: Served):
    definition = {
        "windows": [{"period": "every", "seconds": 2, "name": "round", "keep": 1}],
        "lateness": "PT0S",
        "archive": {"snapshot": [{"period": "round", "top": 2}]},
    }
    async with new_board(site, definition) as board:
        await board.submit_many({"member": member, "score": 10} for member in ("ada", "bob", "eve"))
        snapshots: list[dict[str, str]] = []

        async def are_taken() -> list[dict[str, str]]:
            await board.client.post("/v1/jobs/snapshots/run")
            snapshots.extend((await board.ask("GET", "/snapshots"))["snapshots"])
            return snapshots

        await eventually(are_taken)
        page = await open_page(board.view())
        slot, picture = snapshots[0]["slot"], snapshots[0]["id"]
        await page.get_by_label("Window").select_option(label=f"{slot} · archived")
        await expect(page.get_by_text("The archive keeps the best 2 of 3.")).to_be_visible()
        assert len(await ranking(page)) == 2
        await page.goto(board.url(snapshot=picture))
        await expect(page.get_by_text(re.compile("As it was on .*: 2 of 3"))).to_be_visible()
