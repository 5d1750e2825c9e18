"""Rebuilds a board, and kills itself before it has sent this many commands to Valkey.

    python killed_rebuild.py VALKEY_URL POSTGRES_URL BOARD NOW COMMANDS

If the rebuild needs fewer, prints how many are left.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from laurels.clock import FixedClock
from laurels.engine import Laurels


async def main(valkey_url: str, postgres_url: str, board: str, now: str, commands: str) -> None:
    clock = FixedClock(int(now))
    async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, clock=clock) as laurels:
        left = int(commands)
        valkey: Any = laurels.valkey

        def or_die(send: Any) -> Any:  # noqa: ANN401  # a method, whichever
            async def send_or_die(*words: Any) -> Any:  # noqa: ANN401  # passed on
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return await send(*words)

            return send_or_die

        for way in ("command", "commands", "_call"):
            setattr(valkey, way, or_die(getattr(valkey, way)))
        await laurels.rebuild(board)
        print(left)  # noqa: T201  # for the test


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
