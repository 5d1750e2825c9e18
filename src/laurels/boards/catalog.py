"""The boards that a process uses: definitions from PostgreSQL, compiled, cached, and in force in Valkey.

PostgreSQL holds the definition. Valkey holds the version in force, and refuses calls with another one. So an
edit or a drop takes effect at once for every process, and a cached board works without PostgreSQL.
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from laurels.boards.board import Board, CompiledDefinition
from laurels.boards.convert import convert
from laurels.boards.keys import BoardRef
from laurels.boards.recent import RecentBoards
from laurels.errors import LaurelsError, NotFound, Unavailable
from laurels.valkey import functions, hashes
from laurels.valkey.messages import Registration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.boards.board import Target, WindowAddress
    from laurels.boards.definition import BoardDefinition, StoredBoard
    from laurels.boards.store import BoardStore
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey

# The start of windows without one, for their order in the list of windows.
NO_START: Final = 0
# Windows of a board that a process remembers as listed. Listing one again does no harm.
MOST_REMEMBERED: Final = 100_000
# Boards that one query reads, and queries at once: while Valkey adopts the boards of one, the next is read.
LOADED_TOGETHER: Final = 500
LOADS_AT_ONCE: Final = 2
# Windows that one call lists: some 0.5 ms.
LISTED_TOGETHER: Final = 100


class Catalog:
    """The boards of a process, by reference. Concurrent loads share queries: while boards are loaded, further
    ones wait, and are loaded together.
    """

    def __init__(self, valkey: Valkey, store: BoardStore) -> None:
        self._valkey = valkey
        self._store = store
        self._boards = RecentBoards()
        self._wanted: dict[BoardRef, asyncio.Future[Board]] = {}
        """Boards to load, which no query has read yet."""
        self._loading: dict[BoardRef, asyncio.Future[Board]] = {}
        self._loaders: set[asyncio.Task[None]] = set()
        # What is known of a board is forgotten with it.
        self._registered: WeakKeyDictionary[Board, set[tuple[int, WindowAddress]]] = WeakKeyDictionary()
        self._compiled: WeakValueDictionary[int, CompiledDefinition] = WeakValueDictionary()
        """By the identity of the definition, which lives as long as what is compiled from it."""
        self._losses = valkey.losses
        self._with_metadata: WeakSet[Board] = WeakSet()

    async def board(self, ref: BoardRef) -> Board:
        """The board as this process has it; raises `NotFound`. Another process may have changed it since."""
        return self._boards.get(ref) or await asyncio.shield(self._loading.get(ref) or self._want(ref))

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
        board = await asyncio.shield(self._want(ref))
        if known is not None and known > board.version:
            self.forget(ref)
            raise Unavailable(f"{ref}: its definition is being changed; try again")
        return board

    def forget(self, ref: BoardRef) -> None:
        self._boards.discard(ref)

    def compile(self, stored: StoredBoard) -> Board:
        board = Board(
            BoardRef(stored.project, stored.board),
            stored.definition,
            stored.version,
            cluster=self._valkey.is_cluster,
            compiled=self._compiled_definition(stored.definition),
        )
        board.owner = stored.owner
        return board

    def _compiled_definition(self, definition: BoardDefinition) -> CompiledDefinition:
        """One for all boards with this definition. The store gives equal definitions as one value."""
        compiled = self._compiled.get(id(definition))
        if compiled is None:
            compiled = self._compiled[id(definition)] = CompiledDefinition(definition)
        return compiled

    async def adopt(self, board: Board) -> None:
        """Puts this version in force, unless a later one is."""
        await self._announce(board, board.version)
        await asyncio.gather(*(convert(self._valkey, board, shard) for shard in range(board.keys.shards)))
        self._boards.add(board)

    async def put_in_force(self, stored: Iterable[StoredBoard]) -> None:
        """As `adopt`, for many boards that need not stay loaded; all at the same time."""
        boards = [self.compile(each) for each in stored]
        for board in boards:
            self.forget(board.ref)
        await asyncio.gather(*(self._announce(board, board.version) for board in boards))

    async def bar(self, board: Board, number: int) -> None:
        """Refuses all calls on the board, until a version above the number is in force."""
        await self._announce(board, number)
        self.forget(board.ref)

    async def _announce(self, board: Board, version: int) -> None:
        await asyncio.gather(
            *(self._announce_to_shard(board, shard, version) for shard in range(board.keys.shards))
        )

    async def _announce_to_shard(self, board: Board, shard: int, version: int) -> None:
        keys = [board.keys.of_board(shard, "board")]
        for name in ("ids", "calls", "once"):
            keys += board.keys.buckets(shard, name, time.time()) + board.keys.generations(shard, name)
        await functions.adopt(self._valkey, keys, version)

    def _want(self, ref: BoardRef) -> asyncio.Future[Board]:
        """The board, by a query that begins after this call."""
        wanted = self._wanted.get(ref)
        if wanted is None:
            wanted = self._wanted[ref] = asyncio.get_running_loop().create_future()
            # One that has ended leaves the set a turn later, and takes nothing more.
            if sum(not loader.done() for loader in self._loaders) < LOADS_AT_ONCE:
                loader = asyncio.create_task(self._load_wanted())
                self._loaders.add(loader)
                loader.add_done_callback(self._loaders.discard)
        return wanted

    async def _load_wanted(self) -> None:
        while self._wanted:
            together = {ref: self._wanted.pop(ref) for ref in list(islice(self._wanted, LOADED_TOGETHER))}
            self._loading |= together
            try:
                found = await self._store.get_all(together)
                await asyncio.gather(
                    *(self._load(ref, found.get(ref), loading) for ref, loading in together.items())
                )
            except Exception as error:  # noqa: BLE001  # everybody who waits must get it
                for loading in together.values():
                    _fail(loading, error)
            finally:
                for ref, loading in together.items():
                    loading.cancel()  # has no effect unless this task was cancelled
                    if self._loading.get(ref) is loading:
                        del self._loading[ref]

    async def _load(
        self, ref: BoardRef, stored: StoredBoard | LaurelsError | None, loading: asyncio.Future[Board]
    ) -> None:
        if stored is None:
            stored = NotFound(f"there is no board {ref}")
        if isinstance(stored, LaurelsError):
            _fail(loading, stored)
            return
        try:
            board = self.compile(stored)
            await self.adopt(board)
        except Exception as error:  # noqa: BLE001  # of this board alone
            _fail(loading, error)
        else:
            if not loading.done():
                loading.set_result(board)

    def has_metadata(self, board: Board) -> bool:
        """Whether this process knows that an entry of the board has metadata."""
        return board in self._with_metadata

    def note_metadata(self, board: Board) -> None:
        self._with_metadata.add(board)

    async def register(self, board: Board, shard: int, targets: Iterable[Target], now: Moment) -> None:
        """Lists these windows before they are written; tells Valkey once of each window and process.

        Raises `DefinitionChanged`, and `KeyTaken` if another program has a key that a template names.
        """
        if self._losses != self._valkey.losses:  # Valkey may have lost the list
            self._losses = self._valkey.losses
            self._registered.clear()
        registered = self._registered.setdefault(board, set())
        if len(registered) > MOST_REMEMBERED:
            registered.clear()
        new = {entry: target for target in targets if (entry := (shard, target.address)) not in registered}
        coming = iter(new.items())
        while together := dict(islice(coming, LISTED_TOGETHER)):
            await self._list(board, shard, together.values(), now)
            registered.update(together)

    async def _list(self, board: Board, shard: int, targets: Iterable[Target], now: Moment) -> None:
        keys = [board.keys.of_board(shard, "board"), board.keys.of_board(shard, "windows")]
        registrations: list[Registration] = []
        for target in targets:
            address, starts = target.address, target.slot.starts
            own: tuple[str, ...] = ()
            if board.names_keys(address):
                own = board.keys.parts(board.window_key(shard, address), metadata=True)
            keys += (board.keys.of_board(shard, f"cuts:{address.token}"), *own)
            registration = Registration(
                token=address.token,
                starts=NO_START if starts is None else starts // 1_000_000,
                seconds=target.seconds_to_live(now),
                adopts=int(board.definition.adopt),
                cut=str(address.cut),
                own_keys=len(own),
            )
            registrations.append(registration)
        await functions.register(self._valkey, keys, board.version, registrations)
        self._valkey.announcer.windows(str(board.ref))


def _fail(loading: asyncio.Future[Board], error: Exception) -> None:
    if not loading.done():
        loading.set_exception(error)
        loading.exception()  # those who waited may all have left
