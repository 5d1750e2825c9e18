"""The console, as operators use it: in a browser, with a session of their own."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import httpx
import pytest
from browsing import fits, violations
from playwright.async_api import expect

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable

    from browsing import Open, Watch
    from cli_processes import Served
    from playwright.async_api import Locator, Page

VIEWS = ("overview", "boards", "new", "keys", "secrets", "jobs", "dead-letters", "doctor")
# To another view, as a link goes there.
GO = """(view) => {
  history.pushState(null, "", new URL(`console/${view}`, document.baseURI));
  dispatchEvent(new PopStateEvent("popstate"));
}"""
# Far more than are sent between two looks of the overview.
MOST_SCORES = 3000
_numbers = count(1)


class SignedIn(Protocol):
    def __call__(self, path: str = "", own: str | None = None, **options: Any) -> Awaitable[Page]: ...  # noqa: ANN401  # Playwright's own


@pytest.fixture
async def api(site: Served, key: str) -> AsyncGenerator[httpx.AsyncClient]:
    """What the test does and sees without the page."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=site.url, headers=headers, timeout=30) as client:
        yield client


@pytest.fixture
def project() -> str:
    return f"console-{next(_numbers)}"


@pytest.fixture
async def admin_key(api: httpx.AsyncClient, project: str) -> str:
    """Of the test's own project."""
    made = await api.post(f"/v1/projects/{project}/keys", json={"scopes": ["admin"], "label": "operator"})
    return made.json()["key"]


@pytest.fixture
def signed_in(open_page: Open, key: str) -> SignedIn:
    """A view of the console, with the key that may do everything unless another is given."""

    async def sign_in(path: str = "", own: str | None = None, **options: Any) -> Page:  # noqa: ANN401  # as above
        page = await open_page(f"console{path}", **options)
        await page.get_by_label("Admin key").fill(own or key)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        return page

    return sign_in


def heading(page: Page, name: str) -> Locator:
    return page.get_by_role("heading", name=name, level=1, exact=True)


async def test_a_wrong_key_is_told_and_a_right_one_signs_in_until_one_signs_out(
    open_page: Open, watch: Watch, site: Served, key: str
):
    watch.expected.append("status of 401")
    page = await open_page("console")
    await page.get_by_label("Admin key").fill("lk_wrong000_nothing")
    await page.keyboard.press("Enter")
    field = page.get_by_label("Admin key")
    await expect(page.get_by_text("there is no such key, or it was revoked")).to_be_visible()
    await expect(field).to_be_focused()
    await expect(field).to_have_attribute("aria-invalid", "true")
    await field.fill(key)
    await page.keyboard.press("Enter")
    await expect(heading(page, "Overview")).to_be_visible()
    # No script can read the cookie; another tab has the session all the same.
    assert await page.evaluate("document.cookie") == ""
    assert key not in await page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
    other = await page.context.new_page()
    await other.goto(f"{site.url}/console/jobs")
    await expect(heading(other, "Jobs")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Admin key")).to_be_visible()
    await other.reload()
    await expect(other.get_by_label("Admin key")).to_be_visible()


async def test_a_key_without_admin_is_not_let_in(
    open_page: Open, watch: Watch, api: httpx.AsyncClient, project: str
):
    watch.expected.append("status of 403")
    reader = (await api.post(f"/v1/projects/{project}/keys", json={"scopes": ["read"]})).json()["key"]
    page = await open_page("console")
    await page.get_by_label("Admin key").fill(reader)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("the console needs a key with the scope admin")).to_be_visible()


async def test_a_board_is_made_and_a_score_is_ranked_on_it(signed_in: SignedIn, project: str):
    page = await signed_in("/new")
    await page.get_by_label("Project").fill(project)
    await page.get_by_label("Board", exact=True).fill("arcade")
    await page.get_by_label("Groups").fill("country")
    preview = page.get_by_role("complementary", name="Preview")
    daily = preview.get_by_role("list", name="Keys of daily")
    await expect(daily.get_by_role("listitem")).to_have_text(
        [
            re.compile(rf"^lb:\{{{project}/arcade\}}:daily:\d{{4}}-\d\d-\d\d$"),
            re.compile(r":country=…$"),
        ]
    )
    await page.get_by_role("button", name="Define the board").click()
    await expect(heading(page, "arcade")).to_be_focused()
    await expect(page.get_by_text("No entries yet")).to_be_visible()
    for member, score in (("ada", "1200"), ("bob", "1500.5")):
        await page.get_by_label("Member").fill(member)
        await page.get_by_label("Score", exact=True).fill(score)
        await page.get_by_label("Country").fill("BR")
        await page.get_by_role("button", name="Submit").click()
        await expect(page.get_by_text(re.compile(rf"^{member} has .*, rank 1\.$"))).to_be_visible()
    rows = page.get_by_role("region", name="The best").get_by_role("row")
    await expect(rows.nth(1)).to_contain_text(re.compile(r"1\s*bob\s*1,500\.5"))
    await expect(rows.nth(2)).to_contain_text(re.compile(r"2\s*ada\s*1,200"))


async def test_a_score_that_is_refused_is_told_at_its_field(
    signed_in: SignedIn, watch: Watch, api: httpx.AsyncClient, project: str
):
    watch.expected.append("status of 422")
    assert (
        await api.put(f"/v1/projects/{project}/boards/small", json={"limits": {"max": 10}})
    ).status_code == 201
    page = await signed_in(f"/boards/{project}/small")
    await page.get_by_label("Member").fill("ada")
    await page.get_by_label("Score", exact=True).fill("11")
    await page.get_by_role("button", name="Submit").click()
    field = page.get_by_label("Score", exact=True)
    await expect(field).to_have_attribute("aria-invalid", "true")
    described = await field.get_attribute("aria-describedby")
    wrong = page.locator(f"[id='{(described or '').split()[-1]}']")
    await expect(wrong).to_contain_text("10")


async def test_a_member_is_removed_once_that_is_confirmed(
    signed_in: SignedIn, watch: Watch, api: httpx.AsyncClient, project: str
):
    watch.expected.append("status of 404")
    board = f"/v1/projects/{project}/boards/arcade"
    await api.put(board, json={})
    for member in ("ada", "bob"):
        await api.post(f"{board}/scores", json={"member": member, "score": 5})
    page = await signed_in(f"/boards/{project}/arcade")
    remove = page.get_by_role("button", name="Remove ada")
    await remove.click()
    dialog = page.get_by_role("dialog", name="Remove ada?")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert (await api.get(f"{board}/entries/ada")).status_code == 200
    await remove.click()
    await dialog.get_by_role("button", name="Remove the member").click()
    await expect(dialog).to_be_hidden()
    await expect(remove).to_have_count(0)
    assert (await api.get(f"{board}/entries/ada")).status_code == 404
    # A member that is not listed can be looked for.
    await page.get_by_label("Exact name").fill("bob")
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_text("bob is at rank 1 of 1 with 5.")).to_be_visible()
    await page.get_by_label("Exact name").fill("ada")
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_text("ada has no entry in all_time.")).to_be_visible()


async def test_an_edit_that_entries_forbid_is_told_with_what_to_do_instead(
    signed_in: SignedIn, watch: Watch, api: httpx.AsyncClient, project: str
):
    watch.expected.append("status of 409")
    board = f"/v1/projects/{project}/boards/arcade"
    definition = {"windows": [{"period": "daily", "keep": 7}], "groups": [["country"]]}
    await api.put(board, json=definition)
    await api.post(f"{board}/scores", json={"member": "ada", "score": 5})
    page = await signed_in(f"/boards/{project}/arcade/edit")
    await expect(page.get_by_label("Keep", exact=True)).to_have_value("7")
    await page.get_by_label("Aggregate").select_option("sum")
    advice = "define a new board and submit to it, or drop this one first"
    preview = page.get_by_role("complementary", name="Preview")
    await expect(preview.get_by_text(advice)).to_be_visible()
    await page.get_by_role("button", name="Save the changes").click()
    refusal = page.get_by_role("alert").filter(has_text=advice)
    await expect(refusal).to_be_focused()
    # What they allow goes through, and nothing else of the definition changes.
    await page.get_by_label("Aggregate").select_option("best")
    await page.get_by_label("Keep", exact=True).fill("9")
    await expect(preview.get_by_text("Changes windows.")).to_be_visible()
    await page.get_by_role("button", name="Save the changes").click()
    await expect(heading(page, "arcade")).to_be_visible()
    changed = (await api.get(board)).json()["definition"]
    assert changed["windows"][0]["keep"] == 9
    assert (changed["aggregate"], changed["groups"]) == ("best", [["country"]])


async def test_an_edit_that_drops_entries_asks_for_the_boards_name(
    signed_in: SignedIn, watch: Watch, api: httpx.AsyncClient, project: str
):
    watch.expected.append("status of 409")
    board = f"/v1/projects/{project}/boards/arcade"
    await api.put(board, json={"windows": [{"period": "daily"}, {"period": "weekly"}]})
    for member in ("ada", "bob"):
        await api.post(f"{board}/scores", json={"member": member, "score": 5})
    page = await signed_in(f"/boards/{project}/arcade/edit")
    await page.get_by_role("button", name="Remove window 2, weekly").click()
    preview = page.get_by_role("complementary", name="Preview")
    gone = preview.get_by_role("list", name="What is dropped")
    await expect(gone.get_by_role("listitem")).to_have_text(["weekly: 2 entries"])
    save = page.get_by_role("button", name="Save the changes")
    await save.click()
    dialog = page.get_by_role("dialog", name=f"Drop entries of {project}/arcade?")
    await expect(dialog.get_by_role("listitem")).to_have_text(["weekly: 2 entries"])
    await sound(page, "the dialog")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_be_hidden()
    assert (await api.get(f"{board}/entries?period=weekly")).json()["total"] == 2
    await save.click()
    agree = dialog.get_by_role("button", name="Save and drop them")
    await expect(agree).to_be_disabled()
    await dialog.get_by_label("Type arcade to confirm").fill("arcade")
    await agree.click()
    await expect(heading(page, "arcade")).to_be_visible()
    labels = [window["period"] for window in (await api.get(board)).json()["definition"]["windows"]]
    assert labels == ["daily"]
    assert (await api.get(f"{board}/entries?period=daily")).json()["total"] == 2


async def test_what_is_wrong_with_a_definition_is_told_at_its_fields_as_one_types(
    signed_in: SignedIn, watch: Watch, project: str
):
    watch.expected.append("status of 422")
    page = await signed_in("/new")
    await page.get_by_label("Project").fill(project)
    await page.get_by_label("Board", exact=True).fill("wrong")
    await page.get_by_label("Timezone", exact=True).fill("Mars/Olympus")
    await page.get_by_label("Keep", exact=True).fill("soon")
    zone, keep = page.get_by_label("Timezone", exact=True), page.get_by_label("Keep", exact=True)
    for field in (zone, keep):
        await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_text("is not an IANA timezone").first).to_be_visible()
    await page.get_by_role("button", name="Define the board").click()
    await expect(keep).to_be_focused()
    await keep.fill("3")
    await zone.fill("Asia/Tokyo")
    for field in (zone, keep):
        await expect(field).not_to_have_attribute("aria-invalid", "true")
    await page.get_by_role("button", name="Define the board").click()
    await expect(heading(page, "wrong")).to_be_visible()


async def test_a_key_is_shown_once_and_the_session_ends_with_the_key_that_it_stands_for(
    signed_in: SignedIn, watch: Watch, api: httpx.AsyncClient, project: str, admin_key: str
):
    watch.expected.append("status of 401")
    page = await signed_in("", admin_key)
    # Of one project: nothing about the whole deployment.
    await expect(heading(page, "Boards")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Console").get_by_role("link")).to_have_text(
        ["Boards", "Keys", "Secrets"]
    )
    await page.get_by_role("link", name="Keys").click()
    await page.get_by_label("Label").fill("game server")
    await page.get_by_role("checkbox", name="submit").check()
    await page.get_by_role("button", name="Create the key").click()
    dialog = page.get_by_role("dialog", name="A new key")
    made = await dialog.locator("code").inner_text()
    with_it = await api.get("/v1/projects", headers={"Authorization": f"Bearer {made}"})
    assert with_it.status_code == 200
    await dialog.get_by_role("button", name="I have copied it").click()
    row = page.get_by_role("row").filter(has_text="game server")
    await expect(row).to_contain_text("read, submit")
    assert made not in await page.content()
    own = page.get_by_role("row").filter(has_text="operator")
    await own.get_by_role("button", name="Revoke").click()
    confirm = page.get_by_role("dialog")
    await expect(confirm).to_contain_text("you will be signed out")
    await confirm.get_by_role("button", name="Revoke the key").click()
    await expect(page.get_by_role("alert")).to_contain_text("its key was revoked")
    await expect(page.get_by_label("Admin key")).to_be_visible()
    keys = (await api.get(f"/v1/projects/{project}/keys")).json()["keys"]
    assert [key["label"] for key in keys if key["revoked_at"]] == ["operator"]


async def test_a_secret_is_made_and_revoked(signed_in: SignedIn, api: httpx.AsyncClient, project: str):
    page = await signed_in(f"/secrets?project={project}")
    await expect(page.get_by_text(f"{project} has no secrets")).to_be_visible()
    await page.get_by_role("button", name="Create the secret").click()
    dialog = page.get_by_role("dialog", name="A new secret")
    assert (await dialog.locator("code").inner_text()).startswith("ls_")
    await dialog.get_by_role("button", name="I have copied it").click()
    await page.get_by_role("button", name=re.compile("^Revoke ls_")).click()
    await page.get_by_role("button", name="Revoke the secret").click()
    await expect(page.get_by_role("row").filter(has_text="revoked")).to_have_count(1)
    (secret,) = (await api.get(f"/v1/projects/{project}/secrets")).json()["secrets"]
    assert secret["revoked_at"]


async def test_the_overview_shows_what_comes_in(signed_in: SignedIn, api: httpx.AsyncClient, project: str):
    board = f"/v1/projects/{project}/boards/arcade"
    await api.put(board, json={})
    page = await signed_in()
    for store in ("valkey", "functions", "postgres", "migrations"):
        await expect(page.get_by_text(f"{store}: ok")).to_be_visible()
    rate = page.get_by_role("img", name=re.compile("^Calls recorded: [1-9]"))
    row = page.get_by_role("row").filter(has_text=f"{project}/arcade")
    await expect(row).to_be_visible()
    for _ in range(MOST_SCORES):
        if await rate.count():
            break
        await api.post(f"{board}/scores", json={"member": "ada", "score": next(_numbers)})
    await expect(rate).to_have_count(1)
    await expect(row.get_by_role("cell").nth(1)).not_to_have_text("0")


async def test_a_job_is_run_out_of_turn(signed_in: SignedIn, api: httpx.AsyncClient):
    page = await signed_in("/jobs")
    jobs = (await api.get("/v1/jobs")).json()["jobs"]
    before = next(job for job in jobs if job["name"] == "retention")
    await page.get_by_role("button", name="Run retention now").click()
    row = page.get_by_role("row").filter(has_text="retention")
    runs = row.get_by_role("cell").nth(3)
    await expect(page.get_by_text("A worker will run retention within seconds")).to_be_visible()
    await expect(runs).not_to_have_text(re.compile(rf"^{before['succeeded']}\b"))


async def test_findings_are_told(signed_in: SignedIn):
    page = await signed_in("/doctor")
    row = page.get_by_role("row").filter(has_text="append-only file")
    await expect(row).to_contain_text("ok")
    await page.get_by_role("button", name="Check again").click()
    await expect(row).to_contain_text("on, fsync everysec")


async def test_what_fails_is_told_and_asked_again(signed_in: SignedIn, watch: Watch):
    watch.expected += ["status of 503", "ERR_FAILED", "Failed to load resource"]
    page = await signed_in("/boards")
    problem = {"title": "A store does not answer", "detail": "Try again.", "status": 503}
    await page.route("**/v1/dead-letters*", lambda route: route.fulfill(status=503, json=problem))
    await page.get_by_role("link", name="Dead letters").click()
    await expect(page.get_by_role("alert")).to_contain_text("A store does not answer")
    await page.unroute("**/v1/dead-letters*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No dead letters")).to_be_visible()
    # Without a network, what was there stays, and that it may be old is said.
    await page.context.set_offline(True)
    await expect(page.get_by_text("Laurels cannot be reached")).to_be_visible()
    await expect(page.get_by_text("No dead letters")).to_be_visible()
    await page.context.set_offline(False)
    await expect(page.get_by_text("Laurels cannot be reached")).to_be_hidden()


async def test_a_dead_letter_is_told_and_what_cannot_be_done_with_it_is_told_too(
    signed_in: SignedIn, watch: Watch
):
    watch.expected.append("status of 404")
    letter = {
        "id": "1.0.5-0",
        "source": "journal",
        "board": "acme/arcade",
        "recorded_at": "2025-10-24T12:00:00Z",
        "why": "the kind 'season' is not known",
        "summary": "2 bytes: c1 00",
    }
    page = await signed_in("/boards")
    # As if it were there; the server itself then knows of none.
    await page.route(
        "**/v1/dead-letters", lambda route: route.fulfill(json={"total": 1, "letters": [letter]})
    )
    await page.get_by_role("link", name="Dead letters").click()
    row = page.get_by_role("row").filter(has_text="acme/arcade")
    await expect(row).to_contain_text("the kind 'season' is not known")
    await row.get_by_role("button", name="Try 1.0.5-0 again").click()
    await expect(page.get_by_text("there is no dead letter 1.0.5-0")).to_be_visible()
    await row.get_by_role("button", name="Discard 1.0.5-0").click()
    dialog = page.get_by_role("dialog", name="Discard this letter?")
    await dialog.get_by_role("button", name="Discard the letter").click()
    await expect(dialog.get_by_role("alert")).to_have_text("there is no dead letter 1.0.5-0")
    assert await violations(page) == []


async def test_an_address_that_leads_nowhere_is_told(signed_in: SignedIn, admin_key: str):
    page = await signed_in("/nowhere")
    await expect(page.get_by_text("Page not found")).to_be_visible()
    closed = await signed_in("/doctor", admin_key)
    await expect(closed.get_by_text("This view needs a key for every project")).to_be_visible()


async def test_the_console_is_walked_through_by_keys_alone(signed_in: SignedIn):
    page = await signed_in("/boards")
    await page.get_by_role("link", name="Overview").focus()
    for _ in range(2):
        await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Keys", exact=True)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(heading(page, "Keys")).to_be_focused()
    await expect(page).to_have_title("Keys · Laurels")
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Project")).to_be_focused()


async def test_every_view_is_sound_in_light_and_dark_and_fits_the_narrow_and_the_wide(
    signed_in: SignedIn, api: httpx.AsyncClient, project: str
):
    name = "a-very-long-name-of-a-board-" * 2
    board = f"/v1/projects/{project}/boards/{name}"
    snapshots = [{"period": "all_time", "every": "day"}]
    await api.put(board, json={"groups": [["country"]], "archive": {"snapshot": snapshots}})
    await api.post(f"{board}/scores", json={"member": "m" * 200, "score": 5})
    page = await signed_in("")
    for view in (*VIEWS, f"boards/{project}/{name}", f"boards/{project}/{name}/edit"):
        await page.evaluate(GO, view)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        await sound(page, view)
    await page.evaluate(GO, f"boards/{project}/{name}")
    await page.get_by_role("button", name="Drop…").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await sound(page, "the dialog")
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Admin key")).to_be_visible()
    await sound(page, "signing in")


async def sound(page: Page, view: str) -> None:
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        assert await violations(page) == [], f"{view} in {scheme}"
    for width in (320, 3840, 1280):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await fits(page), f"{view} at {width}"
