"""Does the background work, for `laurels worker` and in a child process of `laurels serve`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from rich.text import Text

from laurels.engine import Laurels
from laurels.jobs.agenda import AGENDA, LOOPS
from laurels.jobs.runner import Runner
from laurels.logs import configure_logs, get_logger
from laurels.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from laurels.cli.output import Output

# How long the child process may take to end.
END_SECONDS: Final = 10.0
# The first and the longest wait before a restart. After a run of `HEALTHY_SECONDS`, the first applies again.
PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
HEALTHY_SECONDS: Final = 60.0

PROGRAM: Final = """
from laurels.cli.application import collect_seldom
collect_seldom()
from laurels.cli.background import serve_parent
serve_parent()
"""
COMMAND: Final = (sys.executable, "-c", PROGRAM)

log = get_logger("laurels.worker")


def run(data_dir: Path | None, output: Output) -> None:
    """Works until Ctrl-C or SIGTERM."""
    configure_logs(load_settings(data_dir=data_dir))

    async def work() -> None:
        with output.working("Opening the stores") as say:
            laurels = Laurels(data_dir=data_dir, jobs=False, say=say)
            await laurels.open()
        try:
            stop = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
            names = [job.name for job in AGENDA]
            output.show({"jobs": names}, Text(f"Working: {', '.join(names)}. Ctrl-C stops it."))
            await Runner(laurels, AGENDA, LOOPS).run(stop)
        finally:
            await laurels.close()

    asyncio.run(work())


def serve_parent() -> None:
    """Works until the parent closes our stdin, which it does however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which stops us
    configure_logs(load_settings())

    async def work() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)

        def watch() -> None:
            while os.read(0, 1):
                pass
            loop.call_soon_threadsafe(stop.set)
            time.sleep(END_SECONDS)  # if anything hangs now, nothing waits for it
            os._exit(1)

        threading.Thread(target=watch, name="parent", daemon=True).start()
        async with Laurels(jobs=False) as laurels:
            await Runner(laurels, AGENDA, LOOPS).run(stop)

    asyncio.run(work())


class Background:
    """Runs a child process for background work: restarts it when it dies, and stops it with this one."""

    def __init__(self) -> None:
        self._ending = threading.Event()
        self._changing = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="background", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        with self._changing:
            self._ending.set()
            process = self._process
            if process and process.stdin:
                process.stdin.close()
        if process:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join()

    def _keep(self) -> None:
        pause = PAUSE_SECONDS
        while True:
            with self._changing:
                if self._ending.is_set():
                    return
                # A new session: the terminal's signals are for the parent.
                process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603  # our own command
                self._process = process
            began = time.monotonic()
            code = process.wait()
            if self._ending.is_set():
                return
            pause = PAUSE_SECONDS if time.monotonic() - began > HEALTHY_SECONDS else pause
            log.warning("background process ended; restarting it", code=code, after_seconds=pause)
            self._ending.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
