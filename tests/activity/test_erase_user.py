"""A student erased: no key and no row names them, and every table answers with the same ranks as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from campus_stage import AUCKLAND, OSLO, user
from sqlalchemy import text

from laurels.activity import valkey_keys
from laurels.activity.store.people import User
from laurels.activity.summary import TableQuery
from laurels.errors import NotFound
from laurels.scores.page_query import PAGE_LIMIT
from laurels.valkey import sets

if TYPE_CHECKING:
    from campus_stage import Stage

ADA = "0b8f0a3c-52a5-4b53-8ab5-3a1c5e1b7c55"
NAME = "Zebedee Quux"
READS: dict[bytes, tuple[Any, ...]] = {
    b"zset": ("ZRANGE", 0, -1),
    b"hash": ("HGETALL",),
    b"set": ("SMEMBERS",),
    b"stream": ("XRANGE", "-", "+"),
    b"string": ("GET",),
    b"list": ("LRANGE", 0, -1),
}


async def everything(stage: Stage) -> list[str]:
    """Every key with what it holds, and every row of every table."""
    found: list[str] = []
    for node in await stage.laurels.valkey._primaries():  # pyright: ignore[reportPrivateUsage]  # every key there is
        for key in await node.execute_command("KEYS", "*"):
            kind = await node.execute_command("TYPE", key)
            command, *rest = READS[kind]
            found.append(f"{key} {await node.execute_command(command, key, *rest)}".lower())
    async with stage.laurels.postgres.reading() as connection:
        tables = await connection.execute(
            text("SELECT quote_ident(schemaname) || '.' || quote_ident(relname) FROM pg_stat_user_tables")
        )
        for table in tables.scalars().all():
            rows = await connection.execute(text(f"SELECT t::text FROM {table} t"))  # noqa: S608  # its own names
            found += [f"{table} {row}".lower() for row in rows.scalars()]
    return found


async def naming(stage: Stage) -> list[str]:
    forms = (ADA, ADA.replace("-", ""), NAME.lower(), ADA.encode().hex())
    return [each[:200] for each in await everything(stage) if any(form in each for form in forms)]


async def tables(stage: Stage) -> dict[tuple[str, str, int], list[tuple[int, float]]]:
    """Ranks and scores of every table of the last three days, after which nothing may have changed."""
    found: dict[tuple[str, str, int], list[tuple[int, float]]] = {}
    for scope in ("overall", "social", "engagement", "popularity"):
        for period in ("daily", "weekly", "monthly"):
            for ymd in (20251024, 20251025, 20251026):
                asked = TableQuery(scope, period, OSLO.id, ymd, deltas=True, limit=PAGE_LIMIT)  # pyright: ignore[reportArgumentType]  # literals
                table = await stage.laurels.activity.reader.table(asked)
                assert table.total == len(table.rows)
                found[scope, period, ymd] = [(row.placed.rank, row.placed.score) for row in table.rows]
    return found


@pytest.fixture
async def lived(stage: Stage) -> Stage:
    """Ada among 30 users: two finalized days, and a third in the middle of it."""
    await stage.open(OSLO, AUCKLAND, users=30)
    await stage.laurels.activity.store.put_users([User(ADA, OSLO.id, NAME)])
    await stage.laurels.put_person("campus", ADA, name=NAME, avatar_url="https://x.org/zebedee-quux.png")
    await stage.laurels.valkey.command("SET", f"user:campus:{ADA}", OSLO.id)
    for day in (24, 25, 26):
        stage.go_to(f"2025-10-{day} 12:00")
        for other in range(1, 20):
            await stage.tell(valkey_keys.CHAT, {"event": "msg:new", "from": ADA, "to": user(other)})
            await stage.tell(valkey_keys.CHAT, {"event": "msg:new", "from": user(other), "to": ADA})
        accepted = {"event": "accepted", "from": ADA, "to": user(1)}
        await stage.tell(valkey_keys.INVITES, accepted)
        ended = {"event": "ended", "a": ADA, "b": user(2), "meta": f'{{"winner": "{ADA}"}}'}
        await stage.tell(valkey_keys.ACTIVITIES, ended)
        await stage.play(3, 4)
        await stage.tell(valkey_keys.CHAT, {"event": "msg:new", "from": user(9999), "to": ADA.upper()})
        await stage.tell(valkey_keys.CHAT, {"event": "msg:new", "from": ADA, "to": "no id"})
        await stage.count()
        if day < 26:
            await stage.end_day(f"2025-10-{day}")
            await stage.laurels.activity.relay.run_once()
    stage.go_to("2025-10-26 13:00")
    return stage


async def test_no_key_and_no_row_names_an_erased_user(lived: Stage):
    assert len(await naming(lived)) > 50
    erased = await lived.laurels.erase("campus", ADA)
    assert await naming(lived) == []
    assert erased.boards == 4
    assert erased.rows > 5
    with pytest.raises(NotFound):
        await lived.laurels.activity.reader.summary(ADA)
    assert (await lived.laurels.activity.reader.streak(ADA)).best == 0


async def test_every_table_answers_with_the_same_ranks(lived: Stage):
    before = await tables(lived)
    assert before["overall", "daily", 20251024][0] != before["overall", "daily", 20251024][1]
    await lived.laurels.erase("campus", ADA)
    assert await tables(lived) == before


async def test_what_comes_after_is_as_if_nobody_had_been_erased(lived: Stage):
    """Days that are finalized again have the same result, and today goes on."""
    await lived.laurels.erase("campus", ADA)
    rows = await lived.everything()
    for ymd in (20251024, 20251025):
        await lived.laurels.activity.finalizer.finalize(OSLO, ymd)
    assert await lived.everything() == rows
    await lived.end_day("2025-10-26")
    (best, second, *_) = await lived.daily(20251026)
    assert best[2] == 1
    assert best[0] not in {ADA, *(user(number) for number in range(31))}  # the random name
    assert second[2] == 2
    assert await naming(lived) == []


async def test_others_keep_who_wrote_to_them(lived: Stage):
    key = lived.laurels.activity.keys.senders(20251026, user(1))
    before = await lived.laurels.valkey.run(sets.cardinality(key))
    await lived.laurels.erase("campus", ADA)
    assert await lived.laurels.valkey.run(sets.cardinality(key)) == before


async def test_a_user_who_waits_for_a_campus_is_erased_too(stage: Stage):
    stage.go_to("2025-10-24 12:00")
    await stage.tell(valkey_keys.CHAT, {"event": "msg:new", "from": ADA, "to": user(7)})
    await stage.count()
    assert len(await naming(stage)) >= 2
    await stage.laurels.put_person("campus", ADA.upper())
    await stage.laurels.put_person("campus", ADA)
    await stage.laurels.erase("campus", ADA)
    await stage.laurels.remove_person("campus", ADA.upper())
    assert await naming(stage) == []
    assert await stage.laurels.activity.accrual.parked() == 1


async def test_an_erased_user_who_comes_back_is_a_new_one(lived: Stage):
    await lived.laurels.erase("campus", ADA)
    lived.go_to("2025-10-26 14:00")
    await lived.laurels.valkey.command("SET", f"user:campus:{ADA}", OSLO.id)
    await lived.tell(valkey_keys.HEARTBEATS, {"user_id": ADA})
    await lived.count()
    summary = await lived.laurels.activity.reader.summary(ADA)
    assert (summary.user.handle, summary.streak.current, summary.badges) == ("", 0, [])
    place = summary.places["overall"]
    assert place
    assert place.score == 0


async def test_erasing_again_finds_nothing(lived: Stage):
    await lived.laurels.erase("campus", ADA)
    again = await lived.laurels.erase("campus", ADA)
    assert (again.boards, again.windows, again.rows) == (0, 0, 0)


async def test_the_application_s_own_table_of_users_is_left_to_it(lived: Stage):
    async with lived.laurels.postgres.writing() as connection:
        await connection.execute(text("ALTER TABLE users ADD COLUMN email text"))
    try:
        await lived.laurels.erase("campus", ADA)
        assert [each for each in await naming(lived) if ".users " not in each] == []
        assert len(await naming(lived)) == 1
    finally:
        async with lived.laurels.postgres.writing() as connection:
            await connection.execute(text("ALTER TABLE users DROP COLUMN email"))


async def test_an_export_has_what_campuses_know(lived: Stage):
    found = await lived.laurels.export_member("campus", ADA)
    assert found.person
    assert found.person.name == NAME
    (about,) = found.users
    assert (about["handle"], about["campus_id"]) == (NAME, OSLO.id)
    (streak,) = found.streaks
    assert (streak["current"], streak["best"]) == (2, 2)
    assert {badge["kind"] for badge in found.badges} == {"daily_top10", "social_butterfly"}
    assert [(day["ymd"], day.get("rank_overall")) for day in found.days] == [
        (20251024, 1), (20251025, 1), (20251026, None)
    ]  # fmt: skip
    assert all(day["dm_sent"] == 19 for day in found.days)
    assert len(found.entries) > 4
    await lived.laurels.erase("campus", ADA)
    with pytest.raises(NotFound):
        await lived.laurels.export_member("campus", ADA)
