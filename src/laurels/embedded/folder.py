"""The data folder: what lies where in it, and the lock that lets only one Laurels use it.

lock               held by Laurels, its supervisor and both servers; names the process id
runtime.json       while the servers run: their sockets and process ids
postgres.password  made once; readable by the user who runs Laurels
*.log              valkey, postgres, supervisor
valkey/            the append-only file
postgres/          the cluster
bin/               copies of the servers, where they cannot be run from their wheels
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import platformdirs

from laurels.embedded.account import ServerUser, barrier, server_user, us
from laurels.embedded.supervise import PATIENCE, Runtime
from laurels.errors import DataFolderLocked, DataFolderUnusable

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_FREE_BYTES = 64 * 1024 * 1024
"""A new cluster takes 40 MB, and PostgreSQL's next write-ahead file 16 MB."""
LARGEST_LOG_BYTES = 10 * 1024 * 1024
STOPPING_BOUND = 3 * PATIENCE
"""Seconds: longer than the supervisor takes to stop servers that obey only SIGKILL."""
QUIET = 0.3
"""Seconds that the lock may be taken without a word: `attach` takes it for an instant, to look."""
NOT_OURS_BUT_HARMLESS = {"lost+found", ".DS_Store"}
ELSEWHERE = "choose another folder with --data-dir"


@dataclass(frozen=True)
class DataFolder:
    path: Path

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def runtime(self) -> Path:
        return self.path / "runtime.json"

    @property
    def password(self) -> Path:
        return self.path / "postgres.password"

    @property
    def valkey(self) -> Path:
        return self.path / "valkey"

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def postgres_being_made(self) -> Path:
        return self.path / "postgres.new"

    @property
    def binaries(self) -> Path:
        return self.path / "bin"

    def log(self, name: str) -> Path:
        return self.path / f"{name}.log"

    def server_user(self) -> ServerUser:
        return server_user(self.path, (self.postgres, self.valkey))

    def read_runtime(self) -> Runtime | None:
        """What the supervisor wrote last. It may be stale: only the lock says that somebody is there."""
        try:
            return msgspec.json.decode(self.runtime.read_bytes(), type=Runtime)
        except (FileNotFoundError, msgspec.DecodeError):
            return None


@dataclass(frozen=True)
class Holder:
    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def default_data_dir() -> Path:
    return Path("/var/lib/laurels") if os.geteuid() == 0 else platformdirs.user_data_path("laurels")


def make(data_dir: Path) -> DataFolder:
    """The folder exists, is empty or Laurels' own, and we may write into it."""
    path = data_dir.expanduser().resolve()
    folder = DataFolder(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = {entry.name for entry in path.iterdir()} - NOT_OURS_BUT_HARMLESS
        if names and folder.lock.name not in names:
            raise DataFolderUnusable(f"{path} holds other files: choose an empty folder with --data-dir")
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError  # noqa: TRY301  # one answer for all the ways to be refused
    except (FileExistsError, NotADirectoryError):
        raise DataFolderUnusable(f"{path} is a file, or lies in one: {ELSEWHERE}") from None
    except PermissionError:
        raise DataFolderUnusable(f"{path} cannot be written by {us().name}: {ELSEWHERE}") from None
    except OSError as error:
        raise DataFolderUnusable(f"{path} cannot be used ({error.strerror}): {ELSEWHERE}") from None
    free = shutil.disk_usage(path).free
    if free < LEAST_FREE_BYTES:
        raise DataFolderUnusable(
            f"{path} is on a disk with only {free // 1024**2} MB free: make room, or {ELSEWHERE}"
        )
    return folder


def give_to(folder: DataFolder, user: ServerUser) -> None:
    """The servers can enter the data folder, nobody else can, and the folder of Valkey is theirs."""
    if folder.path.stat().st_uid == os.geteuid():
        if not user.is_us:
            os.chown(folder.path, -1, user.gid)
        folder.path.chmod(0o700 if user.is_us else 0o710)
    obstacle = barrier(folder.path, user)
    if obstacle is not None:
        raise DataFolderUnusable(
            f"{obstacle} cannot be entered by {user.name}, as whom the servers run: "
            f"choose a folder outside it with --data-dir, or allow it with chmod o+x {obstacle}"
        )
    make_private(folder.valkey, user)


def make_private(path: Path, user: ServerUser) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
        if not user.is_us:
            os.chown(path, user.uid, user.gid, follow_symlinks=False)


def start_log(folder: DataFolder, name: str) -> Path:
    """Where the log goes. One that has grown large becomes `*.log.1`, and a new one begins."""
    path = folder.log(name)
    if path.is_file() and path.stat().st_size > LARGEST_LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path


def end_of_log(folder: DataFolder, name: str) -> str:
    """The last lines, indented."""
    try:
        lines = folder.log(name).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    return "\n".join(f"  {line}" for line in lines[-8:]) or "  (its log is empty)"


def running_pids(runtime: Runtime) -> dict[str, int]:
    """The processes that run now: `supervisor`, `valkey`, `postgres`."""
    pids = {"supervisor": runtime.supervisor, **{name: one.pid for name, one in runtime.servers.items()}}
    return {name: pid for name, pid in pids.items() if pid is not None and is_alive(pid)}


def take_lock(folder: DataFolder, say: Callable[[str], None]) -> int:
    """The descriptor that holds the lock: for as long as any process has it open.

    Servers whose Laurels was killed hold it until they have stopped: that is waited for.
    """
    lock = _open_lock(folder, os.O_RDWR | os.O_CREAT)
    try:
        _wait_for_lock(folder, lock, say)
    except BaseException:
        os.close(lock)
        raise
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()} {_our_command()}\n".encode(), 0)
    return lock


def holder(folder: DataFolder) -> Holder | None:
    """Who holds the lock; None when it is free. Pid 0: somebody who has not said so yet."""
    try:
        lock = _open_lock(folder, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return None if _try_lock(lock, fcntl.LOCK_SH) else _read_holder(lock) or Holder(0, "starting")
    finally:
        os.close(lock)


def wait_until_left(folder: DataFolder, pid: int) -> None:
    """Returns when the servers of this process are gone too, if its supervisor could not wait for them."""
    deadline = time.monotonic() + STOPPING_BOUND
    while (there := holder(folder)) and there.pid == pid and time.monotonic() < deadline:
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether the process runs: one that nobody has reaped yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return sys.platform != "linux"


def _wait_for_lock(folder: DataFolder, lock: int, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    said = False
    while not _try_lock(lock, fcntl.LOCK_EX):
        there = _read_holder(lock)
        waited = time.monotonic() - began
        if waited > QUIET and there and is_alive(there.pid):
            raise DataFolderLocked(f"{folder.path} is in use by {there}; stop it, or {ELSEWHERE}")
        if waited > QUIET and not said:
            say("waiting for the previous servers to stop")
            said = True
        if waited > STOPPING_BOUND:
            raise DataFolderLocked(
                f"{folder.path} is still in use by servers that do not stop ({_left_behind(folder)}); "
                f"end them, or {ELSEWHERE}"
            )
        time.sleep(0.02)


def _left_behind(folder: DataFolder) -> str:
    runtime = folder.read_runtime()
    pids = {} if runtime is None else running_pids(runtime)
    return ", ".join(f"{name} {pid}" for name, pid in pids.items()) or "their process ids are not known"


def _open_lock(folder: DataFolder, flags: int) -> int:
    try:
        lock = os.open(folder.lock, flags | os.O_NOFOLLOW, 0o600)
    except PermissionError:
        raise DataFolderUnusable(
            f"{folder.path} belongs to another user: run this as the user who runs Laurels there"
        ) from None
    status = os.fstat(lock)
    # Root may be in a folder of another user, who could have put a link to any file there.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(lock)
        raise DataFolderUnusable(f"{folder.lock} is not a plain file: remove it")
    return lock


def _try_lock(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(lock: int) -> Holder | None:
    written = re.fullmatch(r"(\d+) (.*)\n", os.pread(lock, 200, 0).decode(errors="replace"))
    return Holder(int(written[1]), written[2]) if written else None


def _our_command() -> str:
    """`laurels serve`: the program and its first word, never options, which may hold secrets."""
    program, *words = sys.argv or ["python"]
    return " ".join([Path(program).name or "python", *(word for word in words[:1] if word.isalpha())])
