"""Windows recounted from the journal say what they said while they were live: whatever was placed in them,
played in them, and members that were erased meanwhile.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from topologies import on_node

from laurels.moments import datetime_of, moment_of

if TYPE_CHECKING:
    from laurels.clock import FixedClock
    from laurels.engine import Laurels
    from laurels.scores.results import Standing

_numbers = count(1)

DAILY = {"period": "daily", "keep": 4}
KINDS: dict[str, dict[str, Any]] = {
    "best": {"windows": [DAILY], "shards": 2},
    "sum, earliest": {"windows": [DAILY], "aggregate": "sum", "ties": "earliest"},
    "last, int64, dense, by country": {
        "windows": [DAILY],
        "aggregate": "last",
        "score": "int64",
        "dense": True,
        "groups": [["country"]],
    },
    "a sum of hours": {
        "windows": [
            {"period": "every", "seconds": 172_800, "name": "pair", "keep": 2, "sum_of": "hours"},
            {"period": "every", "seconds": 3600, "name": "hours", "keep": 96},
        ],
        "ties": "earliest",
    },
    "rolling": {"windows": [{"period": "rolling", "days": 2, "keep": 4}], "ties": "earliest"},
}

# By window and group: each member's standing.
Stands = dict[tuple[str, str | None], dict[str, "Standing"]]


def name() -> str:
    return f"recount/board-{next(_numbers)}"


async def play(laurels: Laurels, clock: FixedClock, board: str, chance: random.Random, hours: int) -> None:
    for _ in range(hours // 3):
        for _ in range(chance.randint(0, 3)):
            clock.advance(timedelta(seconds=1))
            groups = {"country": chance.choice(["BR", "JP"])} if "country" in board else None
            member = f"m{chance.randint(0, 6)}"
            await laurels.submit(board, member, chance.randint(-3, 9), groups=groups)
        clock.advance(timedelta(hours=3))


async def live(laurels: Laurels, board: str) -> Stands:
    """What the windows that are over say, as long as they are there."""
    found: Stands = {}
    for group in (None, "country=BR") if "country" in board else (None,):
        label = (await laurels.definition(board)).windows[0].label
        for window in await laurels.windows(board, period=label, group=group):
            if window.ends_at is None or window.ends_at > datetime_of(laurels.clock()):
                continue
            where: Any = {"period": label, "slot": window.slot, "group": group}
            page = await laurels.page(board, **where, limit=1000)
            found[window.slot, group] = {
                entry.member: msgspec.structs.replace(
                    await laurels.standing(board, entry.member, **where), metadata=None
                )
                for entry in page.entries
            }
    return found


async def check_recounted(laurels: Laurels, clock: FixedClock, board: str, expected: Stands) -> None:
    """All of these are gone, and the journal says the same of them."""
    clock.advance(timedelta(days=9))
    await laurels.archived(board)
    assert await live(laurels, board) == {}
    for (slot, group), stands in expected.items():
        found = {
            member: msgspec.structs.replace(
                await laurels.standing(board, member, slot=slot, group=group), metadata=None
            )
            for member in stands
        }
        assert found == stands
    for group in {group for _, group in expected}:
        for member in {member for stands in expected.values() for member in stands}:
            told = (await laurels.history(board, member, group=group, limit=100)).windows
            said = {each.slot: (each.rank, each.score, each.total, each.source) for each in told}
            for (slot, of), stands in expected.items():
                if of == group:
                    stood = stands.get(member)
                    assert said.get(slot) == (stood and (stood.rank, stood.score, stood.total, "journal"))


@on_node
@pytest.mark.parametrize("kind", KINDS)
async def test_entries_that_were_imported_count(alone: Laurels, clock: FixedClock, kind: str):
    chance = random.Random(kind)  # noqa: S311  # data, not secrets
    board, other = (f"{name()}{'-country' if 'country' in kind else ''}" for _ in range(2))
    await alone.define(board, KINDS[kind])
    await play(alone, clock, board, chance, 60)
    file = [line async for line in alone.export([board])]
    await alone.define(other, KINDS[kind])
    await play(alone, clock, other, chance, 3)
    assert (await alone.import_lines(lambda: file, other)).entries > 10
    await play(alone, clock, other, chance, 12)
    await alone.remove(other, "m3")
    await play(alone, clock, other, chance, 12)
    said = await live(alone, other)
    assert any(len(stands) > 2 for stands in said.values())
    if kind != "a sum of hours":
        assert len(said) > 2, "windows that were over when they were imported, and one that went on"
    await check_recounted(alone, clock, other, said)


@on_node
@pytest.mark.parametrize("kind", KINDS)
async def test_erased_member_leaves_current_windows_and_stays_in_ended_ones(
    alone: Laurels, clock: FixedClock, kind: str
):
    chance = random.Random(kind)  # noqa: S311  # data, not secrets
    board = f"{name()}{'-country' if 'country' in kind else ''}"
    await alone.define(board, KINDS[kind])
    await play(alone, clock, board, chance, 54)
    for member in ("m1", "m2", "m3"):
        await alone.erase("recount", member)
    await play(alone, clock, board, chance, 24)
    said = await live(alone, board)
    members = {member for stands in said.values() for member in stands}
    if kind != "a sum of hours":
        assert any(member.startswith("~erased:") for member in members)
    await check_recounted(alone, clock, board, said)


@on_node
async def test_a_submission_at_the_moment_when_a_window_is_gone_does_not_count_in_it(
    alone: Laurels, clock: FixedClock
):
    board = name()
    await alone.define(board, {"windows": [{"period": "daily", "keep": 2}], "lateness": "P7D"})
    noon = datetime_of(clock.now)
    gone = moment_of(datetime(2025, 10, 26, tzinfo=UTC))
    for moment, score in ((gone - 1, 2), (gone, 3)):
        clock.now = moment
        await alone.submit(board, "ada", score, at=noon)
    await alone.archived(board)
    assert (await alone.standing(board, "ada", slot="2025-10-24")).score == 2


@on_node
async def test_matches_count_as_they_were_rated(alone: Laurels, clock: FixedClock):
    board = name()
    chance = random.Random(7)  # noqa: S311  # data, not secrets
    await alone.define(
        board, {"windows": [DAILY], "rating": {"system": "elo", "provisional": 2, "rank_provisional": False}}
    )
    for day in range(3):
        for hour in range(24):
            clock.advance(timedelta(hours=1))
            players = chance.sample([f"m{number}" for number in range(6)], 2)
            await alone.match(board, players, chance.choice([None, *players]))
            if (day, hour) == (1, 8):
                await alone.erase("recount", "m0")
                await alone.erase("recount", "m1")
    said = await live(alone, board)
    assert sum(len(stands) > 3 for stands in said.values()) > 1
    assert any(member.startswith("~erased:") for stands in said.values() for member in stands)
    await check_recounted(alone, clock, board, said)
