"""Every operation over HTTP, with both clients, gives what the engine itself gives."""

from __future__ import annotations

import inspect
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from laurels.arguments import ArchiveArguments, FirstPage
from laurels.boards.keys import BoardRef
from laurels.boards.preview import Preview
from laurels.client import AsyncClient, BoardDefinition, Client, Submission, Unreachable, Window
from laurels.engine import Laurels
from laurels.errors import Conflict, InvalidInput, NotFound, Unauthorized
from laurels.history.records import Erased
from laurels.jobs.state import JobInfo
from laurels.scores.results import Among, Distribution, Page, Percentile, Standing
from laurels.scores.view_diff import Update

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.embedded import Endpoints

    from .conftest import Served

DEFINITION = {
    "windows": [{"period": "all_time"}, {"period": "daily", "keep": 3}],
    "groups": [["country"]],
    "dense": True,
}


class Either:
    """One of the two clients; whatever it answers is awaited."""

    def __init__(self, client: Client | AsyncClient) -> None:
        self.client = client

    async def __call__(self, operation: str, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  # any answer
        answer: Any = getattr(self.client, operation)(*args, **kwargs)
        if inspect.isasyncgen(answer):
            if operation == "watch":
                return await first_of(answer)
            return [item async for item in answer]
        if inspect.isgenerator(answer):
            return next(answer) if operation == "watch" else list(answer)
        return await answer if isinstance(self.client, AsyncClient) else answer


async def first_of(updates: AsyncGenerator[Any, Any]) -> Update:
    async with aclosing(updates):
        return await anext(updates)


@pytest.fixture(params=["blocking", "awaiting"])
def either(request: pytest.FixtureRequest, client: Client, async_client: AsyncClient) -> Either:
    return Either(client if request.param == "blocking" else async_client)


@pytest.fixture(scope="module")
async def engine(endpoints: Endpoints) -> AsyncGenerator[Laurels]:
    """In process, on the same stores."""
    async with Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as engine:
        yield engine


@pytest.fixture
async def scored(either: Either) -> str:
    """A board with four entries: ada 300, bob and eve 200, joe 100."""
    await either("define", "scored", DEFINITION)
    for member, score, country in (
        ("ada", 300, "BR"), ("bob", 200, "BR"), ("eve", 200, "JP"), ("joe", 100, "JP")
    ):  # fmt: skip
        await either(
            "submit", "scored", member, score, groups={"country": country}, metadata={"level": score}
        )
    return "scored"


@pytest.fixture
async def ended(either: Either, engine: Laurels, project: str) -> str:
    """A board with two members in the hour that ended, and a snapshot of it and of its group."""
    await either(
        "define",
        "ended",
        {
            "windows": [{"period": "hourly", "keep": 48}],
            "groups": [["country"]],
            "archive": {"snapshot": [{"period": "hourly"}]},
        },
    )
    at = datetime.now(UTC) - timedelta(hours=1)
    for member, score in (("ada", 7), ("bob", 5)):
        await either("submit", "ended", member, score, at=at, groups={"country": "BR"})
    (stored,) = await engine.boards(project)
    await engine.snapshot_taker.take_of(BoardRef(project, "ended"), stored.id)
    return "ended"


async def test_a_board_is_defined_changed_and_dropped(either: Either, project: str):
    created = await either("define", "new", DEFINITION)
    assert (created.project, created.board, created.created) == (project, "new", True)
    assert created.created_at.tzinfo is not None
    again = await either("define", "new", created.definition)
    assert (again.created, again.version) == (False, created.version)
    assert await either("definition", "new") == created.definition
    await either("drop", "new")
    with pytest.raises(NotFound):
        await either("definition", "new")


async def test_a_definition_may_be_a_value(either: Either):
    definition = BoardDefinition(order="asc", windows=(Window(period="weekly"),))
    assert (await either("define", "new", definition)).definition == definition
    assert (await either("define", "plain")).definition == BoardDefinition()


async def test_boards_and_projects_are_listed(either: Either, project: str):
    for name in ("one", "two"):
        await either("define", name)
    assert [board.board for board in await either("boards")] == ["one", "two"]
    assert [board.board for board in await either("boards", project)] == ["one", "two"]
    assert project in await either("projects")


async def test_a_board_may_be_named_with_its_project(either: Either, project: str):
    await either("define", f"{project}/named")
    assert (await either("submit", f"{project}/named", "ada", 1)).rank == 1
    assert (await either("standing", "named", "ada")).score == 1


async def test_a_submission_tells_where_it_leaves_its_member(either: Either, scored: str):
    at = datetime.now(UTC)
    submitted = await either("submit", scored, "joe", 250, at=at, groups={"country": "JP"}, id="game-9")
    assert (submitted.score, submitted.previous_score) == (250, 100)
    assert (submitted.rank, submitted.previous_rank) == (2, 4)
    assert (submitted.applied, submitted.id) == (True, "game-9")
    assert not (await either("submit", scored, "joe", 250, id="game-9")).applied


async def test_a_match_tells_where_it_leaves_its_players(either: Either):
    await either("define", "duels", {"rating": {"system": "glicko2", "provisional": 3}})
    matched = await either("match", "duels", ["ada", "bob"], "bob", id="game-1")
    assert [(each.member, each.rank, each.games) for each in matched.players] == [
        ("ada", 2, 1),
        ("bob", 1, 1),
    ]
    assert matched.players[0].change < 0 < matched.players[1].change
    assert matched.players[0].provisional
    assert matched.players[0].deviation < 350
    assert not (await either("match", "duels", ["ada", "bob"], "bob", id="game-1")).applied
    assert (await either("match", "duels", ["ada", "bob"], ranks=[1, 1])).players[0].change > 0
    with pytest.raises(InvalidInput, match="winner: say who won"):
        await either("match", "duels", ["ada", "bob"])


async def test_every_question_is_answered_as_the_engine_answers_it(
    either: Either, scored: str, engine: Laurels, project: str
):
    board = f"{project}/{scored}"
    assert await either("page", scored, limit=2) == await engine.page(board, limit=2)
    assert await either("page", scored, start="bottom", change=True, period="daily") == await engine.page(
        board, start="bottom", change=True, period="daily"
    )
    assert await either("page", scored, rank=3, group="country=JP") == await engine.page(
        board, rank=3, group="country=JP"
    )
    assert await either("standing", scored, "eve") == await engine.standing(board, "eve")
    assert await either("around", scored, "eve", 1, below=1) == await engine.around(board, "eve", 1, 1)
    assert await either("among", scored, ["ada", "joe", "zoe"]) == await engine.among(
        board, ["ada", "joe", "zoe"]
    )
    assert await either("percentile", scored, 0.5) == await engine.percentile(board, 0.5)
    assert await either("distribution", scored, 4) == await engine.distribution(board, 4)
    assert await either("windows", scored) == await engine.windows(board)
    assert await either("windows", scored, period="daily", limit=1) == await engine.windows(
        board, period="daily", limit=1
    )


async def test_what_would_change_is_previewed(either: Either, scored: str, engine: Laurels, project: str):
    asked = {**DEFINITION, "windows": [{"period": "weekly"}], "order": "asc"}
    preview = await either("preview", scored, asked)
    assert preview == await engine.preview(f"{project}/{scored}", asked)
    assert type(preview) is Preview
    assert [drop.window for drop in preview.drops] == ["all_time", "daily"]
    assert await either("preview", scored, preview.definition) == preview
    assert (await either("definition", scored)).order == "desc"


async def test_the_archive_is_answered_as_the_engine_answers_it(
    either: Either, engine: Laurels, project: str, ended: str
):
    board = f"{project}/{ended}"
    narrow: ArchiveArguments = {"period": "hourly", "group": "country=BR"}
    for where in (ArchiveArguments(), narrow):
        history = await either("history", ended, "ada", limit=1, **where)
        assert history == await engine.history(board, "ada", limit=1, **where)
        assert [past.score for past in history.windows] == [7]
    listed = await either("snapshots", ended)
    assert listed == await engine.snapshots(board)
    assert [each.period for each in listed.snapshots] == ["hourly"] * 2
    first = await either("snapshots", ended, limit=1, period="hourly")
    assert first == await engine.snapshots(board, limit=1, period="hourly")
    rest = await either("snapshots", ended, cursor=first.next, period="hourly")
    assert [*first.snapshots, *rest.snapshots] == listed.snapshots
    identity = listed.snapshots[0].id
    assert await either("snapshot", ended, identity, limit=1) == await engine.snapshot(
        board, identity, limit=1
    )
    with pytest.raises(NotFound, match="no snapshot 'none'"):
        await either("snapshot", ended, "none")


async def test_a_member_is_erased(either: Either, scored: str, project: str):
    erased = await either("erase", project, "ada")
    assert type(erased) is Erased
    assert (erased.boards, erased.windows) == (1, 4)
    assert (await either("erase", project, "ada")).windows == 0
    with pytest.raises(NotFound):
        await either("standing", scored, "ada")


async def test_jobs_are_listed_and_requested(either: Either, engine: Laurels):
    listed = await either("jobs")
    assert [job.state.name for job in listed] == [job.state.name for job in await engine.jobs()]
    requested = await either("request_job", "snapshots")
    assert type(requested) is JobInfo
    assert requested.state.requested_at is not None
    (found,) = [job for job in await engine.jobs() if job.state.name == "snapshots"]
    assert requested == replace(found, state=replace(found.state, seconds=0.0))
    with pytest.raises(NotFound, match="there is no job 'lunch'"):
        await either("request_job", "lunch")


async def test_boards_are_the_engines(either: Either, scored: str, engine: Laurels, project: str):
    (listed,) = await either("boards")
    (stored,) = await engine.boards(project)
    assert listed == replace(stored, id=0)
    assert await either("projects") == await engine.projects()
    assert await either("definition", scored) == await engine.definition(f"{project}/{scored}")


async def test_pages_entries_and_updates_are_the_engines(
    either: Either, scored: str, engine: Laurels, project: str
):
    board = f"{project}/{scored}"
    where: FirstPage = {"limit": 2, "start": "bottom", "group": "country=JP", "change": True}
    for asked in (where, FirstPage(limit=3)):
        assert await either("pages", scored, **asked) == [page async for page in engine.pages(board, **asked)]
        assert await either("entries", scored, **asked) == [
            entry async for entry in engine.entries(board, **asked)
        ]
    update = await either("watch", scored, limit=2, member="joe")
    assert type(update) is Update
    assert update.value == (await first_of(engine.watch(board, limit=2, member="joe"))).value


async def test_answers_are_the_engines_own_types(either: Either, scored: str):
    assert type(await either("page", scored)) is Page
    assert type(await either("standing", scored, "ada")) is Standing
    assert type(await either("among", scored, ["ada"])) is Among
    assert type(await either("percentile", scored, 1.0)) is Percentile
    assert type(await either("distribution", scored)) is Distribution


@pytest.mark.parametrize("score", [2**53 + 1, 2**63 - 1, -(2**63), 0])
async def test_64_bit_scores_are_exact_both_ways(either: Either, score: int):
    await either("define", "exact", {"score": "int64"})
    submitted = await either("submit", "exact", "ada", score)
    (entry,) = (await either("page", "exact")).entries
    for found in (submitted.score, entry.score, (await either("standing", "exact", "ada")).score):
        assert (found, type(found)) == (score, int)
    assert (await either("distribution", "exact", 1)).buckets[0].high == score
    assert (await either("among", "exact", ["ada"])).entries[0].score == score
    assert (await either("percentile", "exact", 1)).score == score


async def test_a_member_that_looks_like_a_number_stays_a_string(either: Either, board: str):
    await either("submit", board, "007", 1.5, metadata={"level": "7"})
    (entry,) = (await either("page", board)).entries
    assert (entry.member, entry.score, entry.metadata) == ("007", 1.5, {"level": "7"})


@pytest.mark.parametrize("member", ["x/around", ".", "..", "a b?c#d%2F", "é\n🏆", "%", "around"])
async def test_any_member_can_be_asked_for(either: Either, board: str, member: str):
    await either("submit", board, member, 5)
    assert (await either("standing", board, member)).member == member
    assert [entry.member for entry in (await either("around", board, member)).entries] == [member]
    assert await either("remove", board, member) is True
    assert await either("remove", board, member) is False


async def test_to_remove_from_a_board_that_is_not_there_is_an_error(either: Either):
    with pytest.raises(NotFound, match="no board"):
        await either("remove", "nowhere", "ada")


async def test_metadata_is_set_without_a_score(either: Either, scored: str):
    told = await either("set_metadata", scored, "ada", {"level": 8}, id="one")
    assert (told.member, told.entries, told.applied, told.id) == ("ada", 4, True, "one")
    assert not (await either("set_metadata", scored, "ada", {"level": 9}, id="one")).applied
    where = {"period": "daily", "group": "country=BR"}
    assert (await either("set_metadata", scored, "ada", None, durability="fast", **where)).entries == 1
    assert (await either("standing", scored, "ada")).metadata == {"level": 8}
    assert (await either("standing", scored, "ada", **where)).metadata is None
    with pytest.raises(NotFound, match="'zoe' has no entry"):
        await either("set_metadata", scored, "zoe", {})
    with pytest.raises(InvalidInput, match="metadata"):
        await either("set_metadata", scored, "ada", {"x": "y" * 4096})


async def test_pages_follow_one_another_to_the_end(either: Either, board: str):
    members = [f"m{number:03}" for number in range(25)]
    await either("submit_many", board, [Submission(member, 100 - n) for n, member in enumerate(members)])
    pages = await either("pages", board, limit=10)
    assert [len(page.entries) for page in pages] == [10, 10, 5]
    assert [entry.member for entry in await either("entries", board, limit=10)] == members
    backwards = await either("entries", board, limit=7, start="bottom")
    assert [entry.member for entry in backwards] == members[::-1]
    assert [entry.member for entry in await either("entries", board, limit=4, rank=20)] == members[19:]
    assert await either("entries", board, period="daily", slot="2020-01-01") == []


async def test_errors_are_those_of_the_engine(either: Either, scored: str):
    with pytest.raises(NotFound, match="has no entry"):
        await either("standing", scored, "zoe")
    with pytest.raises(InvalidInput, match="score") as refused:
        await either("submit", scored, "ada", "high")
    assert [field.field for field in refused.value.fields] == ["score"]
    with pytest.raises(Conflict):
        await either("define", scored, {**DEFINITION, "aggregate": "sum"})
    with pytest.raises(InvalidInput, match="aggregate"):
        await either("define", "wrong", {"aggregate": "worst"})
    with pytest.raises(InvalidInput, match="JSON"):
        await either("submit", scored, "ada", 1, metadata={"when": object()})


async def test_health_tells_each_check(either: Either):
    health = await either("health")
    assert health.ready
    assert health.checks["valkey"] == "ok"


def test_a_key_that_does_not_exist_is_refused(served: Served):
    with Client(served.address, key="lk_none", project="p") as nobody, pytest.raises(Unauthorized):
        nobody.page("b")


def test_a_client_has_a_key_or_a_token():
    with pytest.raises(InvalidInput, match="not both"):
        Client("http://127.0.0.1:1", key="k", token="t")


@pytest.mark.parametrize("key", ["from a file\n", "", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_at_once(key: str):
    with pytest.raises(InvalidInput, match="key: must be visible ASCII"):
        Client("http://127.0.0.1:1", key=key)


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "ftp://there", "http://", ""])
def test_an_address_that_is_none_is_refused_at_once(address: str):
    with pytest.raises(InvalidInput, match="address: write it like"):
        AsyncClient(address)


def test_health_is_asked_once_of_who_does_not_answer():
    pauses: list[float] = []
    with Client("http://127.0.0.1:1", sleep=pauses.append) as nowhere, pytest.raises(Unreachable):
        nowhere.health()
    assert pauses == []
