"""What could be wrong with a deployment: each thing looked at, what was found, and how to mend it.

Nothing is changed. The judgements (`judge_…`) are pure; `examine` asks the machine and the stores.
"""

from __future__ import annotations

import asyncio
import platform
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import text

from laurels import embedded
from laurels.archive.boards import BoardStore
from laurels.archive.engine import open_archive
from laurels.archive.jobs import JobStore
from laurels.archive.migrate import OLDEST_SERVER, current_revision, expected_revision
from laurels.embedded.folder import LEAST_FREE_BYTES
from laurels.errors import LaurelsError
from laurels.history.journals import Journals
from laurels.masking import masked
from laurels.settings import load_settings
from laurels.valkey.client import Valkey
from laurels.valkey.durability import lacking

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from laurels.archive.engine import Archive
    from laurels.archive.jobs import JobState
    from laurels.embedded import EmbeddedServers, Endpoints, Inspection
    from laurels.history.journals import Backlog
    from laurels.settings import Settings
    from laurels.valkey.messages import Durability

    _OfValkey = Callable[[Valkey], Awaitable[list["Finding"]]]
    _OfArchive = Callable[[Archive], Awaitable[list["Finding"]]]
    _OfBoth = Callable[[Valkey, Archive], Awaitable[list["Finding"]]]

Status = Literal["ok", "warning", "wrong"]

OLDEST_PYTHON: Final = (3, 11)
OLDEST_VALKEY: Final = (9, 1, 2)  # a use-after-free in Lua was mended there
OLDEST_REDIS: Final = (7,)  # functions came with it
LOW_DISK_BYTES: Final = 1024**3
FULL_MEMORY: Final = 0.8
"""Share of maxmemory above which it is time to act."""
STALE_JOB: Final = timedelta(hours=2)
"""Every job is due once an hour at least."""
SKEW_SECONDS: Final = 1.0
"""Clocks further apart put scores near a window's end into the wrong one."""
SKEW_LIMIT_SECONDS: Final = 60.0
"""Clocks further apart refuse scores as «in the future»."""


@dataclass(frozen=True)
class Finding:
    name: str
    status: Status
    found: str
    fix: str = ""


async def examine(
    data_dir: Path | None = None, *, say: Callable[[str], None] = lambda _: None
) -> list[Finding]:
    """Every finding, the machine first. Servers that do not run on an existing data folder run meanwhile."""
    findings = [judge_python(sys.version_info[:3])]
    try:
        settings = load_settings(data_dir=data_dir)
    except LaurelsError as error:
        return [
            *findings,
            Finding("settings", "wrong", error.detail, "correct it; docs/settings.md lists them all"),
        ]
    external = embedded.External(settings.valkey_url, settings.postgres_url)
    endpoints = external.endpoints
    servers: EmbeddedServers | None = None
    if endpoints is None:
        folder = settings.data_dir or embedded.default_data_dir()
        if folder.exists() and not folder.is_dir():
            found = f"{folder} is not a folder"
            return [*findings, Finding("data folder", "wrong", found, "choose another with --data-dir")]
        try:
            endpoints = await asyncio.to_thread(embedded.attach, folder, external)
            if endpoints is None and (folder / "lock").exists():
                servers = await asyncio.to_thread(lambda: embedded.start(folder, external=external, say=say))
                endpoints = servers.endpoints
            inspection = await asyncio.to_thread(embedded.inspect, folder)
        except LaurelsError as error:
            return [*findings, Finding("data folder", "wrong", error.detail, "as it says")]
        findings += judge_folder(inspection, is_ours=servers is not None)
        if endpoints is None:
            return [
                *findings,
                Finding("stores", "ok", "not made yet", "`laurels serve` makes and starts them"),
            ]
    try:
        return [*findings, *await _examine_stores(endpoints, settings)]
    finally:
        if servers is not None:
            await asyncio.to_thread(servers.stop)


async def examine_open(valkey: Valkey, archive: Archive, settings: Settings) -> list[Finding]:
    """The same of a process that runs: by the connections that it has."""
    found = await _examine(
        lambda look: look(valkey), lambda look: look(archive), lambda look: look(valkey, archive), settings
    )
    return [judge_python(sys.version_info[:3]), *found]


async def _examine_stores(endpoints: Endpoints, settings: Settings) -> list[Finding]:
    async def with_valkey(look: _OfValkey) -> list[Finding]:
        valkey = Valkey(endpoints.valkey_url)
        try:
            return await look(valkey)
        finally:
            await valkey.close()

    async def with_archive(look: _OfArchive) -> list[Finding]:
        async with open_archive(endpoints.postgres_url) as archive:
            return await look(archive)

    async def with_both(look: _OfBoth) -> list[Finding]:
        return await with_archive(lambda archive: with_valkey(lambda valkey: look(valkey, archive)))

    return await _examine(with_valkey, with_archive, with_both, settings)


async def _examine(
    with_valkey: Callable[[_OfValkey], Awaitable[list[Finding]]],
    with_archive: Callable[[_OfArchive], Awaitable[list[Finding]]],
    with_both: Callable[[_OfBoth], Awaitable[list[Finding]]],
    settings: Settings,
) -> list[Finding]:
    postgres = await _attempt("PostgreSQL", "LAURELS_POSTGRES_URL", lambda: with_archive(_examine_postgres))
    is_new = any(finding.name == "schema" and finding.status == "warning" for finding in postgres)
    valkey = await _attempt(
        "Valkey",
        "LAURELS_VALKEY_URL",
        lambda: with_valkey(lambda valkey: _examine_valkey(valkey, settings, is_new=is_new)),
    )
    findings = [*valkey, *postgres]
    if any(finding.name == "schema" and finding.status == "ok" for finding in postgres):
        findings += await _attempt(
            "journal",
            "LAURELS_VALKEY_URL",
            lambda: with_both(
                lambda valkey, archive: _examine_journal(valkey, archive, settings.journal_alarm_bytes)
            ),
        )
    return findings


async def _attempt(name: str, setting: str, look: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    try:
        return await look()
    except LaurelsError as error:
        fix = f"start it, or correct {setting}"
        return [Finding(name, "wrong", masked(error.detail).splitlines()[0], fix)]


async def _examine_journal(valkey: Valkey, archive: Archive, alarm_bytes: int) -> list[Finding]:
    return [judge_journal(await Journals(valkey, BoardStore(archive)).backlog(), alarm_bytes)]


async def _examine_valkey(valkey: Valkey, settings: Settings, *, is_new: bool) -> list[Finding]:
    skew = await _skew(lambda: _valkey_time(valkey))
    persistence = await valkey.info("persistence")
    fsync = await _configured(valkey, "appendfsync")
    return [
        judge_valkey_version(await valkey.info("server")),
        judge_persistence(persistence, fsync),
        judge_durability(
            settings.durability, await lacking(valkey, settings.durability, settings.replicas), fsync
        ),
        judge_memory(await valkey.info("memory")),
        judge_functions(are_current=await valkey.functions_are_current(), is_new=is_new),
        judge_skew("Valkey's clock", skew),
    ]


async def _examine_postgres(archive: Archive) -> list[Finding]:
    async with archive.reading() as connection:
        version = (await connection.execute(text("SHOW server_version_num"))).scalar_one()
    skew = await _skew(lambda: _postgres_time(archive))
    revision = await current_revision(archive)
    states = await JobStore(archive).states() if revision == expected_revision() else {}
    now = datetime.now(UTC)
    return [
        judge_postgres_version(int(version)),
        judge_schema(revision, expected_revision()),
        judge_skew("PostgreSQL's clock", skew),
        *(judge_job(state, now) for state in states.values()),
    ]


async def _configured(valkey: Valkey, name: str) -> str | None:
    """None where the server does not tell: managed ones refuse CONFIG."""
    try:
        answer: Any = await valkey.command("CONFIG", "GET", name)
    except Exception:  # noqa: BLE001  # whatever the refusal is called, the answer is «not known»
        return None
    value = answer.get(name.encode())
    return value.decode() if value else None


async def _valkey_time(valkey: Valkey) -> float:
    answer: Any = await valkey.command("TIME")
    seconds, microseconds = next(iter(answer.values())) if valkey.is_cluster else answer
    return int(seconds) + int(microseconds) / 1e6


async def _postgres_time(archive: Archive) -> float:
    async with archive.reading() as connection:
        now = await connection.execute(text("SELECT extract(epoch FROM clock_timestamp())"))
        return float(now.scalar_one())


async def _skew(ask: Callable[[], Awaitable[float]]) -> float:
    """Seconds that a clock is ahead of ours, not counting the way there and back."""
    await ask()  # the first question pays for the connection
    before = time.time()
    theirs = await ask()
    after = time.time()
    return theirs - min(max(theirs, before), after)


def judge_python(version: tuple[int, ...]) -> Finding:
    found = f"{'.'.join(map(str, version))} on {platform.system()} {platform.machine()}"
    if version < OLDEST_PYTHON:
        return Finding(
            "Python", "wrong", found, f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer"
        )
    return Finding("Python", "ok", found)


def judge_folder(inspection: Inspection, *, is_ours: bool) -> list[Finding]:
    where = str(inspection.data_dir)
    if not inspection.exists:
        folder = Finding("data folder", "ok", f"{where} is not there yet", "`laurels serve` makes it")
    elif inspection.mode & 0o007:
        fix = f"chmod o= {where}"
        folder = Finding(
            "data folder", "wrong", f"{where} is open to every user ({inspection.mode:04o})", fix
        )
    else:
        folder = Finding("data folder", "ok", f"{where}, of {inspection.owner} ({inspection.mode:04o})")
    findings = [folder, _judge_disk(inspection.free_bytes), _judge_allocator(inspection.valkey_allocator)]
    if inspection.holder_pid is not None and not is_ours:
        findings.append(Finding("in use", "ok", f"by process {inspection.holder_pid}"))
    elif inspection.exists:
        findings.append(Finding("in use", "ok", "by nobody"))
    if inspection.sockets_mode is not None:
        found = f"{inspection.sockets} ({inspection.sockets_mode:04o})"
        is_private = not inspection.sockets_mode & 0o077
        fix = "" if is_private else f"chmod 700 {inspection.sockets}"
        findings.append(Finding("sockets", "ok" if is_private else "wrong", found, fix))
    return findings


def _judge_disk(free_bytes: int) -> Finding:
    found = f"{free_bytes / 1024**3:,.1f} GiB free"
    if free_bytes < LEAST_FREE_BYTES:
        return Finding("disk", "wrong", found, "make room, or choose another folder with --data-dir")
    if free_bytes < LOW_DISK_BYTES:
        return Finding("disk", "warning", found, "make room before it runs out")
    return Finding("disk", "ok", found)


def _judge_allocator(allocator: str | None) -> Finding:
    found = f"{allocator or 'that of the system'}, for the embedded Valkey"
    if allocator or sys.platform == "darwin":
        return Finding("allocator", "ok", found)
    fix = "to write faster, install jemalloc (Debian: libjemalloc2) and start again"
    return Finding("allocator", "ok", found, fix)


def judge_valkey_version(server: Mapping[str, str]) -> Finding:
    name, oldest = ("Valkey", OLDEST_VALKEY) if "valkey_version" in server else ("Redis", OLDEST_REDIS)
    version = server.get("valkey_version") or server.get("redis_version") or "0"
    if _numbers(version) < oldest:
        least = ".".join(map(str, oldest))
        return Finding("Valkey", "wrong", f"{name} {version}", f"upgrade it to {name} {least} or newer")
    return Finding("Valkey", "ok", f"{name} {version}")


def judge_persistence(persistence: Mapping[str, str], fsync: str | None) -> Finding:
    name = "append-only file"
    if persistence.get("aof_enabled") != "1":
        return Finding(
            name, "wrong", "off: a crash loses scores", "set `appendonly yes` in Valkey's configuration"
        )
    if persistence.get("aof_last_write_status", "ok") != "ok":
        return Finding(name, "wrong", "the last write to it failed", "look at Valkey's log and its disk")
    found = f"on, fsync {fsync or 'policy not told'}"
    if fsync == "no":
        return Finding(
            name, "warning", found, "set `appendfsync everysec`, or a crash may lose half a minute"
        )
    return Finding(name, "ok", found)


def judge_durability(durability: Durability, lack: str | None, fsync: str | None) -> Finding:
    if lack:
        return Finding("durability", "wrong", f"{durability}, but {lack}", "or change LAURELS_DURABILITY")
    if durability != "fast" and fsync == "everysec":
        found = f"{durability}, so that answers wait up to a second for the disk"
        return Finding("durability", "warning", found, "set `appendfsync always` in Valkey's configuration")
    return Finding("durability", "ok", durability)


def judge_journal(backlog: Backlog, alarm_bytes: int) -> Finding:
    if alarms := backlog.alarms(alarm_bytes):
        fix = "run `laurels worker`, and look at its log"
        if backlog.dead_letters:
            fix += "; read the stream `…:dead` of the board"
        return Finding("journal", "warning", "; ".join(alarms), fix)
    waiting = f"{backlog.calls:,} calls wait" if backlog.calls else "all of it is archived"
    return Finding("journal", "ok", waiting)


def judge_memory(memory: Mapping[str, str]) -> Finding:
    policy = memory.get("maxmemory_policy", "noeviction")
    limit, used = int(memory.get("maxmemory", 0)), int(memory.get("used_memory", 0))
    found = f"{used / 1024**2:,.0f} MiB of {f'{limit / 1024**2:,.0f} MiB' if limit else 'no limit'}, {policy}"
    if policy != "noeviction":
        return Finding(
            "memory", "wrong", found, "set `maxmemory-policy noeviction`: others drop entries silently"
        )
    if limit and used > limit * FULL_MEMORY:
        return Finding("memory", "warning", found, "raise maxmemory, or keep fewer windows")
    return Finding("memory", "ok", found)


def judge_functions(*, are_current: bool, is_new: bool) -> Finding:
    if are_current:
        return Finding("functions", "ok", "current on every primary")
    found = "not as this version has them on every primary"
    return Finding(
        "functions",
        "warning" if is_new else "wrong",
        found,
        "any `laurels` start loads them: `laurels serve`",
    )


def judge_postgres_version(number: int) -> Finding:
    found = f"{number // 10000}.{number % 10000}"
    if number // 10000 < OLDEST_SERVER:
        return Finding("PostgreSQL", "wrong", found, f"upgrade it to {OLDEST_SERVER} or newer")
    return Finding("PostgreSQL", "ok", found)


def judge_schema(current: str | None, expected: str) -> Finding:
    if current is None:
        return Finding("schema", "warning", "no tables yet", "`laurels serve` makes them")
    if current == expected:
        return Finding("schema", "ok", current)
    # Revisions are numbered: r0001, r0002, …
    if current < expected:
        return Finding(
            "schema", "warning", f"{current}, older than {expected}", "`laurels serve` migrates it"
        )
    fix = "upgrade Laurels, or point LAURELS_POSTGRES_URL elsewhere"
    return Finding("schema", "wrong", f"{current}, made by a newer Laurels than this ({expected})", fix)


def judge_job(state: JobState, now: datetime) -> Finding:
    name = f"job {state.name}"
    if state.last_started is None:
        return Finding(name, "ok", "has not run yet", "`laurels serve` or `laurels worker` runs it")
    if state.last_succeeded is None:
        found = "has not succeeded yet"
    else:
        ago = max(0, round((now - state.last_succeeded).total_seconds()))
        found = f"{ago:,} s ago: {state.last_result}"
    if state.attempts:
        found = f"failed {state.attempts} times in a row: {state.error.splitlines()[0]} ({found})"
        return Finding(name, "warning", found, "mend what it says; it is tried again by itself")
    if state.last_succeeded is None or now - state.last_succeeded > STALE_JOB:
        return Finding(
            name, "warning", found, "let `laurels serve` run without --no-jobs, or `laurels worker`"
        )
    return Finding(name, "ok", found)


def judge_skew(name: str, seconds: float) -> Finding:
    if abs(seconds) <= SKEW_SECONDS:
        return Finding(name, "ok", "agrees with this machine's")
    found = f"{abs(seconds):,.1f} s {'ahead of' if seconds > 0 else 'behind'} this machine's"
    status: Status = "warning" if abs(seconds) <= SKEW_LIMIT_SECONDS else "wrong"
    return Finding(name, status, found, "synchronize both clocks with NTP")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
