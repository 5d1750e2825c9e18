"""When Laurels or one of its servers dies in any way, no process stays and no acknowledged write is lost."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from embedded_processes import Writer, increment, insert, is_gone, processes_of, written
from waiting import until

from laurels import embedded

if TYPE_CHECKING:
    from laurels.embedded import EmbeddedServers

CRASH_ROUNDS = int(os.environ.get("CRASH_ROUNDS", "6"))
ENDS = [signal.SIGTERM, signal.SIGKILL, signal.SIGINT]


def wait_until_gone(pids: dict[str, int], data_dir: Path) -> None:
    until(lambda: all(is_gone(pid) for pid in pids.values()))
    until(lambda: processes_of(data_dir) == [])


def test_no_orphans_and_nothing_lost_however_laurels_ends(data_dir: Path):
    acknowledged: list[int] = []
    for crash in range(CRASH_ROUNDS):
        writer = Writer(data_dir).wait_until_serving()
        writer.wait_until_written(100)
        writer.end_with(ENDS[crash % len(ENDS)])
        wait_until_gone(writer.pids, data_dir)
        with embedded.start(data_dir) as servers:
            counter, rows = written(servers.endpoints)
        acknowledged += writer.acknowledged
        assert counter - acknowledged[-1] in (0, 1)
        assert rows >= set(acknowledged)


def test_a_start_right_after_a_kill_waits_for_the_old_servers(data_dir: Path):
    writer = Writer(data_dir).wait_until_serving()
    writer.wait_until_written(10)
    writer.end_with(signal.SIGKILL)
    with embedded.start(data_dir) as servers:
        assert all(is_gone(pid) for pid in writer.pids.values())
        assert written(servers.endpoints)[1] >= set(writer.acknowledged)


def test_a_supervisor_that_is_killed_takes_its_servers_along(data_dir: Path):
    servers = embedded.start(data_dir)
    pids = servers.pids
    increment(servers.endpoints)
    insert(servers.endpoints)
    os.kill(pids["supervisor"], signal.SIGKILL)
    wait_until_gone(pids, data_dir)
    assert not servers.running
    assert embedded.attach(data_dir) is None
    servers.stop()
    with embedded.start(data_dir) as again:
        assert (increment(again.endpoints), insert(again.endpoints)) == (2, 2)


def test_a_stop_waits_for_servers_whose_supervisor_was_killed(data_dir: Path):
    servers = embedded.start(data_dir)
    os.kill(servers.pids["supervisor"], signal.SIGKILL)
    sockets = Path(servers.endpoints.valkey_url.removeprefix("unix://")).parent
    servers.stop()
    assert processes_of(data_dir) == []
    assert not sockets.exists()
    assert not (data_dir / "runtime.json").exists()


@pytest.mark.parametrize("name", ["valkey", "postgres"])
def test_a_server_that_is_killed_is_started_again_on_the_same_socket(data_dir: Path, name: str):
    def works(servers: EmbeddedServers) -> bool:
        try:
            return increment(servers.endpoints) > 1 and insert(servers.endpoints) > 1
        except (OSError, psycopg.OperationalError):
            return False

    with embedded.start(data_dir) as servers:
        increment(servers.endpoints)
        insert(servers.endpoints)
        endpoints, killed = servers.endpoints, servers.pids[name]
        os.kill(killed, signal.SIGKILL)
        until(lambda: servers.pids.get(name, killed) != killed)
        until(lambda: works(servers))
        assert servers.endpoints == endpoints
        assert f"starting {name} again" in (data_dir / "supervisor.log").read_text()
    assert processes_of(data_dir) == []


def test_a_half_made_database_is_made_again(data_dir: Path):
    writer = Writer(data_dir)
    until((data_dir / "postgres.new" / "cluster" / "PG_VERSION").exists)
    writer.end_with(signal.SIGKILL)
    assert not (data_dir / "postgres").exists()
    with embedded.start(data_dir) as servers:
        assert insert(servers.endpoints) == 1
    assert not (data_dir / "postgres.new").exists()


def test_a_reused_process_id_of_a_killed_postgres_does_not_prevent_a_start(data_dir: Path):
    embedded.start(data_dir).stop()
    with subprocess.Popen(["sleep", "600"]) as innocent:  # noqa: S607  # of any system
        (data_dir / "postgres" / "postmaster.pid").write_text(f"{innocent.pid}\n{data_dir}/postgres\n")
        said: list[str] = []
        with embedded.start(data_dir, say=said.append) as servers:
            assert insert(servers.endpoints) == 1
        assert "PostgreSQL is recovering" in said
        innocent.kill()
