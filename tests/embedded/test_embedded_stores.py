from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import redis
from embedded_processes import ask_valkey, increment, insert, needs_root, postgres, processes_of
from sqlalchemy import create_engine, text

from laurels import embedded
from laurels.embedded import binaries, valkey
from laurels.embedded import servers as servers_module
from laurels.embedded import sockets as sockets_module
from laurels.embedded.account import us
from laurels.errors import StartupError

if TYPE_CHECKING:
    from laurels.embedded import EmbeddedServers


def test_writes_survive_a_stop_and_a_start(data_dir: Path):
    with embedded.start(data_dir) as servers:
        assert (increment(servers.endpoints), insert(servers.endpoints)) == (1, 1)
    assert processes_of(data_dir) == []
    with embedded.start(data_dir) as servers:
        assert (increment(servers.endpoints), insert(servers.endpoints)) == (2, 2)


def test_a_stop_leaves_nothing_behind_and_may_be_repeated(data_dir: Path):
    servers = embedded.start(data_dir)
    sockets = Path(servers.endpoints.valkey_url.removeprefix("unix://")).parent
    assert servers.running
    servers.stop()
    servers.stop()
    assert not servers.running
    assert processes_of(data_dir) == []
    assert not sockets.exists()
    assert not (data_dir / "runtime.json").exists()


def test_the_postgres_url_is_what_sqlalchemy_takes(running: EmbeddedServers):
    engine = create_engine(running.endpoints.postgres_url)
    with engine.connect() as connection:
        encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
        checksums = connection.execute(text("SHOW data_checksums")).scalar_one()
    engine.dispose()
    assert (encoding, checksums) == ("UTF8", "on")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appendonly", "yes"),
        ("appendfsync", "everysec"),
        ("save", ""),
        ("maxmemory-policy", "noeviction"),
        ("port", "0"),
    ],
)
def test_valkey_is_set_to_keep_everything(running: EmbeddedServers, name: str, value: str):
    with redis.Redis.from_url(running.endpoints.valkey_url) as connection:  # pyright: ignore[reportUnknownMemberType] untyped keywords
        assert connection.config_get(name) == {name: value}  # pyright: ignore[reportUnknownMemberType] untyped keywords


@pytest.mark.parametrize("password", ["wrong", ""])
def test_postgres_refuses_a_wrong_password_and_none(running: EmbeddedServers, password: str):
    without = running.endpoints.postgres_url.partition("@")[2]
    endpoints = embedded.Endpoints("", f"postgresql://laurels@{without}")
    with pytest.raises(psycopg.OperationalError, match="password"):
        postgres(endpoints, password=password, passfile="/nonexistent")


def test_postgres_access_rules_trust_no_connection(running: EmbeddedServers):
    rules = (running.data_dir / "postgres" / "pg_hba.conf").read_text().splitlines()
    methods = {rule.split()[-1] for rule in rules if rule and not rule.startswith("#")}
    assert methods == {"scram-sha-256"}


def test_sockets_and_secrets_are_private(running: EmbeddedServers):
    seen = embedded.inspect(running.data_dir)
    assert seen.sockets is not None
    assert seen.sockets_mode == 0o700
    for path in (seen.sockets / "valkey.sock", seen.sockets / ".s.PGSQL.5432"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for name in ("runtime.json", "postgres.password", "lock", "valkey.log", "postgres.log"):
        status = (running.data_dir / name).stat()
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o600, os.geteuid())
    assert stat.S_IMODE(running.data_dir.stat().st_mode) & 0o007 == 0


def test_inspection_shows_the_holder_and_the_servers(running: EmbeddedServers):
    seen = embedded.inspect(running.data_dir)
    assert seen.holder_pid == os.getpid()
    assert seen.pids == running.pids
    assert set(seen.pids) == {"supervisor", "valkey", "postgres"}
    assert seen.valkey_version.startswith("9.")
    assert seen.postgres_version.startswith("18.")
    assert seen.free_bytes > 0


def test_inspection_of_a_folder_that_is_not_there_creates_nothing(data_dir: Path):
    seen = embedded.inspect(data_dir)
    assert not seen.exists
    assert (seen.holder_pid, seen.pids, seen.sockets) == (None, {}, None)
    assert not data_dir.exists()


def test_a_data_folder_with_a_very_long_path_and_odd_characters_works(place: Path):
    data_dir = place / "/".join(['it\'s a "long" way, 100% ' + "x" * 60] * 4)
    data_dir.parent.mkdir(parents=True)
    assert len(str(data_dir)) > 300
    with embedded.start(data_dir) as servers:
        assert (increment(servers.endpoints), insert(servers.endpoints)) == (1, 1)


@pytest.mark.parametrize(("name", "used"), [("short", True), ("x" * 90, False)])
def test_the_sessions_folder_is_used_unless_it_is_too_long_for_sockets(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, used: bool
):
    use_shared_temporary_folder(place, monkeypatch)
    of_session = place / name
    of_session.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(of_session))
    sockets = sockets_module.make_socket_folder(place / "data", us())
    assert sockets.is_relative_to(of_session if used else place / f"laurels-{os.geteuid()}")


@pytest.mark.parametrize("squat", ["open to others", "a link"])
def test_a_squatted_socket_folder_is_refused(
    place: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch, squat: str
):
    ours = place / f"laurels-{os.geteuid()}"
    if squat == "a link":
        (place / "elsewhere").mkdir()
        ours.symlink_to(place / "elsewhere")
    else:
        ours.mkdir()
        ours.chmod(0o777)
    use_shared_temporary_folder(place, monkeypatch)
    with pytest.raises(StartupError, match=r"laurels-\d+ (is open to|was made by)"):
        embedded.start(data_dir)
    assert processes_of(data_dir) == []


@needs_root
def test_a_socket_folder_of_another_user_is_refused(
    place: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    squatted = place / "laurels-0"
    squatted.mkdir(mode=0o700)
    os.chown(squatted, 65534, 65534)
    use_shared_temporary_folder(place, monkeypatch)
    with pytest.raises(StartupError, match="was made by another user"):
        embedded.start(data_dir)


def use_shared_temporary_folder(instead: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets_module, "SYSTEM_RUN", Path("/nonexistent"))
    monkeypatch.setattr(sockets_module, "SHARED_TEMPORARY", instead)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def test_loading_a_large_append_only_file_is_reported_and_awaited(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    keys = 400_000
    with embedded.start(data_dir) as servers:
        script = f"for i = 1, {keys} do server.call('SET', i, i) end return {keys}"
        assert ask_valkey(servers.endpoints, f'EVAL "{script}" 0') == keys
    monkeypatch.setattr(servers_module, "REPORT_SECONDS", 0.0)
    said: list[str] = []
    with embedded.start(data_dir, say=said.append) as servers:
        assert ask_valkey(servers.endpoints, "DBSIZE") == keys
    assert any("Valkey is loading its data (" in message for message in said)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="preloading is Linux's")
def test_valkey_gets_the_allocator_where_the_machine_has_it(data_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(valkey, "ALLOCATOR", "libnobody-has-this.so.9")
    assert "LD_PRELOAD" not in valkey.environment(binaries.in_wheels().valkey_server)
    monkeypatch.setattr(valkey, "ALLOCATOR", "libresolv.so.2")  # of every glibc, and not used by Valkey
    with embedded.start(data_dir) as servers:
        assert "/libresolv.so.2" in Path(f"/proc/{servers.pids['valkey']}/maps").read_text()
