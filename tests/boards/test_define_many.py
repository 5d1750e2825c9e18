from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from topologies import on_node

from laurels.boards.catalog import Catalog
from laurels.boards.definition import BoardDefinition
from laurels.boards.keys import BoardRef
from laurels.errors import InvalidInput, NotFound, OutcomeUnknown, Unavailable
from laurels.moments import DAY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from raw_valkey import RawValkey

    from laurels.boards.defined import Defined
    from laurels.clock import FixedClock
    from laurels.engine import Laurels

DAILY = {"windows": [{"period": "daily"}]}
KEPT = {"windows": [{"period": "daily", "keep": 1}]}
WEEKLY = {"windows": [{"period": "weekly"}]}

_numbers = count(1)


def new_project() -> str:
    return f"many-{next(_numbers)}"


def outcomes(results: Iterable[Defined]) -> dict[str, str]:
    return {each.board: each.outcome for each in results}


async def test_calls_with_the_same_boards_at_once_make_each_board_once(laurels: Laurels):
    project, names = new_project(), [f"b{number}" for number in range(450)]
    calls = [dict.fromkeys(names, DAILY), dict.fromkeys(reversed(names), DAILY)] * 3
    results = await asyncio.gather(*(laurels.define_many(project, boards) for boards in calls))
    counted = Counter(each.outcome for result in results for each in result)
    assert counted == {"created": 450, "unchanged": 450 * 5}
    versions = {each.board: each.version for each in results[0]}
    assert all({each.board: each.version for each in result} == versions for result in results)
    assert len(set(versions.values())) == 450
    assert [each.board for each in results[1]] == [*reversed(names)]


async def test_definitions_are_in_force_in_every_process(laurels: Laurels, other_engine: Any):  # noqa: ANN401  # the same operations, sync
    project = new_project()
    await laurels.define_many(project, {"a": DAILY, "b": DAILY})
    await asyncio.to_thread(other_engine.submit, f"{project}/a", "ada", 5)
    changed = await laurels.define_many(project, {"a": WEEKLY, "b": DAILY}, allow_drop={"a": "daily"})
    assert outcomes(changed) == {"a": "changed", "b": "unchanged"}
    assert (await asyncio.to_thread(other_engine.submit, f"{project}/a", "ada", 5)).rank == 1
    page = await asyncio.to_thread(other_engine.page, f"{project}/a", period="weekly")
    assert page.total == 1


async def test_changes_that_drop_nothing_are_made_together(
    laurels: Laurels,
    other_engine: Any,  # noqa: ANN401  # the same operations, sync
    monkeypatch: pytest.MonkeyPatch,
):
    project, names = new_project(), [f"b{number}" for number in range(230)]
    first = await laurels.define_many(project, dict.fromkeys(names, KEPT))
    for name in names[:5]:
        await asyncio.to_thread(other_engine.submit, f"{project}/{name}", "ada", 5)

    async def alone(*_: object, **__: object) -> None:
        raise AssertionError("defined alone")

    longer = {"windows": [{"period": "daily", "keep": 9}, {"period": "weekly"}], "limits": {"max": 100}}
    with monkeypatch.context() as patched:
        patched.setattr(type(laurels.definer), "define", alone)
        second = await laurels.define_many(project, dict.fromkeys(names, longer))
        again = await laurels.define_many(project, dict.fromkeys(names, longer))
    assert set(outcomes(second).values()) == {"changed"}
    assert set(outcomes(again).values()) == {"unchanged"}
    assert all((new.version or 0) > (old.version or 0) for old, new in zip(first, second, strict=True))
    assert [each.version for each in again] == [each.version for each in second]
    assert await laurels.store.all_retired() == []
    with pytest.raises(InvalidInput):
        await asyncio.to_thread(other_engine.submit, f"{project}/b0", "ada", 101)
    assert (await asyncio.to_thread(other_engine.submit, f"{project}/b0", "ada", 7)).rank == 1
    assert (await laurels.page(f"{project}/b0", period="weekly")).total == 1


async def test_a_longer_keep_holds_for_windows_that_exist(laurels: Laurels, clock: FixedClock):
    project = new_project()
    await laurels.define_many(project, {"a": KEPT, "b": KEPT})
    await laurels.submit(f"{project}/a", "ada", 5)
    key = f"lb:{{{project}/a}}:daily:2025-10-24"
    before = await laurels.valkey.command("TTL", key)
    longer = {"windows": [{"period": "daily", "keep": 9}]}
    changed = await laurels.define_many(project, {"a": longer, "b": longer})
    assert set(outcomes(changed).values()) == {"changed"}
    assert await laurels.valkey.command("TTL", key) - before == pytest.approx(8 * 86400, abs=5)
    clock.now += 3 * DAY
    assert (await laurels.page(f"{project}/a", slot="2025-10-24")).total == 1


async def test_changes_that_drop_entries_are_judged_alone_beside_others(laurels: Laurels):
    project = new_project()
    boards = {"empty": DAILY, "full": DAILY, "kept": KEPT}
    await laurels.define_many(project, boards)
    await laurels.submit(f"{project}/full", "ada", 5)
    results = await laurels.define_many(
        project, {"empty": WEEKLY, "full": WEEKLY, "kept": {**KEPT, "player_writes": True}, "new": DAILY}
    )
    assert outcomes(results) == {"empty": "changed", "full": "refused", "kept": "changed", "new": "created"}
    assert (await laurels.page(f"{project}/full")).total == 1


async def test_a_bulk_change_that_is_cut_off_is_finished_by_the_job(
    laurels: Laurels,
    other_engine: Any,  # noqa: ANN401  # the same operations, sync
    monkeypatch: pytest.MonkeyPatch,
):
    project = new_project()
    await laurels.define_many(project, {"a": KEPT})
    await asyncio.to_thread(other_engine.submit, f"{project}/a", "ada", 5)

    async def cut_off(_: object, stored: Iterable[object]) -> None:
        if list(stored):
            raise Unavailable("Valkey went away")

    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "put_in_force", cut_off)
        with pytest.raises(OutcomeUnknown):
            await laurels.define_many(project, {"a": {**KEPT, "limits": {"max": 9}}})
    assert (project, "a") in await laurels.store.all_retired()
    await laurels.drops.finish_all()
    assert (project, "a") not in await laurels.store.all_retired()
    with pytest.raises(InvalidInput):
        await asyncio.to_thread(other_engine.submit, f"{project}/a", "ada", 10)


async def test_a_board_that_was_dropped_begins_empty(laurels: Laurels):
    project = new_project()
    first = await laurels.define_many(project, {"a": DAILY, "b": DAILY})
    await laurels.submit(f"{project}/a", "ada", 5)
    await laurels.drop(f"{project}/a", allow_drop="all")
    second = await laurels.define_many(project, {"b": DAILY, "a": DAILY})
    assert outcomes(second) == {"b": "unchanged", "a": "created"}
    assert second[1].version != first[0].version
    assert (await laurels.page(f"{project}/a")).total == 0


@on_node
async def test_a_drop_that_is_not_finished_is_finished_first(laurels: Laurels, raw: RawValkey):
    project = new_project()
    await laurels.define_many(project, {"a": DAILY})
    await laurels.submit(f"{project}/a", "ada", 5)
    await laurels.store.drop(project, "a")  # its keys are still there
    assert outcomes(await laurels.define_many(project, {"a": DAILY})) == {"a": "created"}
    assert (await laurels.page(f"{project}/a")).total == 0
    assert not [key for key in raw.keys(f"{{{project}/a}}") if b":daily:" in key]


async def test_boards_of_a_flow_are_refused(laurels: Laurels):
    project = new_project()
    await laurels.index_definer.define(BoardRef(project, "owned"), BoardDefinition())
    assert outcomes(await laurels.define_many(project, {"owned": {}, "new": {}})) == {
        "owned": "refused",
        "new": "created",
    }


async def test_what_was_not_defined_is_not_there(laurels: Laurels):
    project = new_project()
    results = await laurels.define_many(project, {"wrong": {"order": "up"}, "right": {}})
    assert outcomes(results) == {"wrong": "refused", "right": "created"}
    missing = await asyncio.gather(laurels.submit(f"{project}/wrong", "ada", 1), return_exceptions=True)
    assert isinstance(missing[0], NotFound)
    assert [stored.board for stored in await laurels.boards(project)] == ["right"]
    assert await laurels.boards(project, limit=1, cursor="right") == []
