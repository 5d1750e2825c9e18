from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from embedded_processes import increment

from laurels import embedded
from laurels.embedded import folder
from laurels.errors import DataFolderLocked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from laurels.embedded import EmbeddedServers


def run(program: str, data_dir: Path) -> str:
    command = [sys.executable, "-c", program, str(data_dir)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout


def test_a_second_start_is_refused_and_names_the_process(running: EmbeddedServers):
    with pytest.raises(DataFolderLocked, match=f"is in use by process {os.getpid()} .*--data-dir") as refusal:
        embedded.start(running.data_dir)
    assert "\n" not in str(refusal.value)


def test_the_lock_is_found_whatever_the_folder_is_called(running: EmbeddedServers, place: Path):
    (place / "link").symlink_to(running.data_dir)
    with pytest.raises(DataFolderLocked):
        embedded.start(place / "link")


def test_another_process_can_use_the_servers(running: EmbeddedServers):
    program = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from laurels import embedded
print(json.dumps(asdict(embedded.attach(Path(sys.argv[1])))))
"""
    endpoints = embedded.Endpoints(**json.loads(run(program, running.data_dir)))
    assert endpoints == running.endpoints
    assert increment(endpoints) == increment(running.endpoints) - 1


def test_attach_returns_none_when_no_servers_run(data_dir: Path):
    assert embedded.attach(data_dir) is None
    assert not data_dir.exists()
    with embedded.start(data_dir) as servers:
        assert embedded.attach(data_dir) == servers.endpoints
    assert embedded.attach(data_dir) is None


def test_a_runtime_file_without_a_lock_is_stale(data_dir: Path):
    with embedded.start(data_dir):
        left_behind = (data_dir / "runtime.json").read_bytes()
    (data_dir / "runtime.json").write_bytes(left_behind)
    assert embedded.attach(data_dir) is None
    with embedded.start(data_dir) as servers:
        assert increment(servers.endpoints) == 1


@pytest.fixture
def straggler(data_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Holds the lock with the pid of a dead process, as servers do whose Laurels was killed."""
    dead = subprocess.Popen(["true"])  # noqa: S607  # of any system
    dead.wait()
    data_dir.mkdir()
    with (data_dir / "lock").open("w") as lock:
        lock.write(f"{dead.pid} laurels serve\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(["sleep", "600"], pass_fds=(lock.fileno(),))  # noqa: S607  # of any system
    yield process
    process.kill()
    process.wait()


def test_a_start_waits_for_servers_that_are_still_stopping(
    data_dir: Path, straggler: subprocess.Popen[bytes]
):
    said: list[str] = []

    def say(message: str) -> None:
        said.append(message)
        straggler.kill()

    assert embedded.attach(data_dir) is None
    with embedded.start(data_dir, say=say) as servers:
        assert increment(servers.endpoints) == 1
    assert said[0] == "waiting for the previous servers to stop"


def test_servers_that_never_stop_are_named(
    data_dir: Path, straggler: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folder, "STOPPING_BOUND", 0.5)
    status = {"pid": straggler.pid, "exits": 0, "exit_code": None}
    runtime = {"holder": 1, "supervisor": straggler.pid, "sockets": "/", "ready": True}
    (data_dir / "runtime.json").write_text(json.dumps({**runtime, "servers": {"valkey": status}}))
    with pytest.raises(DataFolderLocked, match=f"valkey {straggler.pid}"):
        embedded.start(data_dir)
