"""The user that runs the servers, and whether that user can reach a path.

The servers of an ordinary user run as that user. Those of root never run as root: they run as the owner of
the data folder, or, if root owns it, with a user id that has no account. That user id then owns the folders
of the two servers, and root everything else in the data folder.
"""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laurels.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SET_URLS = "set LAURELS_VALKEY_URL and LAURELS_POSTGRES_URL to servers of your own"
DYNAMIC_IDS = range(61184, 65520)
"""systemd's range for dynamic users: no distribution assigns these ids."""


@dataclass(frozen=True)
class ServerUser:
    uid: int
    gid: int

    @property
    def is_us(self) -> bool:
        return self.uid == os.geteuid()

    @property
    def has_account(self) -> bool:
        return _has_account(self.uid)

    @property
    def name(self) -> str:
        return pwd.getpwuid(self.uid).pw_name if self.has_account else f"user id {self.uid}"


def us() -> ServerUser:
    return ServerUser(os.geteuid(), os.getegid())


def server_user(data_dir: Path, server_folders: Iterable[Path]) -> ServerUser:
    """The user that runs the servers: always the same for a folder, also after it was moved."""
    if os.geteuid() != 0:
        return us()
    for folder in (data_dir, *server_folders):
        if folder.exists() and (owner := folder.stat().st_uid) != 0:
            return ServerUser(owner, pwd.getpwuid(owner).pw_gid if _has_account(owner) else owner)
    return _user_without_account(data_dir)


def account_for(user: ServerUser) -> ServerUser:
    """The user for tools that require an account: the same user, or `nobody` in the user's group."""
    if user.has_account:
        return user
    if os.geteuid() != 0:
        raise StartupError(
            f"{user.name} has no account, and PostgreSQL's initdb needs one: run Laurels as a user with an "
            f"account, or {SET_URLS}"
        )
    for name in ("nobody", "daemon"):
        try:
            return ServerUser(pwd.getpwnam(name).pw_uid, user.gid)
        except KeyError:
            continue
    raise StartupError(
        "PostgreSQL's initdb needs an unprivileged account, and neither nobody nor daemon exists: "
        f"create one of them, or {SET_URLS}"
    )


def barrier(path: Path, user: ServerUser) -> Path | None:
    """The outermost folder on the path that the user cannot enter."""
    for folder in reversed([path, *path.parents] if path.is_dir() else path.parents):
        if not _may(folder.stat(), user, stat.S_IXOTH):
            return folder
    return None


def can_run(program: Path, user: ServerUser) -> bool:
    return barrier(program, user) is None and _may(program.stat(), user, stat.S_IROTH | stat.S_IXOTH)


def _may(status: os.stat_result, user: ServerUser, bits: int) -> bool:
    """Whether the mode grants all these bits (of the class `others`) to the user."""
    if status.st_uid == user.uid:
        bits <<= 6
    elif status.st_gid == user.gid:
        bits <<= 3
    return status.st_mode & bits == bits


def _user_without_account(data_dir: Path) -> ServerUser:
    first = int.from_bytes(hashlib.sha256(os.fsencode(data_dir)).digest()[:8])
    for step in range(len(DYNAMIC_IDS)):
        number = DYNAMIC_IDS[(first + step) % len(DYNAMIC_IDS)]
        if not _has_account(number) and not _has_group(number):
            return ServerUser(number, number)
    raise StartupError("every user id from 61184 to 65519 is taken: give the data folder to another user")


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _has_group(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True
