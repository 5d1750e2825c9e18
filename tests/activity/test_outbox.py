from __future__ import annotations

import asyncio

import msgspec
import pytest
from campus_stage import OSLO, Stage, user

from laurels.activity.outbox import STREAM
from laurels.errors import LaurelsError
from laurels.valkey.streams import stream_entries

Entry = tuple[str, dict[str, str]]


async def told(stage: Stage) -> list[Entry]:
    listed = stream_entries(await stage.laurels.valkey.command("XRANGE", STREAM, "-", "+"))
    return [
        (name.decode(), {key.decode(): value.decode() for key, value in fields.items()})
        for name, fields in listed
    ]


async def finalized(stage: Stage) -> None:
    await stage.open(OSLO)
    stage.go_to("2025-10-24 12:00")
    await stage.play(1, 2)
    await stage.end_day("2025-10-24")


async def test_changes_of_a_day_are_published_in_order(stage: Stage):
    await finalized(stage)
    await stage.laurels.activity.relay.run_once()
    entries = await told(stage)
    assert [name for name, _ in entries] == [f"{number}-0" for number in range(1, len(entries) + 1)]
    of_the_day = [fields for _, fields in entries if fields.get("ymd", "20251024") == "20251024"]
    assert [fields["event"] for fields in of_the_day] == [
        "day:finalized", "streak:changed", "streak:changed", "badge:awarded", "badge:awarded",
    ]  # fmt: skip
    day = {"ymd": "20251024", "campus_id": OSLO.id}
    assert of_the_day[0] == {"event": "day:finalized", **day, "revision": "1", "policy": "1", "active": "2"}
    streak = {"user_id": user(1), "current": "1", "best": "1", "last_active_ymd": "20251024"}
    assert of_the_day[1] == {"event": "streak:changed", **day, **streak}
    assert msgspec.json.decode(of_the_day[3]["meta"]) == {"campus_id": OSLO.id, "rank": 1, "score": 5.0}


async def test_published_events_are_not_sent_again(stage: Stage):
    await finalized(stage)
    sent = await stage.laurels.activity.relay.run_once()
    before = await told(stage)
    assert sent == len(before)
    assert await stage.laurels.activity.relay.run_once() == 0
    await stage.laurels.activity.finalizer.finalize(OSLO, 20251024)
    assert await stage.laurels.activity.relay.run_once() == 0
    assert await told(stage) == before


async def test_two_relays_at_once_publish_each_event_once(stage: Stage):
    await finalized(stage)
    await asyncio.gather(*(stage.laurels.activity.relay.run_once() for _ in range(4)))
    count = await stage.rows("SELECT count(*) FROM laurels.lb_outbox")
    assert [name for name, _ in await told(stage)] == [f"{number}-0" for number in range(1, count[0][0] + 1)]


async def test_a_lost_stream_gets_its_events_again(stage: Stage):
    await finalized(stage)
    await stage.laurels.activity.relay.run_once()
    before = await told(stage)
    await stage.laurels.valkey.command("DEL", STREAM)
    assert await stage.laurels.activity.relay.run_once() == len(before)
    assert await told(stage) == before


async def test_numbers_go_on_after_old_rows_are_forgotten(stage: Stage):
    await finalized(stage)
    sent = await stage.laurels.activity.relay.run_once()
    async with stage.laurels.postgres.writing() as connection:
        await connection.exec_driver_sql("UPDATE laurels.lb_outbox SET created_at = 'epoch'")
    assert await stage.laurels.activity.relay.forget() == sent - 1
    stage.go_to("2025-10-25 12:00")
    await stage.play(1, 2)
    await stage.end_day("2025-10-25")
    await stage.laurels.activity.relay.run_once()
    assert (await told(stage))[sent][0] == f"{sent + 1}-0"


async def test_entries_of_another_program_are_an_error(stage: Stage):
    await finalized(stage)
    await stage.laurels.valkey.command("XADD", STREAM, "*", "event", "mine")
    with pytest.raises(LaurelsError, match="another program writes to it"):
        await stage.laurels.activity.relay.run_once()
