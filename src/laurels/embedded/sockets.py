"""The folder of the servers' sockets: a short path, private, one for each data folder.

The path of a socket has at most 103 bytes on macOS and 107 on Linux; that of the data folder may be longer.
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
SHARED_TEMPORARY = Path("/tmp")  # noqa: S108  # a short path on every system; `_verify` checks our folder in it


def make_socket_folder(data_dir: Path, user: ServerUser) -> Path:
    """Makes an empty folder that only the servers' user and root can enter. Call it under the lock."""
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
    """The parent of all socket folders of this user."""
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
    """Raises `StartupError` if another user may have put something into the folder."""
    status = ours.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise StartupError(f"{ours} was made by another user: remove it")
    if stat.S_IMODE(status.st_mode) & ~mode:
        raise StartupError(f"{ours} is open to other users: remove it")
