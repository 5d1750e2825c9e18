"""Starting servers on a data folder, stopping them, and using those that another process started."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from laurels.embedded import binaries, folder, postgres, supervise, valkey
from laurels.embedded.account import ServerUser, account_for
from laurels.embedded.folder import DataFolder, running_pids
from laurels.embedded.sockets import make_socket_folder
from laurels.embedded.supervise import Plan, Runtime, Server
from laurels.errors import DataFolderUnusable, StartupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from laurels.embedded.binaries import Binaries

TITLES = {valkey.NAME: "Valkey", postgres.NAME: "PostgreSQL"}
VARIABLES = {valkey.NAME: "LAURELS_VALKEY_URL", postgres.NAME: "LAURELS_POSTGRES_URL"}
SUPERVISOR = "supervisor"
POLL = 0.01
SAY_EVERY = 1.0
"""Seconds between two words about the same server's progress."""


@dataclass(frozen=True)
class Endpoints:
    valkey_url: str
    """For redis-py: `unix:///run/.../valkey.sock`."""
    postgres_url: str
    """For SQLAlchemy with psycopg 3: `postgresql+psycopg://laurels:...@/laurels?host=/run/...`."""


@dataclass(frozen=True)
class External:
    """Servers that run elsewhere and are not started here."""

    valkey_url: str | None = None
    postgres_url: str | None = None

    @property
    def endpoints(self) -> Endpoints | None:
        """None unless both servers run elsewhere."""
        if self.valkey_url and self.postgres_url:
            return Endpoints(self.valkey_url, self.postgres_url)
        return None

    @property
    def needed(self) -> frozenset[str]:
        """The servers to start."""
        urls = {valkey.NAME: self.valkey_url, postgres.NAME: self.postgres_url}
        return frozenset(name for name, url in urls.items() if not url)


NOTHING_EXTERNAL = External()


class EmbeddedServers:
    """Servers that are ready and ours. They stop when told to, and also when this process ends in any way."""

    def __init__(
        self,
        data_folder: DataFolder,
        plan: Plan,
        supervisor: subprocess.Popen[bytes],
        endpoints: Endpoints,
    ) -> None:
        self.data_dir = data_folder.path
        self.endpoints = endpoints
        self._folder = data_folder
        self._sockets = Path(plan.sockets)
        self._lock: int | None = plan.lock
        self._supervisor = supervisor
        self._owner = os.getpid()
        atexit.register(self.stop)

    @property
    def pids(self) -> dict[str, int]:
        """The processes that run now: `supervisor`, `valkey`, `postgres`."""
        runtime = self._folder.read_runtime()
        return {} if runtime is None else running_pids(runtime)

    @property
    def running(self) -> bool:
        """False after a stop, or when somebody killed the supervisor, with whom the servers stop."""
        return self._supervisor.poll() is None

    def stop(self) -> None:
        """Returns when every process is gone and the data folder is free. Again: does nothing."""
        if self._lock is None or self._owner != os.getpid():
            return
        if self._supervisor.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._supervisor.stdin.close()
        self._supervisor.wait()
        # The supervisor removes these itself, unless it was killed.
        self._folder.runtime.unlink(missing_ok=True)
        shutil.rmtree(self._sockets, ignore_errors=True)
        os.close(self._lock)
        self._lock = None
        folder.wait_until_left(self._folder, os.getpid())
        atexit.unregister(self.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(
    data_dir: Path,
    *,
    external: External = NOTHING_EXTERNAL,
    programs: Binaries | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> EmbeddedServers:
    """The servers that do not run elsewhere, running on the data folder and ready.

    `programs` are used instead of those in the wheels; `say` is told what takes long.

    Raises DataFolderLocked when another process has the folder, DataFolderUnusable when the servers
    cannot live in it, StartupError when one of them does not start.
    """
    data_folder = folder.make(data_dir)
    lock = folder.take_lock(data_folder, say)
    try:
        plan = _plan(data_folder, lock, external.needed, programs, say)
        endpoints = _endpoints(data_folder, Path(plan.sockets), external)
        supervisor = _start_supervisor(data_folder, plan)
    except OSError as error:
        os.close(lock)
        raise DataFolderUnusable(f"{data_folder.path} cannot be used: {error}") from error
    except BaseException:
        os.close(lock)
        raise
    servers = EmbeddedServers(data_folder, plan, supervisor, endpoints)
    try:
        _tell(supervisor, json.dumps(asdict(plan)).encode() + b"\n")
        _wait_until_ready(data_folder, plan, supervisor, say)
    except BaseException:
        servers.stop()
        raise
    return servers


def attach(data_dir: Path, external: External = NOTHING_EXTERNAL) -> Endpoints | None:
    """The endpoints of servers that another process runs on the folder; None when they are not ready.

    Raises DataFolderUnusable when they belong to another user, or are not those that are needed.
    """
    data_folder = DataFolder(data_dir.expanduser().resolve())
    holder = folder.holder(data_folder)
    if holder is None or not folder.is_alive(holder.pid):
        return None
    try:
        runtime = data_folder.read_runtime()
    except PermissionError:
        raise DataFolderUnusable(
            f"{data_folder.path} is in use by {holder} of another user: run this as that user"
        ) from None
    if runtime is None or not runtime.ready or not folder.is_alive(runtime.supervisor):
        return None
    for name in external.needed - runtime.servers.keys():
        raise DataFolderUnusable(
            f"{data_folder.path} is in use by {holder}, which uses another {TITLES[name]} than the folder's: "
            f"set {VARIABLES[name]} as it is set there"
        )
    return _endpoints(data_folder, Path(runtime.sockets), external)


def _plan(
    data_folder: DataFolder,
    lock: int,
    needed: frozenset[str],
    given: Binaries | None,
    say: Callable[[str], None],
) -> Plan:
    """Everything that the servers need is in place; what is left is to run them."""
    user = data_folder.server_user()
    folder.give_to(data_folder, user)
    programs = given or binaries.for_users(_users_of_programs(data_folder, user), data_folder.binaries)
    if postgres.NAME in needed:
        postgres.make_ready(data_folder, programs, user, lock, say)
    data_folder.runtime.unlink(missing_ok=True)
    sockets = make_socket_folder(data_folder.path, user)

    def server(name: str, command: list[str], environment: dict[str, str], stop_signals: list[int]) -> Server:
        log = str(folder.start_log(data_folder, name))
        uid, gid = (None, None) if user.is_us else (user.uid, user.gid)
        return Server(name, command, environment, log, stop_signals, uid, gid)

    run_valkey = valkey.command_line(programs.valkey_server, data_folder.valkey, sockets)
    run_postgres = postgres.command_line(programs.postgres, data_folder.postgres, sockets)
    servers = [
        server(valkey.NAME, run_valkey, valkey.environment(programs.valkey_server), valkey.STOP_SIGNALS),
        server(postgres.NAME, run_postgres, postgres.ENVIRONMENT, postgres.STOP_SIGNALS),
    ]
    wanted = [each for each in servers if each.name in needed]
    return Plan(os.getpid(), lock, str(data_folder.runtime), str(sockets), wanted)


def _users_of_programs(data_folder: DataFolder, user: ServerUser) -> list[ServerUser]:
    return [user] if data_folder.postgres.exists() else [user, account_for(user)]


def _start_supervisor(data_folder: DataFolder, plan: Plan) -> subprocess.Popen[bytes]:
    """In a session of its own, where Ctrl-C at a terminal does not reach it."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    log = os.open(folder.start_log(data_folder, SUPERVISOR), flags, 0o600)
    try:
        return subprocess.Popen(  # noqa: S603  # our own interpreter and file
            # The folder is named for whoever lists the processes.
            [sys.executable, "-I", "-S", supervise.__file__, str(data_folder.path)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            pass_fds=(plan.lock,),
        )
    finally:
        os.close(log)


def _tell(supervisor: subprocess.Popen[bytes], line: bytes) -> None:
    if supervisor.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # that it died is noticed by those who wait for it
            supervisor.stdin.write(line)
            supervisor.stdin.flush()


def _wait_until_ready(
    data_folder: DataFolder,
    plan: Plan,
    supervisor: subprocess.Popen[bytes],
    say: Callable[[str], None],
) -> None:
    """As long as it takes: a large append-only file or a long recovery is no reason to give up."""
    waits = {
        valkey.NAME: lambda: valkey.waiting_for(Path(plan.sockets)),
        postgres.NAME: lambda: postgres.waiting_for(data_folder.postgres),
    }
    said_at = time.monotonic()
    told = False
    while True:
        runtime = data_folder.read_runtime()
        if runtime is not None and runtime.ready:
            return
        _raise_if_one_stopped(data_folder, supervisor, runtime)
        doing = list(filter(None, (waits[server.name]() for server in plan.servers)))
        if not doing and not told:
            _tell(supervisor, supervise.READY)
            told = True
        if doing and time.monotonic() - said_at > SAY_EVERY:
            say(", ".join(doing))
            said_at = time.monotonic()
        time.sleep(POLL)


def _raise_if_one_stopped(
    data_folder: DataFolder, supervisor: subprocess.Popen[bytes], runtime: Runtime | None
) -> None:
    exit_codes = {SUPERVISOR: supervisor.poll()}
    if runtime is not None:
        exit_codes |= {name: status.exit_code for name, status in runtime.servers.items()}
    for name, exit_code in exit_codes.items():
        if exit_code is not None:
            last_lines = folder.end_of_log(data_folder, name)
            title = TITLES.get(name, f"the {name}")
            raise StartupError(f"{title} stopped at its start (exit code {exit_code}):\n{last_lines}")


def _endpoints(data_folder: DataFolder, sockets: Path, external: External) -> Endpoints:
    return Endpoints(
        external.valkey_url or valkey.url(sockets),
        external.postgres_url or postgres.url(sockets, postgres.read_password(data_folder)),
    )
