"""Windows that an earlier version wrote are converted before a process uses their board."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from redis.exceptions import ResponseError
from topologies import on_node

from laurels.boards.keys import BoardRef
from laurels.boards.ordering import invert
from laurels.boards.retention import addresses
from laurels.errors import Unavailable
from laurels.scores.shards import ShardedWindow
from laurels.scores.submission import Submission
from laurels.valkey import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from laurels.boards.board import Board, WindowAddress
    from laurels.sync import Laurels

    NewBoard = Callable[..., str]

WINDOWS = [{"period": "daily", "keep": 7}, {"period": "all_time"}]
# More than a small hash holds, and than one call converts.
ENTRIES = 700
DEFINITIONS: dict[str, dict[str, Any]] = {
    "earliest": {"ties": "earliest", "archive": {"journal": False}},
    "member": {"ties": "member", "order": "asc", "shards": 3},
    "sum": {"ties": "member", "aggregate": "sum", "dense": True},
    "int64": {"score": "int64", "groups": [["country"]], "dense": True},
    "int64 earliest": {"score": "int64", "ties": "earliest", "order": "asc"},
    "int64 member": {"score": "int64", "ties": "member", "dense": True},
}


class EarlierVersion:
    """Writes windows as the earlier version did: the order in the bytes of the members, all with score 0."""

    def __init__(self, engine: Laurels, name: str) -> None:
        self._engine = engine
        self._name = name
        self.board: Board = self._run(engine.engine.drops.catalog.board(BoardRef.parse(name)))

    def _run(self, awaitable: Any) -> Any:  # noqa: ANN401  # whatever it returns
        return self._engine.run(awaitable)

    def command(self, *words: Any) -> Any:  # noqa: ANN401  # a reply
        return self._run(self._engine.engine.valkey.command(*words))

    def windows(self) -> list[tuple[int, WindowAddress]]:
        async def listed() -> list[tuple[int, WindowAddress]]:
            return [
                (shard, address)
                for shard in range(self.board.keys.shards)
                async for address in addresses(self._engine.engine.valkey, self.board, shard)
            ]

        return self._run(listed())

    def rewrite(self) -> None:
        """Rewrites the board into the form of the earlier version."""
        entries = {address: self._entries(address) for _, address in self.windows()}
        for shard, address in self.windows():
            self._rewrite(shard, address, entries[address])
        for shard in range(self.board.keys.shards):
            self.command("HDEL", self.board.keys.of_board(shard, "board"), "layout")

    def _entries(self, address: WindowAddress) -> dict[bytes, bytes]:
        async def listed() -> dict[bytes, bytes]:
            scan = ShardedWindow(self._engine.engine.valkey, self.board, address).scan()
            return {each.member: each.place async for part in scan for each in part}

        return self._run(listed())

    def _rewrite(self, shard: int, address: WindowAddress, entries: dict[bytes, bytes]) -> None:
        key = self.board.window_key(shard, address)
        milliseconds = self.command("PTTL", key)
        self.command("UNLINK", *(f"{key}{part}" for part in ("", "|prefixes", "|scores", "|counts")))
        written = [
            command
            for member, place in entries.items()
            if self.board.keys.shard_of(member) == shard
            for command in self._written(key, member, self._position(place))
        ]
        self._run(self._engine.engine.valkey.commands(written))
        if milliseconds > 0:
            for part in ("", "|positions", "|scores", "|counts"):
                self.command("PEXPIRE", f"{key}{part}", milliseconds)

    def _position(self, place: bytes) -> bytes:
        ordering = self.board.ordering
        return invert(place[:8]) + place[8:] if ordering.unique and ordering.descending else place

    def _written(self, key: str, member: bytes, position: bytes) -> Iterator[tuple[Any, ...]]:
        yield "ZADD", key, 0, position + member
        yield "HSET", f"{key}|positions", member, position
        if self.board.definition.dense:
            yield "ZADD", f"{key}|scores", 0, position[:8]
            yield "HINCRBY", f"{key}|counts", position[:8], 1


def seen(engine: Laurels, name: str, windows: list[tuple[int, WindowAddress]]) -> list[object]:
    """All that readers see: the entries of every window in their order, and one member's standing."""
    found: list[object] = []
    for label, cut in dict.fromkeys((address.label, str(address.cut)) for _, address in windows):
        options: dict[str, Any] = {"period": label, "group": cut or None}
        pages = engine.pages(name, limit=1000, **options)
        found += [
            (each.member, each.score, each.rank, each.metadata) for page in pages for each in page.entries
        ]
        found.append(engine.standing(name, "m7", **options))
    return found


def filled(new_board: NewBoard, engine: Laurels, definition: dict[str, Any], entries: int) -> str:
    name = new_board(windows=WINDOWS, **definition)
    scores = [*(number % 20 for number in range(entries - 4)), 2**53 - 1, -(2**53) + 1, 0.5, -7]
    if definition.get("score") == "int64":
        scores[-4:] = [2**63 - 1, 2**63 - 2, -(2**63), -(2**53) - 1]
    groups = {"country": "BR"} if "groups" in definition else None
    metadata = {"n": 1}
    given = [Submission(f"m{number}", score, groups=groups) for number, score in enumerate(scores)]
    assert engine.submit_many(name, given).accepted == entries
    engine.submit(name, "m7", 3, groups=groups, metadata=metadata)
    return name


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_a_board_of_an_earlier_version_is_converted_without_loss(
    engine: Laurels, other_engine: Laurels, new_board: NewBoard, definition: dict[str, Any]
):
    name = filled(new_board, engine, definition, ENTRIES)
    earlier = EarlierVersion(engine, name)
    windows = earlier.windows()
    before = seen(engine, name, windows)
    earlier.rewrite()
    assert seen(other_engine, name, windows) == before
    for shard, address in windows:
        key = earlier.board.window_key(shard, address)
        assert (
            earlier.command("EXISTS", f"{key}|positions")
            == earlier.command("EXISTS", f"{key}|converting")
            == 0
        )
        for part in earlier.board.keys.parts(key, metadata=False):
            assert (earlier.command("TTL", part) > 0) == (address.label == "daily"), part
    standing = other_engine.standing(name, "m7")
    assert standing
    submitted = other_engine.submit(name, "m7", standing.score)
    assert (submitted.previous_score, submitted.previous_rank) == (standing.score, standing.rank)


def test_an_interrupted_conversion_goes_on(
    engine: Laurels, other_engine: Laurels, new_board: NewBoard, monkeypatch: pytest.MonkeyPatch
):
    name = filled(new_board, engine, DEFINITIONS["sum"], ENTRIES)
    earlier = EarlierVersion(engine, name)
    windows = earlier.windows()
    before = seen(engine, name, windows)
    earlier.rewrite()
    convert, calls = functions.convert, iter(range(3))

    async def cut_off(*args: Any) -> tuple[str, int]:  # noqa: ANN401  # as convert
        if next(calls) == 2:
            raise Unavailable("cut off")
        return await convert(*args)

    with monkeypatch.context() as patched:
        patched.setattr(functions, "convert", cut_off)
        with pytest.raises(Unavailable):
            other_engine.page(name)
    left = [
        earlier.command("HLEN", f"{earlier.board.window_key(0, address)}|positions") for _, address in windows
    ]
    assert sorted(left) != [0, 0]
    assert max(left) == ENTRIES
    assert min(left) < ENTRIES
    assert seen(other_engine, name, windows) == before


def test_a_converted_board_is_not_looked_at_again(
    engine: Laurels, other_engine: Laurels, new_board: NewBoard
):
    name = new_board(ties="earliest")
    engine.submit(name, "ada", 5)
    earlier = EarlierVersion(engine, name)
    key = earlier.board.window_key(0, earlier.windows()[0][1])
    earlier.command("HSET", f"{key}|positions", "eve", "of another program")
    assert [each.member for each in other_engine.page(name).entries] == ["ada"]


@on_node
def test_a_process_of_another_version_is_refused(engine: Laurels, new_board: NewBoard):
    board = EarlierVersion(engine, new_board(ties="earliest")).board
    header = msgspec.msgpack.encode(
        {"shape": ("exact", "number", 1, "earliest", 0, 0, 0), "version": board.version}
    )
    keys = [board.keys.of_board(0, "board"), "window", "window|positions"]
    with pytest.raises(ResponseError, match="another version of Laurels"):
        engine.run(engine.engine.valkey.read("laurels_standing", keys, (header,)))
