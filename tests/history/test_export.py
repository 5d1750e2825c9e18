"""Boards as files: out, in again, and the same pages."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from laurels.boards.keys import BoardRef
from laurels.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints
    from laurels.engine import Laurels

    NewBoard = Callable[..., Awaitable[str]]

WINDOWS = [
    {"period": "daily", "keep": 4},
    {"period": "weekly", "sum_of": "daily", "name": "week_sum"},
    {"period": "rolling", "days": 2, "keep": 2},
    {"period": "all_time"},
]


async def play(laurels: Laurels, board: str, clock: FixedClock) -> None:
    chosen = random.Random(board)  # noqa: S311  # data, not secrets
    for number in range(40):
        await laurels.submit(
            board,
            chosen.choice(["a", "é\n", "x:y", "🏆", '"', "b", "c"]),
            chosen.randrange(6),
            groups=chosen.choice([None, {"country": "B,=%R"}]),
            metadata=chosen.choice([None, {"n": number, "s": "\u0000"}]),
        )
        clock.advance(timedelta(hours=chosen.choice([0, 1, 7])))


async def file_of(laurels: Laurels, *boards: str, window: tuple[str, str] | None = None) -> list[bytes]:
    return [line async for line in laurels.export(boards, window)]


async def pages(laurels: Laurels, board: str) -> list[Any]:
    seen: list[Any] = []
    for group in (None, "country=B%2C%3D%25R"):
        for window in await laurels.windows(board, group=group):
            page = await laurels.page(
                board, period=window.period, slot=window.slot or None, group=group, limit=1000
            )
            seen.append((window.period, window.slot, group, page.total, page.entries))
    return seen


async def forget_everything(laurels: Laurels, board: str) -> None:
    # Tomorrow's windows are completed in the background; what that wrote meanwhile would stay behind.
    under_way = laurels._rolling._under_way  # pyright: ignore[reportPrivateUsage]  # there is no public way to wait for it
    await asyncio.gather(*under_way.values(), return_exceptions=True)
    for node in await laurels.valkey._primaries():  # pyright: ignore[reportPrivateUsage]  # every key there is
        for key in await node.execute_command("KEYS", f"*{BoardRef.parse(board)}*"):
            await node.execute_command("DEL", key)


@pytest.mark.parametrize(
    "definition",
    [
        {"ties": "earliest", "shards": 3},
        {"ties": "member", "score": "int64", "aggregate": "sum"},
        {"dense": True, "order": "asc"},
    ],
)
async def test_a_board_comes_back_as_it_was(
    laurels: Laurels, new_board: NewBoard, clock: FixedClock, definition: dict[str, Any]
):
    board = await new_board(windows=WINDOWS, groups=[["country"]], **definition)
    await play(laurels, board, clock)
    before = await pages(laurels, board)
    file = await file_of(laurels, board)
    await laurels.drop(board, allow_drop="all")
    found = await laurels.import_lines(lambda: file)
    assert (found.boards, found.passed) == ([board], 0)
    assert await pages(laurels, board) == before
    again = await laurels.import_lines(lambda: file)
    assert again.entries == found.entries
    assert await pages(laurels, board) == before
    await laurels.archived(board)
    await forget_everything(laurels, board)
    await laurels.rebuild(board)
    assert await pages(laurels, board) == before, "what was imported is in the journal"


async def test_one_window_goes_into_another_board(laurels: Laurels, new_board: NewBoard, clock: FixedClock):
    board, other = await new_board(windows=WINDOWS), await new_board(windows=WINDOWS)
    await laurels.submit(board, "ada", 0.1 + 0.2)
    slot = (await laurels.windows(board, period="daily"))[0].slot
    file = await file_of(laurels, board, window=("daily", slot))
    found = await laurels.import_lines(lambda: file, other)
    assert (found.boards, found.windows, found.entries) == ([other], 1, 1)
    assert (await laurels.page(other, period="daily")).entries[0].score == 0.1 + 0.2
    assert (await laurels.page(other, period="all_time")).total == 0
    assert (await laurels.page(other, period="rolling_2d")).total == 1
    with pytest.raises(NotFound):
        await file_of(laurels, board, window=("daily", "1999-01-01"))


async def test_an_import_changes_a_rolling_window_that_was_read_before(laurels: Laurels, new_board: NewBoard):
    board, other = await new_board(windows=WINDOWS), await new_board(windows=WINDOWS)
    await laurels.submit(board, "ada", 5)
    await laurels.submit(other, "bob", 3)
    slot = (await laurels.windows(board, period="daily"))[0].slot
    assert (await laurels.page(other, period="rolling_2d")).total == 1
    file = await file_of(laurels, board, window=("daily", slot))
    await laurels.import_lines(lambda: file, other)
    page = await laurels.page(other, period="rolling_2d")
    assert [(entry.member, entry.score) for entry in page.entries] == [("ada", 5), ("bob", 3)]


async def test_a_damaged_file_changes_nothing(laurels: Laurels, new_board: NewBoard):
    board = await new_board()
    for number in range(5):
        await laurels.submit(board, f"m{number}", number)
    file = await file_of(laurels, board)
    await laurels.drop(board, allow_drop="all")
    swapped = [*file[:3], file[3].replace(b'"m4"', b'"n4"'), *file[4:]]
    for damaged, why in (
        (file[:-1], "ends too early"),
        ([*file[:3], *file[4:]], "checksum"),
        (swapped, "checksum"),
        ([*file[:-1], file[-1][:-9]], "not a line of an export"),
        ([*file, file[-1]], "after the checksum"),
        (file[1:], "manifest"),
        (
            [b'{"line":"manifest","format":"laurels-export","version":2,"boards":[],"made_at":""}\n'],
            "version 2",
        ),
    ):
        with pytest.raises(InvalidInput, match=why):
            await laurels.import_lines(lambda damaged=damaged: damaged)
        assert await laurels.store.get(*board.split("/")) is None


async def test_a_dry_run_changes_nothing(laurels: Laurels, new_board: NewBoard):
    board = await new_board()
    await laurels.submit(board, "ada", 5)
    file = await file_of(laurels, board)
    await laurels.drop(board, allow_drop="all")
    assert (await laurels.import_lines(lambda: file, dry_run=True)).entries == 1
    assert await laurels.store.get(*board.split("/")) is None


async def test_import_refuses_a_board_with_another_ranking(laurels: Laurels, new_board: NewBoard):
    board, other = await new_board(), await new_board(order="asc")
    await laurels.submit(board, "ada", 5)
    file = await file_of(laurels, board)
    with pytest.raises(Conflict, match="another order"):
        await laurels.import_lines(lambda: file, other)
    assert (await laurels.page(other)).total == 0


async def test_a_window_that_is_over_is_passed_by(laurels: Laurels, new_board: NewBoard, clock: FixedClock):
    board = await new_board(windows=[{"period": "daily", "keep": 1}, {"period": "all_time"}])
    await laurels.submit(board, "ada", 5)
    file = await file_of(laurels, board)
    clock.advance(timedelta(days=9))
    found = await laurels.import_lines(lambda: file)
    assert (found.windows, found.entries, found.passed) == (1, 1, 1)


async def test_a_sorted_set_of_another_server_becomes_a_board(
    laurels: Laurels, new_board: NewBoard, endpoints: Endpoints
):
    board = await new_board(windows=[{"period": "all_time"}])
    scores = {f"m{number}": number / 7 for number in range(2500)}
    flat = [word for member, score in scores.items() for word in (repr(score), member)]
    source = "an-old-zset"
    from_url = endpoints.valkey_url
    from_client = type(laurels.valkey)(from_url)
    await from_client.command("ZADD", source, *flat)
    found = await laurels.import_zset(board, from_url, source)
    assert found.entries == 2500
    page = await laurels.page(board, limit=1000)
    assert (page.total, page.entries[0].score) == (2500, 2499 / 7)
    await from_client.command("DEL", source)
    await from_client.close()
