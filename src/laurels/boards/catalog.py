"""The boards that there are: definitions from PostgreSQL, compiled and remembered, and known to Valkey.

PostgreSQL holds the definition; Valkey holds the version that is in force, and refuses whoever calls with
another one. So an edit or a drop counts at once for every process, and a board that is remembered needs no
PostgreSQL to be used.
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

# Start of the windows that have none, for their order among the board's windows.
NO_START: Final = 0


# Windows that a process remembers to have listed; listing one again does no harm.
MOST_REMEMBERED: Final = 100_000


class Catalog:
    """Boards by reference."""

    def __init__(self, valkey: Valkey, store: BoardStore) -> None:
        self._valkey = valkey
        self._store = store
        self._boards: dict[BoardRef, Board] = {}
        self._loading: dict[BoardRef, asyncio.Task[Board]] = {}
        self._registered: dict[Board, set[tuple[int, str, str]]] = {}
        self._losses = valkey.losses
        self._with_metadata: set[Board] = set()

    async def board(self, ref: BoardRef) -> Board:
        """The board as this process knows it; raises `NotFound`."""
        return self._boards.get(ref) or await self._load_once(ref)

    def known(self, ref: BoardRef) -> Board | None:
        """As `board`, as far as this process remembers it."""
        return self._boards.get(ref)

    async def in_force(self, ref: BoardRef) -> Board:
        """The board as Valkey knows it now; what this process knew may have been changed by another."""
        board = await self.board(ref)
        version = await self._valkey.run(hashes.get(board.keys.of_board(0, "board"), "version"))
        known = None if version is None else int(version)
        return board if known == board.version else await self.refresh(ref, known)

    async def feeds(self, board: Board) -> list[Board]:
        """The boards that receive every submission too."""
        return [await self.board(BoardRef.parse(feed)) for feed in board.definition.feeds]

    async def id_of(self, ref: BoardRef) -> int | None:
        """The id of the board that has this name now: its first version; None when there is none."""
        stored = await self._store.get(ref.project, ref.board)
        return None if stored is None else stored.id

    async def refresh(self, ref: BoardRef, known: int | None = None) -> Board:
        """Read the definition again, since Valkey knows another version."""
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
        """Keeps everybody off who knows this version of the board or an earlier one, until a version above
        the number is in force: they are told that the definition is being changed.
        """
        await self._announce(board, number)
        self.forget(board.ref)

    async def _announce(self, board: Board, version: int) -> None:
        for shard in range(board.keys.shards):
            keys = [board.keys.of_board(shard, "board")]
            for name in ("ids", "calls", "once"):
                keys += board.keys.buckets(shard, name, time.time()) + board.keys.generations(shard, name)
            await functions.adopt(self._valkey, keys, version)

    async def _load_once(self, ref: BoardRef) -> Board:
        """Whoever asks at once waits for one load, and they go on in the order they came."""
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
        """Whether any entry of the board is known to have metadata."""
        return board in self._with_metadata

    def note_metadata(self, board: Board) -> None:
        self._with_metadata.add(board)

    async def register(self, board: Board, shard: int, targets: Iterable[Target], now: Moment) -> None:
        """Makes sure that these windows are listed before they are written; asks Valkey once a window.

        Raises `DefinitionChanged`; and `KeyTaken` where a template names a key that another program has.
        """
        if self._losses != self._valkey.losses:  # it may not know of them any more
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
