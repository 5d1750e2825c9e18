"""The boards that a process keeps loaded: those used last, and those that anything still uses. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from laurels.boards.board import Board
    from laurels.boards.keys import BoardRef

# A loaded board takes some 2 KB, so these take 10 MB. To load a forgotten one costs 0.3 ms of processor time,
# shared with others, and a query. Boards that take turns in greater numbers than this hardly repeat.
MOST_BOARDS: Final = 5_000


class RecentBoards:
    """Forgets the boards that were not used for longest. A board that a queue, a call or a live view still
    has is found here as well: two instances of one board would not keep its submissions in order.
    """

    def __init__(self, most: int = MOST_BOARDS) -> None:
        self._most = most
        self._recent: OrderedDict[BoardRef, Board] = OrderedDict()
        self._alive: WeakValueDictionary[BoardRef, Board] = WeakValueDictionary()

    def get(self, ref: BoardRef) -> Board | None:
        if ref in self._recent:
            self._recent.move_to_end(ref)
            return self._recent[ref]
        board = self._alive.get(ref)
        if board is not None:
            self._keep(board)
        return board

    def add(self, board: Board) -> None:
        self._alive[board.ref] = board
        self._keep(board)

    def discard(self, ref: BoardRef) -> None:
        self._recent.pop(ref, None)
        self._alive.pop(ref, None)

    def _keep(self, board: Board) -> None:
        self._recent[board.ref] = board
        self._recent.move_to_end(board.ref)
        if len(self._recent) > self._most:
            self._recent.popitem(last=False)
