"""Inspects a data folder without starting anything, for `laurels doctor`."""

from __future__ import annotations

import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from laurels.embedded import binaries, valkey
from laurels.embedded.account import ServerUser
from laurels.embedded.folder import DataFolder, holder, running_pids


@dataclass(frozen=True)
class Inspection:
    data_dir: Path
    exists: bool
    owner: str
    """The owner of the folder, or of the nearest parent that exists."""
    mode: int
    servers_run_as: str
    holder_pid: int | None
    """The Laurels that uses the folder now."""
    pids: dict[str, int]
    """The running ones of `supervisor`, `valkey` and `postgres`."""
    sockets: Path | None
    sockets_mode: int | None
    valkey_version: str
    valkey_allocator: str | None
    """The library preloaded for Valkey's memory; None for the C library's allocator."""
    postgres_version: str
    free_bytes: int


def inspect(data_dir: Path) -> Inspection:
    """Raises DataFolderUnusable for another user's folder, StartupError when a server is missing."""
    data_folder = DataFolder(data_dir.expanduser().resolve())
    used_by = holder(data_folder)
    nearest = next(path for path in (data_folder.path, *data_folder.path.parents) if path.exists())
    status = nearest.stat()
    runtime = data_folder.read_runtime() if used_by else None
    sockets = Path(runtime.sockets) if runtime else None
    programs = binaries.in_wheels()
    return Inspection(
        data_dir=data_folder.path,
        exists=data_folder.path.exists(),
        owner=ServerUser(status.st_uid, status.st_gid).name,
        mode=stat.S_IMODE(status.st_mode),
        servers_run_as=data_folder.server_user().name,
        holder_pid=used_by.pid if used_by else None,
        pids=running_pids(runtime),
        sockets=sockets,
        sockets_mode=stat.S_IMODE(sockets.stat().st_mode) if sockets and sockets.exists() else None,
        valkey_version=binaries.version(programs.valkey_server),
        valkey_allocator=valkey.allocator(programs.valkey_server),
        postgres_version=binaries.version(programs.postgres),
        free_bytes=shutil.disk_usage(nearest).free,
    )
