"""The collector visits neither what lives as long as the process, nor much at once."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

from waiting import eventually

from laurels.http.server import garbage
from laurels.http.server.garbage import THRESHOLDS, frozen_heap

if TYPE_CHECKING:
    import pytest


class Cycle:
    def __init__(self) -> None:
        self.own = self


async def test_what_is_there_is_frozen_while_the_service_runs():
    thresholds = gc.get_threshold()
    async with frozen_heap():
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == thresholds


async def test_a_frozen_cycle_is_freed_when_memory_has_grown(monkeypatch: pytest.MonkeyPatch):
    memory = 1000
    measured: list[int] = []

    def measure() -> int:
        measured.append(memory)
        return memory

    monkeypatch.setattr(garbage, "CHECK_SECONDS", 0.001)
    monkeypatch.setattr(garbage, "memory", measure)
    cycle = Cycle()
    alive = weakref.ref(cycle)
    async with frozen_heap():
        del cycle
        gc.collect()
        await eventually(lambda: len(measured) > 3)
        assert alive() is not None
        memory = 1251
        await eventually(lambda: alive() is None)
        assert gc.get_freeze_count() > 10_000


def test_memory_is_what_the_process_has_now():
    before = garbage.memory()
    block = bytearray(256 * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    grown = garbage.memory()
    del block
    assert 0 < before < grown - 200 * 2**20
    assert garbage.memory() < grown - 200 * 2**20
