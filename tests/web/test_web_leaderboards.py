"""The page of the campuses, with what the simulator made of three days."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from browsing import fits, violations
from campus_days import CampusDays, campus_days
from places import fast_place, folder_that_anybody_may_pass
from playwright.async_api import expect

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from browsing import Open, Watch
    from playwright.async_api import Locator, Page

SCOPES = ("overall", "social", "engagement", "popularity")
PERIODS = ("daily", "weekly", "monthly")
ROWS = 50


@pytest.fixture(scope="module")
async def campus(built: None) -> AsyncGenerator[CampusDays]:
    with folder_that_anybody_may_pass(fast_place()) as place:
        async with campus_days(place / "data") as days:
            yield days


@dataclass(frozen=True)
class Me:
    user_id: str
    handle: str
    token: str


@pytest.fixture(scope="module")
async def me(campus: CampusDays) -> Me:
    """Ranked fortieth or so on the first campus, so not among those that are seen at once."""
    row = (await campus.table())["items"][39]
    return Me(row["user_id"], row["handle"], campus.token(row["user_id"]))


@pytest.fixture
def page_of(open_page: Open, campus: CampusDays, me: Me) -> PageOf:
    return PageOf(open_page, campus.served.url, me)


@dataclass(frozen=True)
class PageOf:
    """The page as somebody sees it."""

    open_page: Open
    url: str
    me: Me

    async def mine(self, query: str = "", **options: Any) -> Page:  # noqa: ANN401  # Playwright's own
        return await self.open_page(f"{self.url}/leaderboards{query}#token={self.me.token}", **options)

    async def key_s(self, key: str, query: str = "", **options: Any) -> Page:  # noqa: ANN401  # as above
        return await self.open_page(f"{self.url}/leaderboards{query}#key={key}", **options)


def rows(page: Page) -> Locator:
    return page.get_by_role("table").locator("tbody tr[data-row]")


SEEN = """(rows) => rows.map((row) => [
    Number(row.cells[0].innerText), row.querySelector("bdi").innerText, Number(row.cells[2].innerText)
])"""


async def seen(page: Page) -> list[tuple[int, str, float]]:
    """Rank, handle and score of each row."""
    return [(rank, handle, score) for rank, handle, score in await rows(page).evaluate_all(SEEN)]


def told(table: dict[str, Any]) -> list[tuple[int, str, Any]]:
    """The same as the API has it; scores are shown with one decimal place."""
    return [(row["rank"], row["handle"], pytest.approx(row["score"], abs=0.0501)) for row in table["items"]]


async def expect_table(page: Page, table: dict[str, Any]) -> None:
    """The rows, as soon as they are those that the API tells."""
    await expect(page.locator("table[data-stale]")).to_have_count(0)
    await expect(rows(page)).to_have_count(len(table["items"]))
    await expect(rows(page).first).to_have_attribute("data-row", table["items"][0]["user_id"])
    assert await seen(page) == told(table)


async def test_every_period_and_scope_shows_what_the_api_tells(campus: CampusDays, page_of: PageOf):
    page = await page_of.mine()
    for period, scope in product(PERIODS, SCOPES):
        await page.get_by_role("tab", name=period.title()).click()
        await page.get_by_role("radio", name=scope.title()).check()
        await expect(page.get_by_role("table")).to_have_accessible_name(
            f"{scope.title()}, {period}: rank, name and score"
        )
        await expect_table(page, await campus.table(scope=scope, period=period))


async def test_the_campus_is_mine_until_another_is_picked(campus: CampusDays, page_of: PageOf):
    page = await page_of.mine()
    own, other = campus.world.campuses[0], campus.world.campuses[1]
    await expect(page.get_by_role("heading", level=1)).to_have_text(own.name)
    await page.get_by_label("Campus").select_option(label=other.name)
    await expect(page.get_by_role("heading", level=1)).to_have_text(other.name)
    await expect_table(page, await campus.table(1))
    await expect(page).to_have_title(f"{other.name} leaderboards · Laurels")
    assert f"campus={other.id}" in page.url


async def test_an_address_leads_to_the_same_view_again(campus: CampusDays, page_of: PageOf, me: Me):
    page = await page_of.mine()
    await page.get_by_role("tab", name="Weekly").click()
    await page.get_by_role("radio", name="Social").check()
    await page.get_by_label("Campus").select_option(label=campus.world.campuses[2].name)
    address = page.url
    another = await page_of.open_page(f"{address}#token={me.token}")
    await expect(another.get_by_role("tab", name="Weekly")).to_have_attribute("aria-selected", "true")
    await expect(another.get_by_role("radio", name="Social")).to_be_checked()
    await expect_table(another, await campus.table(2, "social", period="weekly"))


async def test_back_and_forward_go_through_the_views(page_of: PageOf):
    page = await page_of.mine()
    await page.get_by_role("tab", name="Monthly").click()
    await page.get_by_role("radio", name="Popularity").check()
    await page.go_back()
    await expect(page.get_by_role("radio", name="Overall")).to_be_checked()
    await page.go_back()
    await expect(page.get_by_role("tab", name="Daily")).to_have_attribute("aria-selected", "true")
    await page.go_forward()
    await expect(page.get_by_role("tab", name="Monthly")).to_have_attribute("aria-selected", "true")


async def test_my_row_stands_out_and_stays_in_sight(page_of: PageOf, me: Me):
    page = await page_of.mine()
    own = rows(page).filter(has_text=me.handle)
    pinned = page.get_by_role("table").locator("tfoot tr")
    await expect(own).to_have_attribute("aria-current", "true")
    await expect(pinned).to_contain_text(me.handle)
    await expect(pinned.locator("td").first).to_be_in_viewport(ratio=0.9)
    await own.scroll_into_view_if_needed()
    await page.mouse.wheel(0, 300)
    await expect(pinned).to_have_count(0)
    await expect(own).to_be_in_viewport()


async def test_my_row_is_pinned_on_the_pages_that_it_is_not_on(campus: CampusDays, page_of: PageOf, me: Me):
    page = await page_of.mine()
    await page.get_by_role("button", name="Next").click()
    await expect_table(page, await campus.table(offset=ROWS))
    pinned = page.get_by_role("table").locator("tfoot tr")
    await expect(pinned).to_contain_text(me.handle)
    standing = (await campus.table(user_id=me.user_id))["user"]
    await expect(pinned.locator("td").first).to_have_text(str(standing["rank"]))
    await page.get_by_role("button", name="Top").click()
    await expect_table(page, await campus.table())


async def test_the_card_has_my_streak_my_places_and_my_badges(campus: CampusDays, open_page: Open):
    best = (await campus.table(ymd=await yesterday(campus)))["items"][0]
    page = await PageOf(
        open_page, campus.served.url, Me(best["user_id"], best["handle"], campus.token(best["user_id"]))
    ).mine()
    summary = await campus.ask("me/summary", best["user_id"])
    card = page.get_by_role("complementary", name="Me")
    await expect(card.get_by_role("heading", level=2)).to_have_text(best["handle"])
    streak = card.get_by_role("region", name="Streak")
    for name, length in (("Current streak", "current"), ("Best", "best")):
        told_length = days_long(summary["streak"][length])
        await expect(streak).to_contain_text(f"{name}\n{told_length}", use_inner_text=True)
    days = len(await active_days(campus, best["user_id"])) + 1  # and today
    await expect(streak.get_by_role("img")).to_have_accessible_name(
        f"Active on {days} days of the last 12 weeks"
    )
    for scope in SCOPES:
        place = card.get_by_text(scope.title()).locator("..").locator("dd")
        rank, score = (await place.inner_text()).split()
        assert int(rank) == summary["ranks"][scope]
        assert float(score) == pytest.approx(summary["scores"][scope], abs=0.0501)
    earned = Counter(badge["kind"] for badge in summary["badges"])
    badges = card.get_by_role("list").get_by_role("listitem")
    await expect(badges).to_have_count(len(earned))
    top_of_a_day = badges.filter(has_text="Top 10 of a day")
    await expect(top_of_a_day).to_be_visible()
    if earned["daily_top10"] > 1:
        await expect(top_of_a_day).to_contain_text(f"{earned['daily_top10']} times")


async def test_who_has_no_badges_is_told_how_to_earn_them(campus: CampusDays, open_page: Open):
    user_id, handle = await somebody_without_badges(campus)
    page = await PageOf(open_page, campus.served.url, Me(user_id, handle, campus.token(user_id))).mine()
    await expect(page.get_by_text("None yet.")).to_be_visible()


async def test_another_day_can_be_picked_but_none_that_has_not_begun(campus: CampusDays, page_of: PageOf):
    page = await page_of.mine()
    after = page.get_by_role("button", name="The day after")
    await expect(rows(page).first).to_be_visible()
    await expect(after).to_be_disabled()
    await page.get_by_role("button", name="The day before").click()
    day = await yesterday(campus)
    await expect_table(page, await campus.table(ymd=day))
    await expect(page).to_have_url(re.compile(f"day={_iso(day)}"))
    await expect(page.get_by_text("The day ends in")).to_have_count(0)
    await after.click()
    await expect(page.get_by_text("The day ends in")).to_be_visible()
    await expect_table(page, await campus.table())
    await page.get_by_label("Day", exact=True).fill(_iso(day))
    await expect_table(page, await campus.table(ymd=day))


async def test_a_day_of_which_nothing_is_known_is_empty(page_of: PageOf):
    page = await page_of.mine("?day=2020-02-29")
    await expect(page.get_by_text("There was no activity on this day.")).to_be_visible()


async def test_a_move_is_seen_without_reload(campus: CampusDays, page_of: PageOf):
    campus_id = campus.world.campuses[2].id
    page = await page_of.mine(f"?scope=engagement&campus={campus_id}")
    table = await campus.table(2, "engagement")
    await expect_table(page, table)
    await page.evaluate("window.sameDocument = true")
    first, last = table["items"][0], table["items"][-1]
    await campus.win(last["user_id"], somebody(campus, 1), 60)
    await expect(rows(page).first).to_have_attribute("data-row", last["user_id"])
    await expect(rows(page).nth(1)).to_have_attribute("data-row", first["user_id"])
    assert await page.evaluate("window.sameDocument")


async def test_rows_glide_to_their_new_places_where_motion_is_welcome(campus: CampusDays, page_of: PageOf):
    campus_id = campus.world.campuses[1].id
    page = await page_of.mine(f"?scope=engagement&campus={campus_id}", reduced_motion="no-preference")
    table = await campus.table(1, "engagement")
    await expect_table(page, table)
    await page.evaluate(
        """() => {
            const animate = Element.prototype.animate;
            window.glided = new Set();
            Element.prototype.animate = function (...given) {
                window.glided.add(this.dataset.row);
                return animate.apply(this, given);
            };
        }"""
    )
    last = table["items"][-1]
    await campus.win(last["user_id"], somebody(campus, 2), 60)
    await expect(rows(page).first).to_have_attribute("data-row", last["user_id"])
    assert await page.evaluate("(row) => window.glided.has(row)", table["items"][0]["user_id"])


async def test_the_keyboard_is_enough(page_of: PageOf):
    page = await page_of.mine()
    daily = page.get_by_role("tab", name="Daily")
    await expect(rows(page).first).to_be_visible()
    await daily.focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("tab", name="Weekly")).to_be_focused()
    await expect(page).to_have_url(re.compile("period=weekly"))
    await page.keyboard.press("End")
    await expect(page.get_by_role("tab", name="Monthly")).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(daily).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("radio", name="Overall")).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(page).to_have_url(re.compile("scope=social"))
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Campus")).to_be_focused()


async def test_a_key_shows_the_tables_and_belongs_to_no_player(campus: CampusDays, page_of: PageOf):
    page = await page_of.key_s(campus.served.welcome["key"])
    await expect(rows(page)).to_have_count(ROWS)
    await expect(page.get_by_role("complementary", name="Me")).to_contain_text("A key belongs to no player.")
    await expect(page.locator("tr[aria-current]")).to_have_count(0)


async def test_without_token_or_key_the_page_asks_for_one(campus: CampusDays, page_of: PageOf, me: Me):
    page = await page_of.open_page(f"{campus.served.url}/leaderboards")
    await page.get_by_label("Token or key").fill(me.token)
    await page.get_by_role("button", name="Open").click()
    await expect(page.get_by_role("complementary", name="Me")).to_contain_text(me.handle)


async def test_a_token_that_is_refused_is_forgotten(campus: CampusDays, open_page: Open, watch: Watch):
    watch.expected.append("status of 401")
    page = await open_page(f"{campus.served.url}/leaderboards#token=eyJhbGciOiJIUzI1NiJ9.e30.x")
    await expect(page.get_by_label("Token or key")).to_be_visible()
    assert await page.evaluate("sessionStorage.getItem('laurels.token')") is None


async def test_a_campus_that_there_is_not_is_said_to_be_none(page_of: PageOf, campus: CampusDays):
    page = await page_of.mine("?campus=00000000-0000-0000-0000-000000000000")
    await expect(page.get_by_text("No such campus")).to_be_visible()
    await page.get_by_role("button", name="Show another").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(campus.world.campuses[0].name)


async def test_who_is_offline_is_told_and_keeps_what_was_there(page_of: PageOf, watch: Watch):
    watch.expected += ["ERR_INTERNET_DISCONNECTED", "ERR_FAILED"]
    page = await page_of.mine()
    await expect(rows(page)).to_have_count(ROWS)
    await page.context.set_offline(True)
    await expect(page.get_by_text("Laurels cannot be reached.")).to_be_visible()
    await expect(rows(page)).to_have_count(ROWS)
    await page.context.set_offline(False)
    await expect(page.get_by_text("Laurels cannot be reached.")).to_have_count(0)


async def test_a_problem_is_told_with_a_way_on(page_of: PageOf, watch: Watch):
    watch.expected.append("status of 503")
    page = await page_of.open_page(f"{page_of.url}/healthz")
    is_away = True

    async def answer(route: Any) -> None:  # noqa: ANN401  # Playwright's own
        if is_away:
            body = '{"title": "A store is away", "detail": "Valkey does not answer"}'
            await route.fulfill(status=503, content_type="application/problem+json", body=body)
        else:
            await route.continue_()

    await page.route("**/leaderboards/overall*", answer)
    await page.goto(f"{page_of.url}/leaderboards#token={page_of.me.token}")
    await expect(page.get_by_role("alert")).to_contain_text("Valkey does not answer")
    is_away = False
    await page.get_by_role("button", name="Try again").click()
    await expect(rows(page)).to_have_count(ROWS)


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_wrong(page_of: PageOf, colours: str):
    page = await page_of.mine(color_scheme=colours)
    await expect(rows(page)).to_have_count(ROWS)
    await expect(page.get_by_role("heading", name="Badges")).to_be_visible()
    assert await violations(page) == []


@pytest.mark.parametrize(("width", "height"), [(320, 640), (3840, 2160)])
async def test_it_fits_small_and_large_screens(page_of: PageOf, width: int, height: int):
    page = await page_of.mine(viewport={"width": width, "height": height})
    await expect(rows(page)).to_have_count(ROWS)
    await expect(page.get_by_role("heading", name="Badges")).to_be_visible()
    assert await fits(page)
    assert await violations(page) == []


def somebody(campus: CampusDays, index: int) -> str:
    """Of that campus."""
    return next(person.id for person in campus.world.people if person.campus == index)


async def somebody_without_badges(campus: CampusDays) -> tuple[str, str]:
    """Whom that is depends on the day: a week that ended yesterday gave badges to the first ten of it."""
    for person in reversed(campus.world.people):  # the least lively first
        if not (await campus.ask("me/summary", person.id))["badges"]:
            return person.id, person.handle
    raise AssertionError("three days are too few for everybody to be among the first ten")


def days_long(days: int) -> str:
    return f"{days} {'day' if days == 1 else 'days'}"


async def yesterday(campus: CampusDays) -> int:
    """The newest finalized day of the first campus."""
    row = (await campus.table())["items"][0]
    return (await active_days(campus, row["user_id"]))[-1]


async def active_days(campus: CampusDays, user_id: str) -> list[int]:
    today = (await campus.table())["ymd"]
    year_ago = date.fromisoformat(_iso(today)) - timedelta(days=365)
    answer = await campus.ask("me/days", user_id, **{"from": f"{year_ago:%Y%m%d}", "to": today})
    return [day["ymd"] for day in answer["days"]]


def _iso(ymd: int) -> str:
    return f"{ymd // 10_000}-{ymd // 100 % 100:02}-{ymd % 100:02}"
