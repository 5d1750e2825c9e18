"""What operators see, on one node and on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laurels.boards.keys import BoardRef
from laurels.errors import Unavailable
from laurels.history import operator_status
from laurels.valkey.streams import stream_entries

if TYPE_CHECKING:
    from laurels.engine import Laurels
    from laurels.history.operator_status import DeadLetter, OperatorStatus


@pytest.fixture
def looking(alone: Laurels, monkeypatch: pytest.MonkeyPatch) -> OperatorStatus:
    monkeypatch.setattr(operator_status, "FRESH_SECONDS", 0.0)
    return alone.operator_status


async def tell_nobody(_: str) -> None:
    pass


async def letters_of(looking: OperatorStatus, board: str) -> list[DeadLetter]:
    """Other tests' events of campuses may be among them."""
    return [letter for letter in (await looking.dead_letters(1000)).letters if letter.board == board]


async def test_journals_of_shards_count_as_their_boards(alone: Laurels, looking: OperatorStatus):
    await alone.define("seen/wide", {"shards": 4})
    await alone.define("seen/quiet", {})
    await alone.define("seen/unrecorded", {"archive": {"journal": False}})
    for number in range(20):
        await alone.submit("seen/wide", f"member-{number}", number)
    told = await looking.figures()
    boards = {each.board: each for each in told.boards}
    assert boards.keys() == {"wide", "quiet"}
    assert (boards["wide"].recorded, boards["wide"].waiting) == (20, 20)
    assert (boards["quiet"].recorded, boards["quiet"].waiting) == (0, 0)
    assert boards["wide"].watermark < boards["quiet"].watermark == told.at
    assert (told.journal.recorded, told.journal.waiting) == (20, 20)
    assert told.valkey.nodes == (3 if alone.valkey.is_cluster else 1)
    await alone.journal_drained()
    told = await looking.figures()
    assert (told.journal.recorded, told.journal.waiting) == (20, 0)
    assert told.journal.watermark == told.at
    await alone.drop("seen/wide", allow_drop="all")
    assert (await looking.figures()).journal.recorded == 0


async def test_a_dead_letter_goes_back_to_the_journal_of_its_shard(alone: Laurels, looking: OperatorStatus):
    await alone.define("seen/wide", {"shards": 2})
    await alone.submit("seen/wide", "ada", 5)
    streams = await alone.drain.journal_streams.of_board(BoardRef("seen", "wide"))
    (full,) = [
        stream for stream, count in (await alone.drain.journal_streams.lengths(streams)).items() if count
    ]
    ((_, fields),) = stream_entries(await alone.valkey.command("XRANGE", full.key, "-", "+"))
    letter_fields = ("body", fields[b"body"], "why", "PostgreSQL was too old")
    await alone.valkey.command("XADD", full.dead_letters, "5-0", *letter_fields)
    await alone.valkey.command("XTRIM", full.key, "MAXLEN", 0)
    await alone.survey.run(tell_nobody)
    (letter,) = await letters_of(looking, "seen/wide")
    assert (letter.why, letter.summary) == ("PostgreSQL was too old", "submit of ada")
    await looking.retry(letter.id)
    assert await letters_of(looking, "seen/wide") == []
    await alone.journal_drained()
    assert (await alone.verify("seen/wide")).differences == []
    await alone.drop("seen/wide", allow_drop="all")


async def test_figures_are_shown_without_postgresql(
    alone: Laurels, looking: OperatorStatus, monkeypatch: pytest.MonkeyPatch
):
    await alone.define("seen/arcade", {})
    await alone.submit("seen/arcade", "ada", 5)
    assert (await looking.figures()).postgres is not None

    def away(*_: object, **__: object) -> None:
        raise Unavailable("PostgreSQL does not answer")

    monkeypatch.setattr(alone.postgres, "reading", away)
    told = await looking.figures()
    assert told.postgres is None
    assert [(each.board, each.waiting) for each in told.boards] == [("arcade", 1)]
