from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from laurels import Laurels, doctor, embedded
from laurels.doctor import checks
from laurels.embedded import Inspection
from laurels.journal.streams import Backlog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from laurels.doctor import Finding, Status
    from laurels.embedded import Endpoints
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper().startswith("LAURELS_"):
            monkeypatch.delenv(name)


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="laurels-test-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
async def stores(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Valkey]:
    """The tests' own stores by their URLs, with a drained journal."""
    monkeypatch.setenv("LAURELS_VALKEY_URL", endpoints.valkey_url)
    monkeypatch.setenv("LAURELS_POSTGRES_URL", endpoints.postgres_url)
    async with Laurels() as laurels:
        await laurels.journal_drained()
        yield laurels.valkey


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


async def test_healthy_stores_have_no_complaints(
    stores: Valkey, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LAURELS_POSTGRES_URL", migrated_postgres_url)  # without indexes of other tests
    findings = await doctor.examine()
    assert [finding for finding in findings if finding.status != "ok"] == []
    assert {"Python", "Valkey", "append-only file", "memory", "functions", "PostgreSQL", "schema"} <= set(
        by_name(findings)
    )


@pytest.mark.parametrize(
    ("setting", "broken", "good", "found"),
    [
        ("maxmemory-policy", "allkeys-lru", "noeviction", ("memory", "wrong")),
        ("appendfsync", "no", "everysec", ("append-only file", "warning")),
        ("appendonly", "no", "yes", ("append-only file", "wrong")),
    ],
)
async def test_broken_setting_of_valkey_is_found(
    stores: Valkey, setting: str, broken: str, good: str, found: tuple[str, Status]
):
    await stores.command("CONFIG", "SET", setting, broken)
    try:
        finding = by_name(await doctor.examine())[found[0]]
    finally:
        await stores.command("CONFIG", "SET", setting, good)
    assert finding.status == found[1]
    assert setting in finding.fix


async def test_functions_of_another_version_are_reported_and_not_replaced(stores: Valkey):
    other = "#!lua name=laurels\nredis.register_function('laurels_other', function() return 1 end)"
    await stores.command("FUNCTION", "LOAD", "REPLACE", other)
    try:
        assert by_name(await doctor.examine())["functions"].status == "wrong"
        assert not await stores.functions_are_current()
    finally:
        await stores.load_functions()


async def test_missing_data_folder_is_not_created(place: Path):
    findings = by_name(await doctor.examine(place / "data"))
    assert findings["stores"].found == "not made yet"
    assert not (place / "data").exists()


async def test_data_folder_in_use_names_its_process(place: Path):
    with embedded.start(place / "data"):
        findings = by_name(await doctor.examine(place / "data"))
        assert findings["in use"].found == f"by process {os.getpid()}"
        assert findings["sockets"].status == "ok"
        assert (findings["schema"].status, findings["functions"].status) == ("warning", "warning")


async def test_wrong_setting_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAURELS_PORT", "many")
    assert by_name(await doctor.examine())["settings"].status == "wrong"


async def test_data_folder_that_is_a_file_is_found(place: Path):
    (place / "data").write_text("")
    finding = by_name(await doctor.examine(place / "data"))["data folder"]
    assert finding.status == "wrong"


INSPECTION = Inspection(
    data_dir=Path("/data"),
    exists=True,
    owner="me",
    mode=0o700,
    servers_run_as="me",
    holder_pid=None,
    pids={},
    sockets=Path("/run/x"),
    sockets_mode=0o700,
    valkey_version="9.1.2",
    valkey_allocator=None,
    postgres_version="18.4",
    free_bytes=10 * 1024**3,
)


@pytest.mark.parametrize(
    ("change", "name", "status"),
    [
        ({}, "data folder", "ok"),
        ({"mode": 0o755}, "data folder", "wrong"),
        ({"sockets_mode": 0o711}, "sockets", "wrong"),
        ({"free_bytes": 500 * 1024**2}, "disk", "warning"),
        ({"free_bytes": 1024**2}, "disk", "wrong"),
    ],
)
def test_data_folder_is_judged(change: dict[str, int], name: str, status: Status):
    finding = by_name(checks.judge_folder(replace(INSPECTION, **change), is_ours=False))[name]
    assert finding.status == status
    assert bool(finding.fix) == (status != "ok")


@pytest.mark.skipif(sys.platform == "darwin", reason="its allocator needs no other")
def test_allocator_is_shown_and_a_better_one_suggested():
    for allocator, is_suggested in ((None, True), ("libjemalloc.so.2", False)):
        inspection = replace(INSPECTION, valkey_allocator=allocator)
        finding = by_name(checks.judge_folder(inspection, is_ours=False))["allocator"]
        assert (finding.status, "libjemalloc2" in finding.fix) == ("ok", is_suggested)


@pytest.mark.parametrize(
    ("server", "status"),
    [
        ({"valkey_version": "9.1.2", "redis_version": "7.2.4"}, "ok"),
        ({"valkey_version": "10.0.0", "redis_version": "7.2.4"}, "ok"),
        ({"valkey_version": "9.1.1", "redis_version": "7.2.4"}, "wrong"),
        ({"valkey_version": "9.0.0", "redis_version": "7.2.4"}, "ok"),
        ({"valkey_version": "8.0.1", "redis_version": "7.2.4"}, "ok"),
        ({"valkey_version": "7.2.5", "redis_version": "7.2.4"}, "warning"),
        ({"redis_version": "7.0.15"}, "ok"),
        ({"redis_version": "6.2.0"}, "wrong"),
    ],
)
def test_valkey_versions_are_judged(server: dict[str, str], status: Status):
    assert checks.judge_valkey_version(server).status == status


def test_python_and_postgresql_versions_are_judged():
    assert checks.judge_python((3, 10, 1)).status == "wrong"
    assert checks.judge_postgres_version(150004).status == "wrong"
    assert checks.judge_postgres_version(160001) == doctor.Finding("PostgreSQL", "ok", "16.1")


@pytest.mark.parametrize(
    ("seconds", "status"), [(0.0, "ok"), (-0.9, "ok"), (5.0, "warning"), (-90.0, "wrong")]
)
def test_clock_skew_is_judged(seconds: float, status: Status):
    assert checks.judge_skew("Valkey's clock", seconds).status == status


@pytest.mark.parametrize(
    ("current", "status"), [(None, "warning"), ("0001", "warning"), ("0002", "ok"), ("0003", "wrong")]
)
def test_schema_is_judged(current: str | None, status: Status):
    assert checks.judge_schema(current, "0002").status == status


def test_nearly_full_memory_is_found():
    memory = {"maxmemory": "1000", "used_memory": "900", "maxmemory_policy": "noeviction"}
    assert checks.judge_memory(memory).status == "warning"


@pytest.mark.parametrize(
    ("durability", "lack", "fsync", "status"),
    [
        ("fast", None, "everysec", "ok"),
        ("fsync", None, "always", "ok"),
        ("fsync", None, "everysec", "warning"),
        ("replicated", None, None, "ok"),
        ("replicated", "a primary has no replica", "always", "wrong"),
    ],
)
def test_durability_is_judged_by_the_servers_abilities(
    durability: Durability, lack: str | None, fsync: str | None, status: Status
):
    assert checks.judge_durability(durability, lack, fsync).status == status


def test_journal_is_judged_by_its_backlog():
    assert checks.judge_journal(Backlog(), 100).status == "ok"
    assert (
        checks.judge_journal(Backlog(calls=3, bytes=100, age_seconds=1), 100).found
        == "3 calls wait for the archive"
    )
    assert checks.judge_journal(Backlog(calls=3, bytes=101), 100).status == "warning"
    dead = checks.judge_journal(Backlog(dead_letters=2), 100)
    assert (dead.status, dead.found) == ("warning", "2 entries of the journal could not be archived")
    assert "`…:dead`" in dead.fix


@pytest.mark.parametrize(
    ("durability", "connected", "least", "statuses"),
    [
        ("fast", "2", "0", []),
        ("replicated", "0", "0", []),
        ("replicated", "2", "0", ["warning"]),
        ("replicated", "2", "1", ["warning"]),
        ("replicated", "2", "2", ["ok"]),
        ("replicated", "2", None, ["ok"]),
    ],
)
def test_primary_that_writes_without_its_replicas_is_found(
    durability: Durability, connected: str, least: str | None, statuses: list[Status]
):
    findings = checks.judge_replication(durability, 2, {"connected_slaves": connected}, least)
    assert [finding.status for finding in findings] == statuses


async def test_command_denied_by_the_acl_is_found(
    stores: Valkey, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
):
    rules = ("on", ">secret", "~lb:*", "~laurels:*", "&laurels:*", "+@all", "-zadd")
    await stores.command("ACL", "SETUSER", "doctor", *rules)
    url = endpoints.valkey_url.replace("unix://", "unix://doctor:secret@")
    monkeypatch.setenv("LAURELS_VALKEY_URL", url)
    try:
        finding = by_name(await doctor.examine())["permissions"]
    finally:
        await stores.command("ACL", "DELUSER", "doctor")
    assert finding.status == "wrong"
    assert "`ZADD lb:{requirements} 1 m`" in finding.found
    assert "ACL SETUSER" in finding.fix
