"""A campus that is set up by `SET user:campus:USER CAMPUS` and events alone, and by people and places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from campus_stage import AUCKLAND, OSLO, user

from laurels.activity.store.people import Campus, User
from laurels.activity.summary import TableQuery
from laurels.errors import NotFound
from laurels.people.records import Place
from laurels.scores.results import ShownPerson

if TYPE_CHECKING:
    from campus_stage import Stage

CAMPUS = "campus"
NOON = "2025-10-24 12:00"


async def set_campus(stage: Stage, number: int, campus: str) -> None:
    """As the application does when a profile changes."""
    await stage.laurels.valkey.command("SET", f"user:campus:{user(number)}", campus)


async def ranked(stage: Stage) -> list[tuple[int, str]]:
    table = await stage.laurels.activity.reader.table(TableQuery("overall", "daily", OSLO.id))
    return [(row.placed.rank, row.user.handle if row.user else "") for row in table.rows]


async def test_keys_and_events_are_all_that_a_campus_needs(stage: Stage):
    stage.go_to(NOON)
    await set_campus(stage, 1, OSLO.id.upper())
    await set_campus(stage, 2, OSLO.id)
    await stage.play(1, 2)
    await stage.count()
    reader = stage.laurels.activity.reader
    assert await ranked(stage) == [(1, ""), (2, "")]
    assert await reader.campuses() == [(Campus(OSLO.id, OSLO.id, "UTC"), 20251024)]
    summary = await reader.summary(user(1))
    assert (summary.campus.timezone, summary.ymd) == ("UTC", 20251024)
    place = summary.places["overall"]
    assert place
    assert (place.rank, place.score) == (1, 5.0)


async def test_a_campus_that_came_by_itself_is_named_later(stage: Stage):
    stage.go_to(NOON)
    await set_campus(stage, 1, OSLO.id)
    await set_campus(stage, 2, OSLO.id)
    await stage.play(1, 2)
    await stage.count()
    assert await stage.laurels.place(CAMPUS, OSLO.id) == Place(OSLO.id)
    await stage.laurels.put_place(CAMPUS, OSLO.id, name="Oslo", timezone="Europe/Oslo")
    await stage.laurels.put_person(CAMPUS, user(1), name="Ada", avatar_url="https://x.org/a.png")
    assert await stage.laurels.activity.reader.campuses() == [(OSLO, 20251024)]
    table = await stage.laurels.activity.reader.table(TableQuery("overall", "daily", OSLO.id))
    assert table.campus == OSLO
    assert await ranked(stage) == [(1, "Ada"), (2, "")]
    stage.campus = OSLO
    await stage.end_day("2025-10-24")
    assert [rank for *_, rank in await stage.daily(20251024)] == [1, 2]


async def test_the_default_timezone_begins_the_days_of_an_unknown_campus(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stage.laurels.activity.people, "_default_timezone", "Pacific/Auckland")
    stage.go_to(NOON)  # in Oslo; a day later in Auckland by then is the same date until 13:00
    await set_campus(stage, 1, OSLO.id)
    assert (await stage.laurels.activity.reader.summary(user(1))).ymd == 20251024
    stage.go_to("2025-10-24 13:30")
    assert (await stage.laurels.activity.reader.summary(user(1))).ymd == 20251025


async def test_a_campus_is_found_by_key_then_by_the_users_then_by_people(stage: Stage):
    stage.go_to(NOON)
    await stage.open(OSLO, AUCKLAND, users=0)
    third = user(9100)
    await stage.laurels.put_place(CAMPUS, third, name="Third")
    await stage.laurels.put_person(CAMPUS, user(1), place=third)
    reader = stage.laurels.activity.reader
    assert (await reader.summary(user(1))).campus.name == "Third"
    await stage.laurels.valkey.command("DEL", f"user:campus:{user(1)}")
    await stage.laurels.activity.store.put_users([User(user(1), AUCKLAND.id)])
    assert (await reader.summary(user(1))).campus == AUCKLAND
    await set_campus(stage, 1, OSLO.id)
    assert (await reader.summary(user(1))).campus == OSLO


async def test_a_users_row_without_a_handle_has_the_name_of_its_person(stage: Stage):
    stage.go_to(NOON)
    await stage.open(OSLO, users=2)
    await stage.laurels.activity.store.put_users([User(user(1), OSLO.id, "")])
    await stage.laurels.put_person(CAMPUS, user(1), name="Ada")
    await stage.laurels.put_person(CAMPUS, user(2), name="not shown")
    await stage.play(1, 2)
    await stage.count()
    assert await ranked(stage) == [(1, "Ada"), (2, "user-2")]


@pytest.mark.parametrize("campus", ["", "oslo", "7a7cbb2e", "x" * 300])
async def test_a_key_that_names_no_campus_is_as_none(stage: Stage, campus: str):
    stage.go_to(NOON)
    await set_campus(stage, 1, campus)
    with pytest.raises(NotFound, match="belongs to no campus"):
        await stage.laurels.activity.reader.summary(user(1))
    await stage.open(OSLO, users=1)
    assert (await stage.laurels.activity.reader.summary(user(1))).campus == OSLO


async def test_boards_of_campuses_show_handles_and_names(stage: Stage):
    stage.go_to(NOON)
    await stage.open(OSLO, users=2)
    await stage.laurels.activity.store.put_users([User(user(1), OSLO.id, "ada", "https://x.org/a.png")])
    await set_campus(stage, 3, OSLO.id)
    await stage.laurels.put_person(CAMPUS, user(3), name="Eve")
    await stage.play(1, 2)
    await stage.play(1, 3)
    await stage.count()
    page = await stage.laurels.page(f"campus/overall.{OSLO.id}", people=True)
    assert {entry.member: entry.person for entry in page.entries} == {
        user(1): ShownPerson("ada", "https://x.org/a.png"),
        user(2): ShownPerson("user-2", None),
        user(3): ShownPerson("Eve", None),
    }
