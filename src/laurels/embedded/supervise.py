"""The supervisor: a process that keeps the servers running exactly as long as Laurels runs.

It is run by its path, not as a module, and uses the standard library only, so it starts in a few milliseconds
and does not depend on the working folder or the environment. Its standard input is a pipe from Laurels. The
first line is the `Plan`; a later line, `READY`, says that the servers are ready. When the pipe
closes, Laurels has stopped or died, and the supervisor stops the servers.

The supervisor restarts a server that dies. If the supervisor is killed, the kernel tells the servers to stop
(Linux). All processes started here inherit the lock on the data folder and hold it until the last one ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

READY = b"ready\n"
LIFELINE = 0
"""File descriptor of the pipe from Laurels: standard input."""

STOP_SECONDS = 60.0
"""How long a server may take to obey a stop signal before the next, harsher one."""
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0
"""Seconds before a dead server is restarted; doubled for each death in a row."""
STEADY_SECONDS = 10.0
"""How long a server must run for its next death to count as the first."""
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Server:
    name: str
    command: list[str]
    environment: dict[str, str]
    log: str
    stop_signals: list[int]
    """The mildest first, SIGKILL last."""
    uid: int | None
    """None for the user who runs Laurels."""
    gid: int | None


@dataclass(frozen=True)
class Plan:
    holder: int
    lock: int
    runtime_file: str
    sockets: str
    servers: list[Server]


@dataclass(frozen=True)
class ServerStatus:
    pid: int | None
    exits: int = 0
    exit_code: int | None = None


@dataclass(frozen=True)
class Runtime:
    """The contents of `runtime.json`, for Laurels and other processes that use its servers."""

    holder: int
    supervisor: int
    sockets: str
    ready: bool
    servers: dict[str, ServerStatus]


class Child:
    """One server and its restarts."""

    def __init__(self, server: Server, lock: int) -> None:
        self.server = server
        self._lock = lock
        self._process: subprocess.Popen[bytes] | None = None
        self._exits = self._deaths_in_a_row = 0
        self._exit_code: int | None = None
        self._started_at = 0.0
        self.restart_at = 0.0

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def status(self) -> ServerStatus:
        pid = self._process.pid if self._process else None
        return ServerStatus(pid, self._exits, self._exit_code)

    def start(self) -> None:
        self._started_at = time.monotonic()
        log = os.open(self.server.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the command is written by laurels.embedded
                self.server.command,
                env=self.server.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.server.uid,
                group=self.server.gid,
                extra_groups=None if self.server.uid is None else [],
                pass_fds=(self._lock,),
                preexec_fn=stop_with_parent(self.server.stop_signals[0]),  # noqa: PLW1509  # no threads here
            )
        except (OSError, subprocess.SubprocessError) as error:
            os.write(log, f"laurels: {self.server.command[0]} cannot be run: {error}\n".encode())
            self._died(exit_code=-1)
        finally:
            os.close(log)

    def reap(self) -> bool:
        """Whether the server has died since the last call."""
        exit_code = self._process.poll() if self._process else None
        if exit_code is None:
            return False
        self._died(exit_code)
        return True

    def send(self, signal_number: int) -> None:
        if self._process:
            self._process.send_signal(signal_number)

    def _died(self, exit_code: int) -> None:
        self._process = None
        self._exits += 1
        self._exit_code = exit_code
        lived = time.monotonic() - self._started_at
        self._deaths_in_a_row = 1 if lived > STEADY_SECONDS else self._deaths_in_a_row + 1
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (self._deaths_in_a_row - 1))
        self.restart_at = time.monotonic() + delay
        report(f"{self.server.name} exited with code {exit_code}")


class Supervisor:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._children = [Child(server, plan.lock) for server in plan.servers]
        self._ready = self._stopping = False
        self._wakeup, write_end = os.pipe()
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end)
        signal.signal(signal.SIGCHLD, self._child_died)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._asked_to_stop)

    def run(self) -> None:
        try:
            for child in self._children:
                child.start()
            self._write_runtime()
            while not self._stopping:
                self._wait(self._seconds_to_next_restart(), lifeline=True)
                self._restart_the_dead()
        finally:
            self._stop()

    def _child_died(self, _signal: int, _frame: FrameType | None) -> None:
        """Does nothing: the byte in the wakeup pipe ends the wait."""

    def _asked_to_stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _wait(self, timeout: float | None, *, lifeline: bool) -> None:
        """Returns at a signal, at input from Laurels, or after the timeout."""
        watched = [self._wakeup, LIFELINE] if lifeline else [self._wakeup]
        readable, _, _ = select.select(watched, [], [], timeout)
        if self._wakeup in readable:
            os.read(self._wakeup, 4096)
        if LIFELINE in readable:
            if os.read(LIFELINE, 4096):
                self._ready = True
                self._write_runtime()
            else:
                self._stopping = True

    def _seconds_to_next_restart(self) -> float | None:
        times = [child.restart_at for child in self._children if not child.running]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _restart_the_dead(self) -> None:
        changed = False
        for child in self._children:
            changed |= child.reap()
            if not child.running and not self._stopping and child.restart_at <= time.monotonic():
                report(f"starting {child.server.name} again")
                child.start()
                changed = True
        if changed:
            self._write_runtime()

    def _stop(self) -> None:
        for step in range(max(len(child.server.stop_signals) for child in self._children)):
            for child in self._children:
                child.reap()
                child.send(child.server.stop_signals[min(step, len(child.server.stop_signals) - 1)])
            deadline = time.monotonic() + STOP_SECONDS
            while any(child.running for child in self._children) and time.monotonic() < deadline:
                self._wait(deadline - time.monotonic(), lifeline=False)
                for child in self._children:
                    child.reap()
        Path(self._plan.runtime_file).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            for socket_of_killed_server in Path(self._plan.sockets).iterdir():
                socket_of_killed_server.unlink()
            Path(self._plan.sockets).rmdir()

    def _write_runtime(self) -> None:
        """Replaces `runtime.json` atomically; only the user who runs Laurels can read it."""
        statuses = {child.server.name: child.status for child in self._children}
        runtime = Runtime(self._plan.holder, os.getpid(), self._plan.sockets, self._ready, statuses)
        fresh = Path(self._plan.runtime_file + ".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(runtime), file)
        fresh.replace(self._plan.runtime_file)


def stop_with_parent(signal_number: int) -> Callable[[], None] | None:
    """A function for the child to run before `exec`: it asks the kernel for this signal when we die.

    It must run after the change of user, which clears the request. The request is about the thread that
    forks; the supervisor has only one.
    """
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415  # needed on Linux only

    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def before_exec() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal_number)
        if os.getppid() != parent:
            os._exit(1)  # the parent died before the request

    return before_exec


def report(message: str) -> None:
    """Writes a line to `supervisor.log`."""
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}\n")
    sys.stderr.flush()


def read_plan() -> Plan:
    line = b""
    while not line.endswith(b"\n"):
        received = os.read(LIFELINE, 65536)
        if not received:
            sys.exit(0)  # Laurels died before it sent the plan
        line += received
    fields: dict[str, Any] = json.loads(line)
    servers = [Server(**server) for server in fields.pop("servers")]
    return Plan(**fields, servers=servers)


if __name__ == "__main__":
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # unblocks the signals that Laurels may have blocked
    Supervisor(read_plan()).run()
