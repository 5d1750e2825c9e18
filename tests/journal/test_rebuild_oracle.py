"""Random boards and operations with rebuilds in between, compared with a plain sort."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from test_oracle import Boards
from valkey_servers import running_valkey

from laurels.clock import FixedClock
from laurels.sync import Laurels

if TYPE_CHECKING:
    from laurels.embedded import Endpoints

# Submissions, removals, edits, steps of the clock and rebuilds, over as many boards as it takes.
OPERATIONS = int(os.environ.get("REBUILD_OPERATIONS", "400"))


class RebuiltBoards(Boards):
    """The oracle's boards; now and then Valkey loses everything, or the board is rebuilt."""

    raw: Any
    performed = 0

    def toggle_yearly(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]  # no rule here
        """After a rebuild, a window that was defined later has the earlier submissions too."""

    @rule(is_lost=st.booleans())
    def rebuild(self, is_lost: bool) -> None:  # noqa: FBT001  # a rule draws it
        self.engine.archived(self.board)
        if is_lost:
            self.raw.flushall()
        told = self.engine.rebuild(self.board)
        assert (told.doubled, told.different) == (0, 0)
        assert self.engine.verify(self.board).differences == []


def run(url: str, postgres_url: str, operations: int) -> None:
    clock = FixedClock()
    client: Any = redis.RedisCluster if "+cluster" in url else redis.Redis
    RebuiltBoards.raw = client.from_url(url.replace("+cluster", ""))
    with Laurels(valkey_url=url, postgres_url=postgres_url, clock=clock) as engine:
        Boards.engine, Boards.laurels, Boards.clock, Boards.performed = engine, engine.engine, clock, 0
        while Boards.performed < operations:
            run_state_machine_as_test(
                RebuiltBoards,
                settings=settings(
                    max_examples=4,
                    stateful_step_count=30,
                    deadline=None,
                    suppress_health_check=[
                        HealthCheck.too_slow,
                        HealthCheck.data_too_large,
                        HealthCheck.filter_too_much,
                    ],
                    print_blob=True,
                    report_multiple_bugs=False,
                    phases=(Phase.explicit, Phase.reuse, Phase.generate),
                ),
            )
    RebuiltBoards.raw.close()


def test_a_board_rebuilt_on_a_single_node_is_as_a_plain_sort_says(endpoints: Endpoints):
    with running_valkey() as own:
        run(own.url, endpoints.postgres_url, OPERATIONS)


def test_a_board_rebuilt_on_a_cluster_is_as_a_plain_sort_says(cluster_url: str, endpoints: Endpoints):
    run(cluster_url, endpoints.postgres_url, OPERATIONS // 4)
