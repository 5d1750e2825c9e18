"""What a project keeps about one member, handed out: all of it, and nothing about others."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

import pytest

from laurels.boards.keys import BoardRef
from laurels.errors import InvalidInput, NotFound, StaleCursor
from laurels.people.records import Person

if TYPE_CHECKING:
    from laurels.clock import FixedClock
    from laurels.engine import Laurels

_numbers = count(1)


@pytest.fixture
async def project(laurels: Laurels, clock: FixedClock) -> str:
    """Two days on a board with groups and a snapshot, and one score on an exact board."""
    project = f"exported-{next(_numbers)}"
    board, exact = f"{project}/plain", f"{project}/exact"
    await laurels.define(
        board,
        {
            "windows": [{"period": "daily", "keep": 5}, {"period": "all_time"}],
            "groups": [["country"]],
            "archive": {"snapshot": [{"period": "daily"}]},
        },
    )
    await laurels.define(exact, {"score": "int64"})
    for day in range(2):
        for number, member in enumerate(("ada", "bob", "eve")):
            await laurels.submit(
                board,
                member,
                10 * day + number,
                groups={"country": "GB"},
                id=f"{member}-{day}",
                metadata={"day": day},
            )
        if day == 0:
            clock.advance(timedelta(days=1))
    await laurels.submit(exact, "ada", 2**60 + 1)
    stored = await laurels.store.get(*BoardRef.parse(board))
    assert stored
    await laurels.snapshot_taker.take_of(BoardRef.parse(board), stored.id)
    return project


@pytest.fixture
def member(project: str) -> str:
    del project
    return "ada"


async def test_everything_about_a_member_is_there(laurels: Laurels, project: str, member: str):
    await laurels.put_person(project, member, name="Ada", place="oslo")
    found = await laurels.export_member(project, member)
    assert found.person == Person("ada", "Ada", place="oslo")
    board = "plain"
    assert [each.score for each in found.entries if each.board == "exact"] == [str(2**60 + 1)]
    entries = {
        (each.period, each.slot, each.group): (each.score, each.rank, each.total, each.metadata)
        for each in found.entries
        if each.board == board
    }
    assert entries == {
        ("daily", "2025-10-24", ""): (0, 3, 3, {"day": 0}),
        ("daily", "2025-10-24", "country=GB"): (0, 3, 3, {"day": 0}),
        ("daily", "2025-10-25", ""): (10, 3, 3, {"day": 1}),
        ("daily", "2025-10-25", "country=GB"): (10, 3, 3, {"day": 1}),
        ("all_time", "", ""): (10, 3, 3, {"day": 1}),
        ("all_time", "", "country=GB"): (10, 3, 3, {"day": 1}),
    }
    kept = [(each["slot"], each["group"], each["rank"]) for each in found.snapshots if each["board"] == board]
    assert kept == [("2025-10-24", "", 3), ("2025-10-24", "country=GB", 3)]
    rows = [(each["id"], each["score"], each["groups"]) for each in found.journal if each["board"] == board]
    assert rows == [("ada-0", 0, {"country": "GB"}), ("ada-1", 10, {"country": "GB"})]
    assert [each["score"] for each in found.journal if each["board"] != board][-1] == str(2**60 + 1)
    assert found.next is None
    assert (found.users, found.streaks, found.badges, found.days) == ([], [], [], [])


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_the_journal_comes_in_parts(laurels: Laurels, project: str, member: str, limit: int):
    whole = (await laurels.export_member(project, member)).journal
    assert len(whole) >= 3
    parts = [await laurels.export_member(project, member, limit=limit)]
    while parts[-1].next:
        parts.append(await laurels.export_member(project, member, limit=limit, cursor=parts[-1].next))
        assert (parts[-1].person, parts[-1].entries, parts[-1].snapshots) == (None, [], [])
    assert [row for part in parts for row in part.journal] == whole
    assert {len(part.journal) for part in parts[:-1]} <= {limit}


async def test_a_cursor_belongs_to_its_member(laurels: Laurels, project: str, member: str):
    cursor = (await laurels.export_member(project, member, limit=1)).next
    with pytest.raises(StaleCursor):
        await laurels.export_member(project, "bob", cursor=cursor)
    with pytest.raises(InvalidInput, match=r"^limit: "):
        await laurels.export_member(project, member, limit=0)


async def test_an_unknown_member_and_an_erased_one_have_nothing(laurels: Laurels, project: str, member: str):
    with pytest.raises(NotFound, match="nothing is known about 'a\\\\x00b'"):
        await laurels.export_member(project, "a\0b")
    await laurels.erase(project, member)
    with pytest.raises(NotFound, match="nothing is known about 'ada'"):
        await laurels.export_member(project, member)


async def test_a_person_without_scores_is_exported_and_erased(laurels: Laurels):
    await laurels.put_person("people-alone", "ada", name="Ada")
    assert (await laurels.export_member("people-alone", "ada")).person == Person("ada", "Ada")
    assert (await laurels.erase("people-alone", "ada")).rows == 1
    with pytest.raises(NotFound, match="there is no project people-alone"):
        await laurels.erase("people-alone", "ada")
