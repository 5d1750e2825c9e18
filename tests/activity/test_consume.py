"""From streams to counters, on one node and on a cluster of three primaries."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from accrual_stage import NOON, TODAY, AccrualStage, message
from waiting import eventually

from laurels.activity import consume, valkey_keys
from laurels.activity.consume import Accrual, StreamConsumer
from laurels.activity.counters import Counters
from laurels.activity.dirty_days import DirtyDay
from laurels.activity.store.people import User
from laurels.activity.valkey_keys import shard_of
from laurels.people.records import Place
from laurels.valkey import activity, streams

if TYPE_CHECKING:
    from laurels.valkey.client import Valkey

pytestmark = pytest.mark.usefixtures("quick_workers")

DEADLINE_SECONDS = 20


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers expire sooner."""
    for name, seconds in {
        "ATTEND_SECONDS": 0.05,
        "ABSENT_SECONDS": 0.5,
        "RETRY_SECONDS": 0.02,
        "PARKED_SECONDS": 0.05,
    }.items():
        monkeypatch.setattr(consume, name, seconds)


async def test_an_accepted_invitation_counts_for_both_users(accruing: AccrualStage):
    ada, bob = await accruing.users(2)
    for _ in range(2):
        await accruing.add(valkey_keys.INVITES, {"event": "accepted", "from": ada, "to": bob})
    await accruing.add(valkey_keys.INVITES, {"event": "sent", "from": bob, "to": ada})
    assert await accruing.accrual.run_once() == 3
    assert await accruing.day(ada) == {"invites_accepted": "2", "touched": "1"}
    assert await accruing.day(bob) == {"uniq_invite_accept_from": "1", "touched": "1"}
    assert await accruing.members(accruing.keys.accepts(TODAY, bob)) == {ada}


async def test_a_message_counts_for_its_writer_and_the_writer_for_its_reader(accruing: AccrualStage):
    ada, bob, eve = await accruing.users(3)
    await accruing.add(valkey_keys.CHAT, message(ada, bob))
    await accruing.add(valkey_keys.CHAT, message(ada, bob))
    await accruing.add(valkey_keys.CHAT, message(eve, bob))
    await accruing.add(valkey_keys.ROOMCHAT, {"event": "msg:new", "room_id": "r", "user_id": ada})
    await accruing.accrual.run_once()
    assert await accruing.day(ada) == {"dm_sent": "2", "room_sent": "1", "touched": "1"}
    assert await accruing.day(bob) == {"uniq_senders": "2", "touched": "1"}
    assert await accruing.members(accruing.keys.senders(TODAY, bob)) == {ada, eve}


async def test_friendships_rooms_and_games_count(accruing: AccrualStage):
    ada, bob = await accruing.users(2)
    await accruing.add(valkey_keys.FRIENDSHIPS, {"event": "accepted", "user_a": ada, "user_b": bob})
    for event in ("created", "join", "join", "leave"):
        await accruing.add(valkey_keys.ROOMS, {"event": event, "user_id": ada, "room_id": "r"})
    await accruing.add(valkey_keys.ACTIVITIES, {"event": "ended", "a": ada, "b": bob, "winner": bob})
    await accruing.add(valkey_keys.ACTIVITIES, {"event": "ended", "a": bob, "b": ada})
    await accruing.accrual.run_once()
    of_ada = {"friends_new": "1", "rooms_created": "1", "rooms_joined": "2", "acts_played": "2"}
    assert await accruing.day(ada) == {**of_ada, "touched": "1"}
    assert await accruing.day(bob) == {
        "friends_new": "1",
        "acts_played": "2",
        "acts_won": "1",
        "touched": "1",
    }


async def test_a_heartbeat_touches_and_counts_nothing(accruing: AccrualStage):
    (ada,) = await accruing.users(1)
    await accruing.add(valkey_keys.HEARTBEATS, {"user_id": ada})
    await accruing.accrual.run_once()
    assert await accruing.day(ada) == {"touched": "1"}


@pytest.mark.parametrize("accruing", ["node"], indirect=True)
async def test_the_names_on_one_node_are_those_of_the_document(accruing: AccrualStage):
    campus = await accruing.campus()
    ada, bob = await accruing.users(2, campus)
    await accruing.add(valkey_keys.CHAT, message(ada, bob))
    await accruing.add(valkey_keys.INVITES, {"event": "accepted", "from": ada, "to": bob})
    await accruing.accrual.run_once()
    found = {key.decode() for key in await accruing.valkey.command("KEYS", "*")}
    of_shards = {key for key in found if key.startswith(("lb:cursors:", "lb:changed:"))}
    assert found - of_shards == {
        f"lb:day:{TODAY}:user:{ada}",
        f"lb:day:{TODAY}:user:{bob}",
        f"lb:day:{TODAY}:uniq_senders:{bob}",
        f"lb:day:{TODAY}:uniq_accept_from:{bob}",
        f"lb:day:{TODAY}:seconds:{ada}",
        *(f"lb:day:{TODAY}:campus:{campus}:users:{shard_of(user)}" for user in (ada, bob)),
        f"user:campus:{ada}",
        f"user:campus:{bob}",
        valkey_keys.CHAT,
        valkey_keys.INVITES,
    }
    assert await accruing.valkey.command("HGET", f"lb:day:{TODAY}:user:{ada}", "campus") == campus.encode()


async def test_counters_and_sets_expire_48_hours_after_the_end_of_the_day(accruing: AccrualStage):
    ada, bob = await accruing.users(2, await accruing.campus("America/New_York"))
    await accruing.add(valkey_keys.CHAT, message(ada, bob))
    await accruing.add(valkey_keys.INVITES, {"event": "accepted", "from": ada, "to": bob})
    await accruing.accrual.run_once()
    # Noon by UTC is 08:00 there.
    seconds = (16 + 48) * 3600
    for key in (
        accruing.keys.counters(TODAY, ada),
        accruing.keys.seconds(TODAY, ada),
        accruing.keys.senders(TODAY, bob),
        accruing.keys.accepts(TODAY, bob),
    ):
        assert seconds - 30 <= await accruing.valkey.command("TTL", key) <= seconds


async def test_the_day_is_the_events_own_in_the_zone_of_each_users_campus(accruing: AccrualStage):
    (far,) = await accruing.users(1, await accruing.campus("Pacific/Auckland"))
    (near,) = await accruing.users(1, await accruing.campus("Pacific/Honolulu"))
    # 23:30 of the 23rd in Honolulu, 22:30 of the 24th in Auckland.
    await accruing.add(valkey_keys.CHAT, message(far, near), datetime(2025, 10, 24, 9, 30, tzinfo=UTC))
    await accruing.accrual.run_once()
    assert await accruing.day(far, 20251024) == {"dm_sent": "1", "room_sent": "0", "touched": "1"}
    assert await accruing.day(near, 20251023) == {"uniq_senders": "1", "touched": "1"}
    assert await accruing.day(near, 20251024) == {}


async def test_a_day_stays_with_the_campus_that_touched_it_first(accruing: AccrualStage):
    old, new = await accruing.campus(), await accruing.campus()
    (ada,) = await accruing.users(1, old)
    await accruing.add(valkey_keys.HEARTBEATS, {"user_id": ada})
    await accruing.accrual.run_once()
    await accruing.valkey.command("SET", accruing.keys.campus_of(ada), new)
    accruing.clock.advance(timedelta(days=1))
    await accruing.add(valkey_keys.ROOMS, {"event": "join", "user_id": ada})
    await accruing.add(valkey_keys.ROOMS, {"event": "join", "user_id": ada}, NOON + timedelta(days=1))
    await accruing.accrual.run_once()
    held = await accruing.marks.held([(TODAY, ada), (TODAY + 1, ada)])
    joined = Counters(rooms_joined=1, touched=1)
    assert [tuple(each) for each in held] == [(old, joined), (new, joined)]
    shard = shard_of(ada)
    assert await accruing.members(accruing.keys.campus_users(shard, TODAY, old)) == {ada}
    assert await accruing.members(accruing.keys.campus_users(shard, TODAY, new)) == set()
    assert await accruing.members(accruing.keys.campus_users(shard, TODAY + 1, new)) == {ada}


async def test_effects_are_parked_until_the_campus_is_known(accruing: AccrualStage):
    (bob,) = await accruing.users(1)
    ada = str(uuid4())
    for _ in range(3):
        await accruing.add(valkey_keys.CHAT, message(ada, bob))
    await accruing.add(valkey_keys.ACTIVITIES, {"event": "ended", "a": ada, "b": bob, "winner": ada})
    await accruing.accrual.run_once()
    assert (await accruing.accrual.parked(), await accruing.day(ada)) == (1, {})
    assert await accruing.day(bob) == {"uniq_senders": "1", "acts_played": "1", "touched": "1"}
    campus = await accruing.campus()
    await accruing.laurels.activity.store.put_users([User(ada, campus)])
    await asyncio.gather(*(accruing.accrual.release() for _ in range(3)))
    counted = {"dm_sent": "3", "room_sent": "0", "acts_played": "1", "acts_won": "1", "touched": "1"}
    assert (await accruing.accrual.parked(), await accruing.day(ada)) == (0, counted)


async def test_parked_effects_are_released_once(accruing: AccrualStage, monkeypatch: pytest.MonkeyPatch):
    ada, campus = str(uuid4()), await accruing.campus()
    await accruing.add(valkey_keys.ROOMS, {"event": "join", "user_id": ada})
    await accruing.accrual.run_once()
    await accruing.laurels.activity.store.put_users([User(ada, campus)])
    once = activity.release

    async def twice(valkey: Valkey, call: activity.ActivityCall) -> bool:
        assert await once(valkey, call)
        return await once(valkey, call)

    monkeypatch.setattr(activity, "release", twice)
    await accruing.accrual.release()
    assert (await accruing.day(ada))["rooms_joined"] == "1"


async def test_an_unknown_campus_counts_and_becomes_a_place(accruing: AccrualStage):
    (ada,), campus = await accruing.users(1), str(uuid4())
    await accruing.valkey.command("SET", accruing.keys.campus_of(ada), campus)
    await accruing.add(valkey_keys.HEARTBEATS, {"user_id": ada})
    await accruing.accrual.run_once()
    assert (await accruing.accrual.parked(), await accruing.day(ada)) == (0, {"touched": "1"})
    assert await accruing.laurels.place("campus", campus) == Place(campus)


async def test_an_event_whose_day_has_expired_is_counted_as_late_and_changes_nothing(accruing: AccrualStage):
    (ada,) = await accruing.users(1)
    midnight = datetime(2025, 10, 24, tzinfo=UTC)
    accruing.clock.now += 36 * 3600 * 10**6  # two days after the end of the 23rd
    await accruing.add(valkey_keys.HEARTBEATS, {"user_id": ada}, midnight - timedelta(milliseconds=1))
    await accruing.add(valkey_keys.HEARTBEATS, {"user_id": ada}, midnight)
    await accruing.accrual.run_once()
    assert (await accruing.day(ada, 20251023), await accruing.day(ada)) == ({}, {"touched": "1"})
    lags = await accruing.accrual.lags()
    assert {stream: lag.late for stream, lag in lags.items() if lag.late} == {valkey_keys.HEARTBEATS: 1}


async def test_a_bad_event_becomes_a_dead_letter_and_stops_no_other(accruing: AccrualStage):
    ada, bob = await accruing.users(2)
    await accruing.add(valkey_keys.CHAT, message(ada, bob))
    bad = await accruing.add(valkey_keys.CHAT, {"event": "msg:new", "from": "ada", "to": bob})
    await accruing.add(valkey_keys.CHAT, message(ada, bob))
    await asyncio.gather(*(StreamConsumer(accruing.accrual, valkey_keys.CHAT).step() for _ in range(3)))
    assert (await accruing.day(ada))["dm_sent"] == "2"
    ((_, fields),) = await accruing.valkey.run(streams.entries(valkey_keys.DEAD, count=10))
    dead = {name.decode(): value.decode() for name, value in fields.items()}
    assert dead.pop("payload") == f'{{"at":"{NOON.isoformat()}","event":"msg:new","from":"ada","to":"{bob}"}}'
    assert dead == {"stream": valkey_keys.CHAT, "id": bad, "reason": "from: is not a UUID"}


async def test_a_burst_does_not_count_and_the_rest_does(accruing: AccrualStage):
    ada, bob = await accruing.users(2)
    for second in range(13):
        for count in range(6 if second < 11 else 1):
            stream, fields = (
                (valkey_keys.CHAT, message(ada, bob))
                if count % 2
                else (valkey_keys.ROOMCHAT, {"event": "msg:new", "user_id": ada})
            )
            await accruing.add(stream, fields, NOON + timedelta(seconds=second - 20, milliseconds=count))
    await accruing.accrual.run_once()
    start = int(NOON.timestamp()) - 20
    assert await accruing.day(ada) == {
        "dm_sent": "0",
        "room_sent": "2",
        "touched": "1",
        "muted_for_lb": f"{start}-{start + 10}",
    }
    assert await accruing.day(bob) == {"uniq_senders": "1", "touched": "1"}


class Paused(StreamConsumer):
    """Reads a batch and then waits."""

    def __init__(self, accrual: Accrual, stream: str) -> None:
        super().__init__(accrual, stream)
        self.has_read, self.go_on = asyncio.Event(), asyncio.Event()

    async def _apply(self, batch: Any, cursors: list[str]) -> None:  # noqa: ANN401  # whatever it is
        self.has_read.set()
        await self.go_on.wait()
        await super()._apply(batch, cursors)


async def test_a_worker_that_wakes_late_counts_nothing_twice(
    accruing: AccrualStage, monkeypatch: pytest.MonkeyPatch
):
    users = await accruing.users(40)
    for writer, reader in pairwise(users):
        await accruing.add(valkey_keys.CHAT, message(writer, reader))
    late = Paused(accruing.accrual, valkey_keys.CHAT)
    stepping = asyncio.create_task(late.step())
    await late.has_read.wait()
    monkeypatch.setattr(consume, "ENTRIES_TOGETHER", 10)
    for _ in range(2):
        await StreamConsumer(accruing.accrual, valkey_keys.CHAT).step()
    late.go_on.set()
    assert await stepping == 39
    assert await accruing.lag(valkey_keys.CHAT) == 19  # what it found done it does not tell as its own
    assert await accruing.accrual.run_once() == 19
    held = await accruing.marks.held([(TODAY, user) for user in users])
    assert [each.counters.dm_sent for each in held] == [1] * 39 + [0]
    assert [each.counters.uniq_senders for each in held] == [0] + [1] * 39
    assert await accruing.lag(valkey_keys.CHAT) == 0


async def test_a_worker_that_dies_between_two_shards_is_taken_over(
    accruing: AccrualStage, monkeypatch: pytest.MonkeyPatch
):
    users = await accruing.users(40)
    for writer, reader in pairwise(users):
        await accruing.add(valkey_keys.CHAT, message(writer, reader))
    whole = activity.accrue

    async def half(valkey: Valkey, calls: list[activity.ActivityCall]) -> list[str | None]:
        await whole(valkey, calls[::2])
        raise asyncio.CancelledError

    monkeypatch.setattr(activity, "accrue", half)
    with pytest.raises(asyncio.CancelledError):
        await StreamConsumer(accruing.accrual, valkey_keys.CHAT).step()
    monkeypatch.undo()
    assert await accruing.lag(valkey_keys.CHAT) == 39
    assert await accruing.accrual.run_once() == 39
    held = await accruing.marks.held([(TODAY, user) for user in users])
    assert [each.counters.dm_sent for each in held] == [1] * 39 + [0]
    assert [each.counters.uniq_senders for each in held] == [0] + [1] * 39


async def test_many_workers_on_the_same_stream_count_once(
    accruing: AccrualStage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(consume, "ENTRIES_TOGETHER", 7)
    ada, bob = await accruing.users(2)
    for _ in range(60):
        await accruing.add(valkey_keys.INVITES, {"event": "accepted", "from": ada, "to": bob})
    others = [Accrual(accruing.valkey, accruing.laurels.activity.campuses, accruing.clock) for _ in range(4)]
    await asyncio.gather(*(other.run_once() for other in others))
    assert (await accruing.day(ada))["invites_accepted"] == "60"
    lag = (await accruing.accrual.lags())[valkey_keys.INVITES]
    assert (lag.applied, lag.waiting, lag.seconds) == (60, 0, 0)


async def test_the_lag_is_the_age_of_the_oldest_entry_that_waits(accruing: AccrualStage):
    (ada,) = await accruing.users(1)
    id_ = await accruing.add(valkey_keys.HEARTBEATS, {"user_id": ada})
    accruing.clock.now = (int(id_.partition("-")[0]) + 2500) * 1000
    lag = (await accruing.accrual.lags())[valkey_keys.HEARTBEATS]
    assert (lag.applied, lag.waiting, lag.seconds) == (0, 1, 2.5)


async def test_a_change_is_marked_until_it_is_settled(accruing: AccrualStage):
    (ada,) = await accruing.users(1)
    marks, shard = accruing.marks, shard_of(ada)
    await accruing.add(valkey_keys.ROOMS, {"event": "join", "user_id": ada})
    await accruing.accrual.run_once()
    first = await marks.changed(shard, 10)
    assert first == [DirtyDay(TODAY, ada, 1)]
    await accruing.add(valkey_keys.ROOMS, {"event": "join", "user_id": ada})
    await accruing.accrual.run_once()
    assert await marks.settle(shard, first) == 0
    second = await marks.changed(shard, 10)
    assert second == [DirtyDay(TODAY, ada, 2)]
    assert await marks.settle(shard, second) == 1
    await accruing.add(valkey_keys.HEARTBEATS, {"user_id": ada})  # which changes nothing
    await accruing.accrual.run_once()
    assert await marks.changed(shard, 10) == []


async def test_each_user_who_wrote_or_accepted_is_one_peer(accruing: AccrualStage):
    ada, bob, eve, joe = await accruing.users(4)
    for writer in (bob, eve):
        await accruing.add(valkey_keys.CHAT, message(writer, ada))
    for guest in (eve, joe):
        await accruing.add(valkey_keys.INVITES, {"event": "accepted", "from": guest, "to": ada})
    await accruing.accrual.run_once()
    assert await accruing.marks.peers([(TODAY, ada), (TODAY, bob)]) == [3, 0]


async def test_workers_share_the_streams_and_take_over_from_one_that_is_gone(accruing: AccrualStage):
    (ada,) = await accruing.users(1)
    workers = [Accrual(accruing.valkey, accruing.laurels.activity.campuses, accruing.clock) for _ in range(2)]
    tasks = [asyncio.create_task(worker.run()) for worker in workers]

    async def is_shared() -> bool:
        shares = [worker.share for worker in workers]
        return sorted(map(len, shares)) == [3, 4] and not shares[0] & shares[1]

    await eventually(is_shared)
    for _ in range(2):
        for stream in (valkey_keys.HEARTBEATS, valkey_keys.ROOMS):
            await accruing.add(stream, {"event": "join", "user_id": ada})

        async def is_applied() -> bool:
            lags = await accruing.accrual.lags()
            return not any(lag.waiting for lag in lags.values())

        await eventually(is_applied)
        tasks[0].cancel()  # then the other has it all
        await asyncio.wait(tasks[:1])
    assert (await accruing.day(ada))["rooms_joined"] == "2"

    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert await accruing.valkey.command("ZCARD", valkey_keys.WORKERS) == 0


async def test_streams_of_a_dead_worker_are_taken_over(accruing: AccrualStage):
    await accruing.valkey.command("ZADD", valkey_keys.WORKERS, 1, "somebody else")
    worker = Accrual(accruing.valkey, accruing.laurels.activity.campuses, accruing.clock)
    task = asyncio.create_task(worker.run())

    async def has_all() -> bool:
        return worker.share == frozenset(valkey_keys.STREAMS)

    await eventually(has_all)
    task.cancel()
    await asyncio.wait([task])
