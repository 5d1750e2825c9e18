"""A member erased: no store has its name, and everybody else's rank is as it was."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from sqlalchemy import text

from laurels.boards.keys import BoardRef
from laurels.errors import NotFound
from laurels.moments import datetime_of

if TYPE_CHECKING:
    from laurels.clock import FixedClock
    from laurels.engine import Laurels

NAME = 'ada-7f3a \x00 "é'
BOARD = "privacy/board"
DUELS = "privacy/duels"
DEFINITION: dict[str, Any] = {
    "windows": [{"period": "daily", "keep": 5}, {"period": "all_time"}, {"period": "rolling", "days": 2}],
    "groups": [["country"]],
    "archive": {"snapshot": [{"period": "daily"}]},
}


async def everything_in_valkey(laurels: Laurels) -> list[bytes]:
    """Every key of the project, with what it holds."""
    found: list[bytes] = []
    for node in await laurels.valkey._primaries():  # pyright: ignore[reportPrivateUsage]  # every key there is
        for key in await node.execute_command("KEYS", "*privacy*"):
            found += [key, await node.execute_command("DUMP", key)]
            kind = await node.execute_command("TYPE", key)
            reads: dict[bytes, tuple[Any, ...]] = {
                b"zset": ("ZRANGE", key, 0, -1),
                b"hash": ("HGETALL", key),
                b"set": ("SMEMBERS", key),
                b"stream": ("XRANGE", key, "-", "+"),
                b"string": ("GET", key),
            }
            found.append(repr(await node.execute_command(*reads[kind])).encode())
    return found


async def everything_in_postgres(laurels: Laurels) -> list[bytes]:
    """Every row of every table."""
    found: list[bytes] = []
    async with laurels.postgres.reading() as connection:
        tables = await connection.execute(
            text("SELECT quote_ident(schemaname) || '.' || quote_ident(relname) FROM pg_stat_user_tables")
        )
        for table in tables.scalars().all():
            rows = await connection.execute(text(f"SELECT * FROM {table}"))  # noqa: S608  # its own names
            found += [repr(tuple(row)).encode() for row in rows]
    return found


def is_in(name: str, found: list[bytes]) -> bool:
    encoded = name.encode()
    forms = (encoded, repr(encoded)[2:-1].encode(), msgspec.json.encode(name)[1:-1], encoded.hex().encode())
    return any(form in each for each in found for form in forms)


async def play(laurels: Laurels, clock: FixedClock) -> None:
    await laurels.define(BOARD, DEFINITION)
    for day in range(3):
        for number, member in enumerate((NAME, "bob", "eve", "joe")):
            await laurels.submit(
                BOARD,
                member,
                10 * (number + 1) if day else 50 - number,
                groups={"country": "GB"},
                id=f"{member}/{day}",
                metadata={"who": member},
            )
        clock.advance(timedelta(days=1))
    await laurels.submit(BOARD, NAME, 500, metadata={"who": NAME})
    await laurels.submit(BOARD, "bob", 30)
    project, name = BOARD.split("/")
    stored = await laurels.store.get(project, name)
    assert stored is not None
    await laurels.snapshot_taker.take_of(BoardRef.parse(BOARD), stored.id)


async def ended(laurels: Laurels) -> list[Any]:
    """Ranks, scores and totals of the windows that ended, without names."""
    seen: list[Any] = []
    for window in await laurels.windows(BOARD, period="daily"):
        if window.ends_at is None or window.ends_at <= datetime_of(laurels.clock()):
            page = await laurels.page(BOARD, period="daily", slot=window.slot)
            seen.append((window.slot, page.total, [(entry.rank, entry.score) for entry in page.entries]))
    for info in (await laurels.snapshots(BOARD)).snapshots:
        snapshot = await laurels.snapshot(BOARD, info.id)
        seen.append((info.slot, info.total, [(entry.rank, entry.score) for entry in snapshot.entries]))
    return seen


async def test_no_store_has_the_name_any_more(alone: Laurels, clock: FixedClock):
    await play(alone, clock)
    key = (await alone.drain.journal_streams.of_board(BoardRef.parse(BOARD)))[0].dead_letters
    await alone.valkey.command("XADD", key, "1-1", "body", NAME, "why", "a test")
    assert is_in(NAME, await everything_in_valkey(alone))
    await alone.archived(BOARD)
    assert is_in(NAME, await everything_in_postgres(alone))
    erased = await alone.erase("privacy", NAME)
    assert (erased.boards, erased.windows > 5, erased.rows > 5) == (1, True, True)
    assert not is_in(NAME, await everything_in_valkey(alone))
    assert not is_in(NAME, await everything_in_postgres(alone))
    await alone.drop(BOARD, allow_drop="all")


async def duel(laurels: Laurels, clock: FixedClock) -> None:
    """Matches whose ids and metadata, which are all of their players', name who played; and a note on it."""
    await laurels.define(
        DUELS,
        {
            "windows": [{"period": "daily", "keep": 5}, {"period": "all_time"}],
            "rating": {"system": "elo"},
            "dense": True,
            "archive": {"snapshot": [{"period": "daily"}]},
        },
    )
    for day in range(3):
        for left, right in ((NAME, "bob"), ("bob", "eve"), ("eve", NAME), ("joe", NAME), ("joe", "bob")):
            await laurels.match(
                DUELS,
                [left, right],
                left if day else None,
                id=f"{day}_{left}_{right}",
                metadata={"title": f"{left} against {right}", "beat": {right: [left]}, "map": "adamant"},
            )
            clock.advance(timedelta(minutes=1))
        clock.advance(timedelta(days=1 if day < 2 else 0))
    ref = BoardRef.parse(DUELS)
    stored = await laurels.store.get(ref.project, ref.board)
    assert stored is not None
    await laurels.snapshot_taker.take_of(ref, stored.id)


async def pages(laurels: Laurels, board: str) -> list[Any]:
    """Every window, with metadata."""
    return [
        (window.period, window.slot, page.total, page.entries)
        for window in await laurels.windows(board)
        for page in [await laurels.page(board, period=window.period, slot=window.slot or None)]
    ]


async def test_no_store_keeps_the_name_of_an_erased_match_player(alone: Laurels, clock: FixedClock):
    await duel(alone, clock)
    await alone.archived(DUELS)
    assert is_in(NAME, await everything_in_valkey(alone))
    assert is_in(NAME, await everything_in_postgres(alone))
    before = await pages(alone, DUELS)
    await alone.erase("privacy", NAME)
    assert not is_in(NAME, await everything_in_valkey(alone))
    assert not is_in(NAME, await everything_in_postgres(alone))
    after = await pages(alone, DUELS)
    assert [(slot, total) for period, slot, total, _ in after if period == "daily"][1:] == [
        (slot, total) for period, slot, total, _ in before if period == "daily"
    ][1:]
    kept = [entry.metadata for *_, entries in after for entry in entries if entry.metadata]
    assert {"title": "joe against bob", "beat": {"bob": ["joe"]}, "map": "adamant"} in kept
    assert (await alone.verify(DUELS)).differences == []
    for node in await alone.valkey._primaries():  # pyright: ignore[reportPrivateUsage]  # every key there is
        for key in await node.execute_command("KEYS", "*privacy*"):
            await node.execute_command("DEL", key)
    await alone.rebuild(DUELS)
    assert await pages(alone, DUELS) == after
    assert not is_in(NAME, await everything_in_valkey(alone))
    await alone.drop(DUELS, allow_drop="all")


async def test_a_match_is_not_played_again_because_one_of_its_players_was_erased(
    alone: Laurels, clock: FixedClock
):
    await alone.define(DUELS, {"rating": {"system": "elo"}})
    await alone.match(DUELS, [NAME, "bob"], "bob", id="final")
    await alone.erase("privacy", NAME)
    clock.advance(timedelta(minutes=1))
    assert not (await alone.match(DUELS, [NAME, "bob"], "bob", id="final")).applied
    await alone.drop(DUELS, allow_drop="all")


@pytest.mark.parametrize("archive", [{"journal": True}, {"journal": False}])
async def test_no_store_keeps_the_name_of_an_erased_member_with_keys_and_ids(
    alone: Laurels, clock: FixedClock, archive: dict[str, bool]
):
    await alone.define(BOARD, {"archive": archive})
    ref = BoardRef.parse(BOARD)
    for day in range(2):
        async with alone.idempotency_keys.claim(ref, f"key-{day}", "what it is") as claim:
            await alone.submit(BOARD, NAME, 5, id=f"{NAME}.{day}")
            claim.answer = msgspec.json.encode({"member": NAME, "score": 5})
        async with alone.idempotency_keys.claim(ref, f"other-{day}", "what it is") as claim:
            await alone.submit(BOARD, "bob", 5, id=f"bob.{day}")
            claim.answer = msgspec.json.encode({"member": "bob", "score": 5})
        clock.advance(timedelta(days=1 - day))
    assert is_in(NAME, await everything_in_valkey(alone))
    await alone.erase("privacy", NAME)
    assert not is_in(NAME, await everything_in_valkey(alone))
    assert not is_in(NAME, await everything_in_postgres(alone))
    async with alone.idempotency_keys.claim(ref, "other-1", "what it is") as claim:
        assert claim.is_done, "others' answers stay"
    await alone.drop(BOARD, allow_drop="all")


async def test_ended_windows_keep_ranks_and_current_windows_forget(alone: Laurels, clock: FixedClock):
    await play(alone, clock)
    before = await ended(alone)
    assert len(before) > 5
    await alone.erase("privacy", NAME)
    assert await ended(alone) == before
    members = {entry.member for entry in (await alone.page(BOARD, period="all_time")).entries}
    assert members == {"bob", "eve", "joe"}
    await alone.drop(BOARD, allow_drop="all")


async def test_a_rebuild_gives_the_same(alone: Laurels, clock: FixedClock):
    await play(alone, clock)
    await alone.erase("privacy", NAME)
    assert (await alone.verify(BOARD)).differences == []
    before = [await alone.page(BOARD, period=period) for period in ("daily", "all_time", "rolling_2d")]
    for node in await alone.valkey._primaries():  # pyright: ignore[reportPrivateUsage]  # every key there is
        for key in await node.execute_command("KEYS", "*privacy*"):
            await node.execute_command("DEL", key)
    await alone.rebuild(BOARD)
    assert [
        await alone.page(BOARD, period=period) for period in ("daily", "all_time", "rolling_2d")
    ] == before
    assert not is_in(NAME, await everything_in_valkey(alone))
    await alone.drop(BOARD, allow_drop="all")


async def test_again_changes_nothing(alone: Laurels, clock: FixedClock):
    await play(alone, clock)
    await alone.erase("privacy", NAME)
    before = await ended(alone)
    again = await alone.erase("privacy", NAME)
    assert (again.boards, again.windows, again.rows) == (0, 0, 0)
    assert await ended(alone) == before
    await alone.drop(BOARD, allow_drop="all")


async def test_a_project_that_is_not_there_is_not_found(alone: Laurels):
    with pytest.raises(NotFound):
        await alone.erase("nowhere", "ada")
