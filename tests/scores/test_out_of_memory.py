"""Valkey is full: what frees memory goes on, and answers say what counted."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from valkey_servers import running_valkey

from laurels.errors import NotFound, OutcomeUnknown, Unavailable
from laurels.scores.submission import Submission
from laurels.sync import Laurels

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from valkey_servers import Server

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints

MEMBERS = 2_000

_numbers = count(1)


@pytest.fixture
def server() -> Generator[Server]:
    with running_valkey() as server:
        yield server


@pytest.fixture
def full(server: Server) -> Callable[[], None]:
    """Leaves Valkey no memory."""

    def fill() -> None:
        server.client.config_set("maxmemory", 1)

    server.client.config_set("maxmemory-policy", "noeviction")
    return fill


@pytest.fixture
def engine(server: Server, endpoints: Endpoints, clock: FixedClock) -> Generator[Laurels]:
    with Laurels(valkey_url=server.url, postgres_url=endpoints.postgres_url, clock=clock) as laurels:
        yield laurels


@pytest.fixture
def board(engine: Laurels) -> Generator[str]:
    board = f"tests/full-{next(_numbers)}"
    engine.define(
        board,
        {
            "windows": [{"period": "daily"}, {"period": "all_time"}],
            "ties": "earliest",
            "groups": [["country"]],
        },
    )
    engine.submit_many(
        board, [Submission(f"m{number}", number, groups={"country": "BR"}) for number in range(MEMBERS)]
    )
    yield board
    engine.drop(board, allow_drop="all")


def test_a_member_can_be_removed(engine: Laurels, board: str, full: Callable[[], None]):
    full()
    with pytest.raises(Unavailable, match="out of memory"):
        engine.submit(board, "new", 1)
    assert engine.remove(board, "m7")
    with pytest.raises(NotFound):
        engine.standing(board, "m7")
    assert engine.page(board).total == MEMBERS - 1


def test_a_member_can_be_erased(engine: Laurels, board: str, full: Callable[[], None]):
    full()
    assert engine.erase("tests", "m7", board=board.split("/")[1]).windows == 4
    with pytest.raises(NotFound):
        engine.standing(board, "m7")


def test_a_board_can_be_dropped_and_its_memory_comes_back(
    engine: Laurels, board: str, full: Callable[[], None], server: Server
):
    engine.submit_many(board, [Submission(f"more{number}", number) for number in range(20_000)])
    full()
    before = server.client.info("memory")["used_memory"]
    engine.drop(board, allow_drop="all")
    engine.run(engine.engine.maintenance.empty_discarded())
    assert server.client.info("memory")["used_memory"] < before - 2_000_000
    engine.define(board)


def test_the_journal_is_archived_and_trimmed(
    engine: Laurels, board: str, full: Callable[[], None], server: Server
):
    journal = f"lb:{{{board}}}:journal"
    assert server.client.xlen(journal) > 0
    full()
    engine.run(engine.engine.drain.finish())
    assert server.client.xlen(journal) == 0


def test_a_batch_that_is_cut_off_says_how_many_counted(
    engine: Laurels, board: str, full: Callable[[], None], server: Server
):
    def more() -> Generator[Submission]:
        for number in range(50_000):
            if number == 500:
                full()
            yield Submission(f"more{number}", number, id=f"id-{number}")

    with pytest.raises(OutcomeUnknown, match="out of memory") as cut_off:
        engine.submit_many(board, more())
    counted = engine.page(board).total - MEMBERS
    assert 0 < cut_off.value.accepted <= counted < 50_000
    server.client.config_set("maxmemory", 0)
    again = [Submission(f"more{number}", number, id=f"id-{number}") for number in range(1_000)]
    assert engine.submit_many(board, again).accepted == len(again)
    assert engine.page(board).total == MEMBERS + len(again)


def test_a_batch_of_which_nothing_counted_says_so(engine: Laurels, board: str, full: Callable[[], None]):
    full()
    with pytest.raises(Unavailable) as refused:
        engine.submit_many(board, [Submission("new", 1)])
    assert not isinstance(refused.value, OutcomeUnknown)
    assert refused.value.accepted == 0
