"""The boards that a process uses: definitions from PostgreSQL, compiled, cached, and in force in Valkey.

PostgreSQL holds the definition. Valkey holds the version in force, and refuses calls with another one. So an
edit or a drop takes effect at once for every process, and a cached board works without PostgreSQL.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from laurels.boards.board import Board
from laurels.boards.keys import BoardRef
from laurels.errors import NotFound, Unavailable
from laurels.valkey import functions, hashes
from laurels.valkey.messages import Registration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.boards.board import Target
    from laurels.boards.definition import StoredBoard
    from laurels.boards.store import BoardStore
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey

# The start of windows without one, for their order in the list of windows.
NO_START: Final = 0
# Windows that a process remembers as listed. Listing one again does no harm.
MOST_REMEMBERED: Final = 100_000


class Catalog:
    """The boards of a process, by reference. Concurrent loads of one board share one query."""

    def __init__(self, valkey: Valkey, store: BoardStore) -> None:
        self._valkey = valkey
        self._store = store
        self._boards: dict[BoardRef, Board] = {}
        self._loading: dict[BoardRef, asyncio.Task[Board]] = {}
        self._registered: dict[Board, set[tuple[int, str, str]]] = {}
        self._losses = valkey.losses
        self._with_metadata: set[Board] = set()

    async def board(self, ref: BoardRef) -> Board:
        """The board as this process has it; raises `NotFound`. Another process may have changed it since."""
        return self._boards.get(ref) or await self._load_once(ref)

    def known(self, ref: BoardRef) -> Board | None:
        """The board if this process has it already."""
        return self._boards.get(ref)

    async def in_force(self, ref: BoardRef) -> Board:
        """The board by the version that is in force in Valkey now; raises `NotFound`."""
        board = await self.board(ref)
        version = await self._valkey.run(hashes.get(board.keys.of_board(0, "board"), "version"))
        known = None if version is None else int(version)
        return board if known == board.version else await self.refresh(ref, known)

    async def feeds(self, board: Board) -> list[Board]:
        """The boards that this one feeds."""
        return [await self.board(BoardRef.parse(feed)) for feed in board.definition.feeds]

    async def id_of(self, ref: BoardRef) -> int | None:
        """The id (the first version) of the board that has this name now; None if there is none."""
        stored = await self._store.get(ref.project, ref.board)
        return None if stored is None else stored.id

    async def refresh(self, ref: BoardRef, known: int | None = None) -> Board:
        """Loads the definition again, after Valkey refused this process's version. `known`: Valkey's."""
        self.forget(ref)
        board = await self._load(ref)
        if known is not None and known > board.version:
            self.forget(ref)
            raise Unavailable(f"{ref}: its definition is being changed; try again")
        return board

    def forget(self, ref: BoardRef) -> None:
        board = self._boards.pop(ref, None)
        if board:
            self._registered.pop(board, None)
            self._with_metadata.discard(board)

    def compile(self, stored: StoredBoard) -> Board:
        board = Board(
            BoardRef(stored.project, stored.board),
            stored.definition,
            stored.version,
            cluster=self._valkey.is_cluster,
        )
        board.owner = stored.owner
        return board

    async def adopt(self, board: Board) -> None:
        """Puts this version in force, unless a later one is."""
        await self._announce(board, board.version)
        self._boards[board.ref] = board

    async def bar(self, board: Board, number: int) -> None:
        """Refuses all calls on the board, until a version above the number is in force."""
        await self._announce(board, number)
        self.forget(board.ref)

    async def _announce(self, board: Board, version: int) -> None:
        for shard in range(board.keys.shards):
            keys = [board.keys.of_board(shard, "board")]
            for name in ("ids", "calls", "once"):
                keys += board.keys.buckets(shard, name, time.time()) + board.keys.generations(shard, name)
            await functions.adopt(self._valkey, keys, version)

    async def _load_once(self, ref: BoardRef) -> Board:
        loading = self._loading.get(ref)
        if loading is None:
            loading = self._loading[ref] = asyncio.create_task(self._load(ref))
            loading.add_done_callback(lambda _: self._loading.pop(ref, None))
        return await asyncio.shield(loading)

    async def _load(self, ref: BoardRef) -> Board:
        stored = await self._store.get(ref.project, ref.board)
        if stored is None:
            raise NotFound(f"there is no board {ref}")
        board = self.compile(stored)
        await self.adopt(board)
        return board

    def has_metadata(self, board: Board) -> bool:
        """Whether this process knows that an entry of the board has metadata."""
        return board in self._with_metadata

    def note_metadata(self, board: Board) -> None:
        self._with_metadata.add(board)

    async def register(self, board: Board, shard: int, targets: Iterable[Target], now: Moment) -> None:
        """Lists these windows before they are written; calls Valkey once for each window and process.

        Raises `DefinitionChanged`, and `KeyTaken` if another program has a key that a template names.
        """
        if self._losses != self._valkey.losses:  # Valkey may have lost the list
            self._losses = self._valkey.losses
            self._registered.clear()
        registered = self._registered.setdefault(board, set())
        if len(registered) > MOST_REMEMBERED:
            registered.clear()
        for target in targets:
            address = target.address
            entry = (shard, address.token, str(address.cut))
            if entry in registered:
                continue
            keys = [
                board.keys.of_board(shard, "board"),
                board.keys.of_board(shard, "windows"),
                board.keys.of_board(shard, f"cuts:{address.token}"),
            ]
            if board.names_keys(address):
                keys += board.keys.parts(board.window_key(shard, address), metadata=True)
            starts = target.slot.starts
            registration = Registration(
                token=address.token,
                starts=NO_START if starts is None else starts // 1_000_000,
                seconds=target.seconds_to_live(now),
                adopts=int(board.definition.adopt),
                cut=str(address.cut),
            )
            await functions.register(self._valkey, keys, board.version, registration)
            registered.add(entry)
