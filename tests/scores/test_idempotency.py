from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from laurels.boards.keys import BoardRef
from laurels.errors import InFlight
from laurels.moments import moment_of

if TYPE_CHECKING:
    from laurels.clock import FixedClock
    from laurels.sync import Laurels

NewBoard = Callable[..., str]


@pytest.mark.parametrize("step", [timedelta(seconds=-5), timedelta(hours=-1), timedelta(days=3)])
def test_a_key_stands_for_one_request_whatever_the_clocks_of_processes_show(
    engine: Laurels, new_board: NewBoard, clock: FixedClock, step: timedelta
):
    ref, keys = BoardRef.parse(new_board()), engine.engine.idempotency_keys
    clock.now = moment_of(datetime(2025, 10, 24, 0, 0, 2, tzinfo=UTC))

    async def ask() -> None:
        async with keys.claim(ref, "key", "f") as first:
            clock.advance(step)
            with pytest.raises(InFlight):
                async with keys.claim(ref, "key", "f"):
                    pass
            first.answer = b"the answer"
        clock.advance(step)
        async with keys.claim(ref, "key", "f") as again:
            assert (again.is_done, again.answer) == (True, b"the answer")

    engine.run(ask())
