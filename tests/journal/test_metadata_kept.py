"""Metadata set without a score survives rebuilds and exports, and is erased with its member."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from test_export import file_of

from laurels.boards.keys import BoardRef
from laurels.errors import NotFound
from laurels.moments import datetime_of

from .test_rebuild import forget_everything, pictures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from laurels.clock import FixedClock
    from laurels.engine import Laurels

    NewBoard = Callable[..., Awaitable[str]]

GROUPS = (None, "country=BR")
DEFINITION: dict[str, Any] = {
    "windows": [
        {"period": "daily", "keep": 3},
        {"period": "weekly", "sum_of": "daily"},
        {"period": "all_time"},
        {"period": "rolling", "days": 2},
    ],
    "groups": [["country"]],
    "ties": "earliest",
}
EXACT = {"a": "é\u0000\n", "b": [1.5, 1e300, None, {"c": True}], "": "  "}


async def describe(laurels: Laurels, board: str, clock: FixedClock) -> None:
    """Sets metadata before and after submissions, a removal and midnight, in all windows and in some."""
    for number, member in enumerate(("ada", "bob", "ada", "eve")):
        groups = {"country": "BR"} if number % 2 == 0 else None
        await laurels.submit(board, member, number, groups=groups, metadata={"n": number})
        await laurels.set_metadata(board, member, EXACT, id=f"set-{number}")
    await laurels.set_metadata(board, "bob", None, period="daily")
    await laurels.remove(board, "eve")
    await laurels.submit(board, "eve", 1)
    clock.advance(timedelta(days=1))
    await laurels.submit(board, "ada", 9, groups={"country": "BR"}, metadata={"n": 9})
    await laurels.set_metadata(board, "ada", {"day": "yesterday"}, slot="2025-10-24")
    await laurels.set_metadata(board, "ada", {"of": "BR"}, group="country=BR", period="all_time")


@pytest.mark.parametrize("more", [{}, {"ties": "shared"}, {"score": "int64", "shards": 3}])
async def test_a_rebuilt_board_has_exactly_this_metadata(
    laurels: Laurels, new_board: NewBoard, clock: FixedClock, more: dict[str, Any]
):
    board = await new_board(**DEFINITION | more)
    await describe(laurels, board, clock)
    before = await pictures(laurels, board, GROUPS)
    assert (await laurels.verify(board)).differences == []
    await laurels.archived(board)
    await forget_everything(laurels, board)
    told = await laurels.rebuild(board)
    assert (told.doubled, told.different) == (0, 0)
    assert await pictures(laurels, board, GROUPS) == before
    assert (await laurels.verify(board)).differences == []


async def test_verify_reports_metadata_that_is_not_in_the_journal(
    laurels: Laurels, new_board: NewBoard, clock: FixedClock
):
    board = await new_board(**DEFINITION)
    await describe(laurels, board, clock)
    await laurels.valkey.command("HSET", f"lb:{{{board}}}:all_time|metadata", "bob", '{"by":"hand"}')
    assert (await laurels.verify(board)).differences == ["all_time: bob: has other metadata"]


async def test_its_ids_are_remembered_after_a_rebuild(laurels: Laurels, new_board: NewBoard):
    board = await new_board(**DEFINITION)
    await laurels.submit(board, "ada", 5)
    made = (await laurels.set_metadata(board, "ada", {"n": 1})).id
    await laurels.set_metadata(board, "ada", {"n": 2}, id="given")
    await laurels.archived(board)
    await forget_everything(laurels, board)
    await laurels.rebuild(board)
    for given in (made, "given"):
        assert not (await laurels.set_metadata(board, "ada", {"n": 3}, id=given)).applied
    assert (await laurels.standing(board, "ada")).metadata == {"n": 2}


async def test_a_repetition_that_valkey_had_forgotten_counts_once(laurels: Laurels, new_board: NewBoard):
    board = await new_board(windows=[{"period": "all_time"}])
    await laurels.submit(board, "ada", 5)
    await laurels.set_metadata(board, "ada", {"n": 1}, id="one")
    await laurels.set_metadata(board, "ada", {"n": 2}, id="two")
    await laurels.archived(board)
    await forget_everything(laurels, board)
    await laurels.submit(board, "ada", 4)
    assert (await laurels.set_metadata(board, "ada", {"n": 1}, id="one")).applied
    assert (await laurels.rebuild(board)).doubled == 1
    assert (await laurels.standing(board, "ada")).metadata == {"n": 2}


async def test_an_export_restores_metadata(laurels: Laurels, new_board: NewBoard, clock: FixedClock):
    board = await new_board(**DEFINITION)
    await describe(laurels, board, clock)
    before = await pictures(laurels, board, GROUPS)
    lines = await file_of(laurels, board)
    other = await new_board(**DEFINITION)
    await laurels.import_lines(lambda: lines, other)
    assert await pictures(laurels, other, GROUPS) == before
    # What was imported can be corrected, and a rebuild keeps to the order.
    await laurels.set_metadata(other, "ada", {"after": "import"})
    assert (await laurels.verify(other)).differences == []


async def test_an_erased_member_leaves_no_metadata(laurels: Laurels, new_board: NewBoard, clock: FixedClock):
    board = await new_board(**DEFINITION)
    await describe(laurels, board, clock)
    await laurels.set_metadata(board, "ada", {"name": "Ada Lovelace"})
    ref = BoardRef.parse(board)
    await laurels.erase(ref.project, "ada", board=ref.board)
    stored = await laurels.store.get(ref.project, ref.board)
    assert stored
    rows = await laurels.drain.store.rows(stored.id, limit=1000)
    assert b"ada" not in {row.member for row in rows}
    assert not any("Lovelace" in row.metadata for row in rows)
    assert (await laurels.verify(board)).differences == []
    await forget_everything(laurels, board)
    await laurels.rebuild(board)
    for window in await laurels.windows(board, limit=1000):
        page = await laurels.page(board, period=window.period, slot=window.slot or None)
        assert not any("Lovelace" in str(entry) for entry in page.entries)
    with pytest.raises(NotFound):
        await laurels.set_metadata(board, "ada", {"n": 1})


async def test_the_history_of_a_board_begins_with_its_first_score(
    laurels: Laurels, new_board: NewBoard, clock: FixedClock
):
    """A window past its keep is recounted from submissions, and metadata does not affect that."""
    board = await new_board(windows=[{"period": "daily", "keep": 1}])
    await laurels.submit(board, "ada", 5)
    await laurels.set_metadata(board, "ada", {"n": 1})
    clock.advance(timedelta(days=2))
    await laurels.archived(board)
    found = (await laurels.history(board, "ada")).windows
    assert [(each.slot, each.score, each.source) for each in found] == [("2025-10-24", 5, "journal")]


async def test_a_snapshot_keeps_the_metadata_of_its_moment(
    laurels: Laurels, new_board: NewBoard, clock: FixedClock
):
    board = await new_board(
        windows=[{"period": "daily", "keep": 5}], archive={"snapshot": [{"period": "daily"}]}
    )
    await laurels.submit(board, "ada", 5)
    await laurels.set_metadata(board, "ada", {"n": 1})
    clock.advance(timedelta(days=3))
    await laurels.snapshot_taker.take_due(None)
    await laurels.set_metadata(board, "ada", {"n": 2}, slot="2025-10-24")
    (taken,) = (await laurels.snapshots(board)).snapshots
    page = await laurels.snapshot(board, taken.id)
    assert [entry.metadata for entry in page.entries] == [{"n": 1}]
    assert taken.taken_at <= datetime_of(clock.now)
