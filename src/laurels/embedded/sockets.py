"""The folder where the servers listen: short, private, one for each data folder.

A socket's path may have 103 bytes on macOS and 107 on Linux, however long the data folder's path is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from laurels.errors import StartupError

if TYPE_CHECKING:
    from laurels.embedded.account import ServerUser

LONGEST_SOCKET_PATH = 103
LONGEST_SOCKET_NAME = ".s.PGSQL.5432"
HASH_LENGTH = 12
SYSTEM_RUN = Path("/run")
SHARED_TEMPORARY = Path("/tmp")  # noqa: S108  # short on every system; what we make in it is verified


def make_socket_folder(data_dir: Path, user: ServerUser) -> Path:
    """An empty folder, which only the servers (and root) can enter. To be called under the lock."""
    ours = _our_folder()
    enterable = 0o700 if user.is_us else 0o711
    try:
        ours.mkdir(mode=0o700)
        ours.chmod(enterable)
    except FileExistsError:
        _verify(ours, enterable)
    sockets = ours / hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:HASH_LENGTH]
    if sockets.exists():
        shutil.rmtree(sockets)
    sockets.mkdir(mode=0o700)
    if not user.is_us:
        os.chown(sockets, user.uid, user.gid)
    return sockets


def _our_folder() -> Path:
    """Where all the socket folders of this user lie."""
    if os.geteuid() == 0 and os.access(SYSTEM_RUN, os.W_OK):
        return SYSTEM_RUN / "laurels"
    of_session = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if of_session.is_absolute() and _is_usable(of_session):
        return of_session / "laurels"
    return SHARED_TEMPORARY / f"laurels-{os.geteuid()}"


def _is_usable(of_session: Path) -> bool:
    longest = of_session / "laurels" / ("x" * HASH_LENGTH) / LONGEST_SOCKET_NAME
    if len(os.fsencode(longest)) > LONGEST_SOCKET_PATH:
        return False
    try:
        return of_session.stat().st_uid == os.geteuid() and os.access(of_session, os.W_OK | os.X_OK)
    except OSError:
        return False


def _verify(ours: Path, mode: int) -> None:
    """Whoever made it, nobody but us can have put anything into it."""
    status = ours.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise StartupError(f"{ours} was made by another user: it has to be removed")
    if stat.S_IMODE(status.st_mode) & ~mode:
        raise StartupError(f"{ours} is open to other users: it has to be removed")
