"""The data folder: its contents, and the lock that lets only one Laurels use it.

lock               held by Laurels, its supervisor and both servers; contains the process id of Laurels
runtime.json       the sockets and process ids of the servers while they run
postgres.password  made once; readable by the user who runs Laurels
*.log              valkey, postgres, supervisor
valkey/            the append-only file
postgres/          the cluster
bin/               copies of the programs, if the servers' user cannot run them in their wheels
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
from laurels.embedded.supervise import STOP_SECONDS, Runtime
from laurels.errors import DataFolderLocked, DataFolderUnusable

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_FREE_BYTES = 64 * 1024 * 1024
"""A new cluster takes 40 MB, the next write-ahead file of PostgreSQL 16 MB."""
LARGEST_LOG_BYTES = 10 * 1024 * 1024
STOPPING_BOUND = 3 * STOP_SECONDS
"""Seconds: longer than the supervisor takes to stop servers that obey only SIGKILL."""
QUIET = 0.3
"""Seconds to wait for the lock before reporting anything: `attach` takes it for a moment to look."""
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
        """What the supervisor wrote last. It may be stale: only the lock shows that the servers run."""
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
    """Makes the folder; raises `DataFolderUnusable` unless it is writable, and empty or Laurels' own."""
    path = data_dir.expanduser().resolve()
    folder = DataFolder(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = {entry.name for entry in path.iterdir()} - NOT_OURS_BUT_HARMLESS
        if names and folder.lock.name not in names:
            raise DataFolderUnusable(f"{path} holds other files: choose an empty folder with --data-dir")
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError  # noqa: TRY301  # handled below with the errors of mkdir
    except (FileExistsError, NotADirectoryError):
        raise DataFolderUnusable(f"{path} is a file, or is inside one: {ELSEWHERE}") from None
    except PermissionError:
        raise DataFolderUnusable(f"{us().name} cannot write to {path}: {ELSEWHERE}") from None
    except OSError as error:
        raise DataFolderUnusable(f"{path} cannot be used ({error.strerror}): {ELSEWHERE}") from None
    free = shutil.disk_usage(path).free
    if free < LEAST_FREE_BYTES:
        raise DataFolderUnusable(
            f"{path} is on a disk with only {free // 1024**2} MB free: make room, or {ELSEWHERE}"
        )
    return folder


def give_to(folder: DataFolder, user: ServerUser) -> None:
    """Lets only the servers' user enter the data folder, and makes the folder of Valkey for it."""
    if folder.path.stat().st_uid == os.geteuid():
        if not user.is_us:
            os.chown(folder.path, -1, user.gid)
        folder.path.chmod(0o700 if user.is_us else 0o710)
    obstacle = barrier(folder.path, user)
    if obstacle is not None:
        raise DataFolderUnusable(
            f"the servers run as {user.name}, which cannot enter {obstacle}: "
            f"choose a folder outside it with --data-dir, or allow it with chmod o+x {obstacle}"
        )
    make_private(folder.valkey, user)


def make_private(path: Path, user: ServerUser) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
        if not user.is_us:
            os.chown(path, user.uid, user.gid, follow_symlinks=False)


def start_log(folder: DataFolder, name: str) -> Path:
    """The path of a log. A large one is renamed to `*.log.1` first."""
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


def running_pids(runtime: Runtime | None) -> dict[str, int]:
    """The running processes by name: `supervisor`, `valkey`, `postgres`."""
    if runtime is None:
        return {}
    pids = {"supervisor": runtime.supervisor, **{name: one.pid for name, one in runtime.servers.items()}}
    return {name: pid for name, pid in pids.items() if pid is not None and is_alive(pid)}


def take_lock(folder: DataFolder, say: Callable[[str], None]) -> int:
    """The descriptor of the lock, which is held as long as any process has it open.

    Waits for servers whose Laurels was killed, because they hold the lock until they have stopped.
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
    """The process that holds the lock, or None. Its pid is 0 if it has not written it yet."""
    try:
        lock = _open_lock(folder, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return None if _try_lock(lock, fcntl.LOCK_SH) else _read_holder(lock) or Holder(0, "starting")
    finally:
        os.close(lock)


def wait_until_left(folder: DataFolder, pid: int) -> None:
    """Waits for the servers of this process, in case its supervisor was killed."""
    deadline = time.monotonic() + STOPPING_BOUND
    while (there := holder(folder)) and there.pid == pid and time.monotonic() < deadline:
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
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
    reported = False
    while not _try_lock(lock, fcntl.LOCK_EX):
        other = _read_holder(lock)
        waited = time.monotonic() - began
        if waited > QUIET and other and is_alive(other.pid):
            raise DataFolderLocked(f"{folder.path} is in use by {other}; stop it, or {ELSEWHERE}")
        if waited > QUIET and not reported:
            say("waiting for the previous servers to stop")
            reported = True
        if waited > STOPPING_BOUND:
            pids = [f"{name} {pid}" for name, pid in running_pids(folder.read_runtime()).items()]
            raise DataFolderLocked(
                f"{folder.path} is still in use by servers that do not stop "
                f"({', '.join(pids) or 'unknown process ids'}); end them, or {ELSEWHERE}"
            )
        time.sleep(0.02)


def _open_lock(folder: DataFolder, flags: int) -> int:
    try:
        lock = os.open(folder.lock, flags | os.O_NOFOLLOW, 0o600)
    except PermissionError:
        raise DataFolderUnusable(
            f"{folder.path} belongs to another user: run this as the user who runs Laurels there"
        ) from None
    status = os.fstat(lock)
    # In a folder of another user, root must not follow a link that the user has put there.
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
    """The program and its subcommand, such as `laurels serve`; without options, which may contain secrets."""
    program, *words = sys.argv or ["python"]
    return " ".join([Path(program).name or "python", *(word for word in words[:1] if word.isalpha())])
