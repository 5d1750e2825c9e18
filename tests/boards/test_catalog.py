"""The boards that a process knows: how they are loaded, and what is kept of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pytest
from sqlalchemy import event, update
from topologies import on_node
from waiting import eventually

from laurels.boards.catalog import LOADS_AT_ONCE
from laurels.boards.keys import BoardRef
from laurels.boards.recent import RecentBoards
from laurels.errors import LaurelsError, NotFound, Unavailable
from laurels.postgres import tables
from laurels.scores import payload

if TYPE_CHECKING:
    from collections.abc import Generator

    from raw_valkey import RawValkey

    from laurels.boards.board import Board
    from laurels.engine import Laurels
    from laurels.scores.submission import Submitted

NewBoard = Callable[..., str]

WINDOWS = [{"period": period} for period in ("daily", "weekly", "monthly", "all_time")]


def inner(of: object, *names: str) -> Any:  # noqa: ANN401  # what callers do not see
    for name in names:
        of = getattr(of, name)
    return of


@contextmanager
def statements(laurels: Laurels) -> Generator[list[str]]:
    """The SQL that this engine sends."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    engine = inner(laurels.postgres, "_engine", "sync_engine")  # SQLAlchemy's events are of its engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def first_scores(laurels: Laurels, boards: list[str]) -> list[Submitted | BaseException]:
    return await asyncio.gather(
        *(laurels.submit(board, "ada", number) for number, board in enumerate(boards)), return_exceptions=True
    )


async def test_first_scores_to_many_boards_share_queries(laurels: Laurels, new_board: NewBoard):
    boards = [new_board(windows=WINDOWS) for _ in range(60)]
    with statements(laurels) as sent:
        answers = await first_scores(laurels, boards)
    assert [getattr(answer, "score", answer) for answer in answers] == list(range(60))
    assert 1 <= len([each for each in sent if "FROM laurels.boards" in each]) <= 3
    for number, board in enumerate(boards):
        assert (await laurels.standing(board, "ada", period="weekly")).score == number


async def test_a_missing_or_unreadable_board_fails_alone(laurels: Laurels, new_board: NewBoard):
    good, bad = new_board(), new_board(order="asc")
    changed = update(tables.boards).where(tables.boards.c.board == BoardRef.parse(bad).board)
    async with laurels.postgres.writing() as connection:
        await connection.execute(changed.values(definition={"from": "the future"}))
    answers = await first_scores(laurels, [good, "tests/none-of-this-name", bad])
    async with laurels.postgres.writing() as connection:  # other tests read all boards
        await connection.execute(changed.values(definition={}))
    assert getattr(answers[0], "rank", answers[0]) == 1
    assert isinstance(answers[1], NotFound)
    assert isinstance(answers[2], LaurelsError)
    assert "stored by a newer Laurels" in answers[2].detail


async def test_a_board_that_is_wanted_as_the_last_loads_end_is_loaded(
    laurels: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
):
    boards = [new_board() for _ in range(LOADS_AT_ONCE + 1)]
    store, go = inner(laurels, "_catalog", "_store"), asyncio.Event()
    get_all, begun = store.get_all, list[object]()

    async def fail_together(refs: object) -> Any:  # noqa: ANN401  # as the store
        begun.append(refs)
        if len(begun) > LOADS_AT_ONCE:
            return await get_all(refs)
        await go.wait()
        raise Unavailable("PostgreSQL is away")

    monkeypatch.setattr(store, "get_all", fail_together)
    loads: list[asyncio.Task[object]] = []
    for board in boards[:LOADS_AT_ONCE]:
        loads.append(asyncio.create_task(laurels.definition(board)))
        await eventually(lambda: len(begun) == len(loads))
    go.set()  # the loads go on in the next turn, and then, in the same one:
    late = asyncio.create_task(laurels.definition(boards[-1]))
    async with asyncio.timeout(30):
        assert await late
    assert all(isinstance(each, Unavailable) for each in await asyncio.gather(*loads, return_exceptions=True))


async def test_a_caller_who_leaves_takes_nobody_along(laurels: Laurels, new_board: NewBoard):
    board = new_board()
    leaving = asyncio.create_task(laurels.submit(board, "bob", 1))
    staying = asyncio.create_task(laurels.submit(board, "ada", 2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).score == 2


async def test_boards_with_equal_definitions_share_what_is_compiled(laurels: Laurels, new_board: NewBoard):
    one, other, third = new_board(windows=WINDOWS), new_board(windows=WINDOWS), new_board()
    first, second, different = [await laurels.definition(each) for each in (one, other, third)]
    assert first is second
    assert different is not first


@on_node
async def test_the_windows_of_a_first_score_are_listed_by_one_call(
    laurels: Laurels, new_board: NewBoard, raw: RawValkey
):
    board = new_board(windows=WINDOWS, groups=[["country"]])
    before = raw.calls("fcall")
    await laurels.submit(board, "ada", 1, groups={"country": "BR"})
    # To adopt the board, to list four windows with their groups, and to submit.
    assert raw.calls("fcall") - before == 3
    windows = raw.client.zrange(f"lb:{{{board}}}:windows", 0, -1)
    assert len(windows) == len(WINDOWS)
    assert {raw.client.scard(f"lb:{{{board}}}:cuts:{window.decode()}") for window in windows} == {1}


@pytest.mark.parametrize("taken", ["whole", "group"])
@on_node
async def test_windows_are_listed_all_or_none(
    laurels: Laurels, new_board: NewBoard, raw: RawValkey, taken: str
):
    name = f"taken-{taken}"
    keys = {
        "daily": f"{name}:day:{{slot}}",
        "all_time": f"{name}:ever",
        "all_time:country": f"{name}:of:{{group.country}}",
    }
    board = new_board(windows=[WINDOWS[0], WINDOWS[3]], groups=[["country"]], keys=keys)
    raw.client.set(f"{name}:ever" if taken == "whole" else f"{name}:of:BR", "another program's")
    with pytest.raises(LaurelsError, match="another program"):
        await laurels.submit(board, "ada", 1, groups={"country": "BR"})
    assert raw.client.zcard(f"lb:{{{board}}}:windows") == 0


@pytest.fixture
def little_room(laurels: Laurels, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine keeps two boards."""
    monkeypatch.setattr(inner(laurels, "_catalog"), "_boards", RecentBoards(2))


@pytest.mark.usefixtures("little_room")
async def test_forgotten_boards_leave_nothing_behind(laurels: Laurels, new_board: NewBoard):
    windows = [{"period": "daily"}, {"period": "rolling", "days": 7}]
    boards = [new_board(windows=windows) for _ in range(6)]
    boards += [new_board(rating={"system": "elo"})]
    alive: WeakSet[Board] = WeakSet()
    for board in boards[:6]:
        await laurels.submit(board, "ada", 1, metadata={"level": 3})
        await laurels.page(board, period="rolling_7d")
        alive.add(await inner(laurels, "_catalog").board(BoardRef.parse(board)))
    await laurels.match(boards[6], ["ada", "bob"], winner="ada")
    inner(laurels, "_reader", "_window").cache_clear()  # these two caches are bounded
    inner(payload, "_outline_for_all").cache_clear()
    await inner(laurels, "_rolling").close()  # tomorrow's windows are completed in the background
    gc.collect()
    assert len(alive) <= 2
    assert inner(laurels, "_submitter", "_queues") == inner(laurels, "_matches", "_queues") == {}


@pytest.mark.usefixtures("little_room")
async def test_a_forgotten_board_is_loaded_again_with_all_that_is_known_of_it(
    laurels: Laurels, new_board: NewBoard
):
    boards = [new_board(windows=WINDOWS, ties="earliest") for _ in range(5)]
    for number in range(3):
        for board in boards:
            done = await laurels.submit(board, f"m{number}", 5, metadata={"n": number})
            assert (done.rank, done.applied) == (number + 1, True)
    for board in boards:
        page = await laurels.page(board, period="weekly")
        assert [(entry.member, entry.metadata) for entry in page.entries] == [
            (f"m{number}", {"n": number}) for number in range(3)
        ]


@pytest.mark.usefixtures("little_room")
async def test_boards_under_way_are_one_board_each(laurels: Laurels, new_board: NewBoard):
    boards = [new_board(aggregate="sum") for _ in range(12)]
    await asyncio.gather(*(laurels.submit(board, "ada", 1) for _ in range(20) for board in boards))
    for board in boards:
        assert (await laurels.standing(board, "ada")).score == 20
