"""Brings the windows of an earlier version into the present layout, before any process reads or writes them.

That version is known by the board's hash, which lacks the field `layout`. A conversion may stop anywhere and
run again, and several processes may run it at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from laurels.boards.retention import FORMER_PARTS, addresses
from laurels.logs import get_logger
from laurels.valkey import functions, hashes
from laurels.valkey.messages import ConvertHeader

if TYPE_CHECKING:
    from laurels.boards.board import Board, WindowAddress
    from laurels.valkey.client import Valkey

log = get_logger("laurels.boards")

# As lua/board.lua sets it for new boards.
LAYOUT: Final = 2
# A call takes 1 to 3 ms.
MEMBERS_A_CALL: Final = 200


async def convert(valkey: Valkey, board: Board, shard: int) -> None:
    """Converts all windows of a shard, unless they have been."""
    key = board.keys.of_board(shard, "board")
    if not board.ordering.packed or await valkey.run(hashes.get(key, "layout")) is not None:
        return
    members = 0
    async for address in addresses(valkey, board, shard):
        members += await _convert_window(valkey, board, shard, address)
    await valkey.run(hashes.put(key, {"layout": LAYOUT}))
    if members:
        log.info("converted the entries of an earlier version", board=str(board.ref), entries=members)


async def _convert_window(valkey: Valkey, board: Board, shard: int, address: WindowAddress) -> int:
    window = board.window_key(shard, address)
    former = [f"{window}{part}" for part in FORMER_PARTS]
    members = left = await valkey.run(hashes.length(former[0]))
    keys = (board.keys.of_board(shard, "board"), *board.keys.parts(window, metadata=False), *former)
    header = ConvertHeader(board.shape(metadata=False), "0", MEMBERS_A_CALL)
    while left:
        header.cursor, left = await functions.convert(valkey, keys, header)
    return members
