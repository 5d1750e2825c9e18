"""Judges what was found: whether it is fine, and how to fix it. Pure."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from laurels.embedded.folder import LEAST_FREE_BYTES
from laurels.postgres.migrate import OLDEST_SERVER
from laurels.valkey import requirements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laurels.embedded import Inspection
    from laurels.index.orphans import KnownIndex
    from laurels.jobs.state import JobState
    from laurels.journal.streams import Backlog
    from laurels.valkey.messages import Durability

Status = Literal["ok", "warning", "wrong"]

OLDEST_PYTHON: Final = (3, 11)
OLDEST_VALKEY: Final = (8,)
UNSAFE_VALKEY: Final = ((9, 1), (9, 1, 2))
"""From the first, up to but not including the second: these use memory in Lua after they freed it."""
LOW_DISK_BYTES: Final = 1024**3
FULL_MEMORY: Final = 0.8
"""The share of maxmemory from which on doctor warns."""
STALE_JOB: Final = timedelta(hours=2)
"""Every job runs at least once an hour."""
SKEW_SECONDS: Final = 1.0
"""With clocks further apart, scores near a window's end go into the wrong window."""
SKEW_LIMIT_SECONDS: Final = 60.0
"""With clocks further apart, boards refuse scores that seem to lie in the future."""


@dataclass(frozen=True)
class Finding:
    name: str
    status: Status
    found: str
    fix: str = ""


def judge_python(version: tuple[int, ...]) -> Finding:
    found = f"{'.'.join(map(str, version))} on {platform.system()} {platform.machine()}"
    if version < OLDEST_PYTHON:
        return Finding(
            "Python", "wrong", found, f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer"
        )
    return Finding("Python", "ok", found)


def judge_indexes(indexes: Sequence[KnownIndex]) -> list[Finding]:
    """One finding for each orphan, or one for all indexes of models in this database."""
    orphans = [
        Finding(
            "index",
            "warning",
            f"{each.name} has no table that feeds it, and {each.waiting} changes in its outbox",
            f"install its model again, or `await laurels.index.drop_orphan(laurels, engine, {each.name!r})`",
        )
        for each in indexes
        if not each.is_fed
    ]
    if orphans or not indexes:
        return orphans
    waiting = sum(each.waiting for each in indexes)
    return [Finding("indexes", "ok", f"{len(indexes)} of models, {waiting} changes to apply")]


def judge_folder(inspection: Inspection, *, is_ours: bool) -> list[Finding]:
    where = str(inspection.data_dir)
    if not inspection.exists:
        folder = Finding("data folder", "ok", f"{where} does not exist yet", "`laurels serve` makes it")
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
        findings.append(Finding("in use", "ok", "no"))
    if inspection.sockets_mode is not None:
        found = f"{inspection.sockets} ({inspection.sockets_mode:04o})"
        is_private = not inspection.sockets_mode & 0o077
        fix = "" if is_private else f"chmod 700 {inspection.sockets}"
        findings.append(Finding("sockets", "ok" if is_private else "wrong", found, fix))
    return findings


def _judge_disk(free_bytes: int) -> Finding:
    found = f"{free_bytes / 1024**3:,.1f} GiB free"
    if free_bytes < LEAST_FREE_BYTES:
        return Finding("disk", "wrong", found, "free some space, or choose another folder with --data-dir")
    if free_bytes < LOW_DISK_BYTES:
        return Finding("disk", "warning", found, "free some space")
    return Finding("disk", "ok", found)


def _judge_allocator(allocator: str | None) -> Finding:
    found = f"{allocator or 'the default'}, for the embedded Valkey"
    if allocator or sys.platform == "darwin":
        return Finding("allocator", "ok", found)
    fix = "for faster writes, install jemalloc (Debian: libjemalloc2) and restart"
    return Finding("allocator", "ok", found, fix)


def judge_valkey_version(server: Mapping[str, str]) -> Finding:
    if lack := requirements.too_old(server):
        return Finding("Valkey", "wrong", f"Redis {server.get('redis_version', '')}", lack)
    if "valkey_version" not in server:
        return Finding("Valkey", "ok", f"Redis {server['redis_version']}")
    version = server["valkey_version"]
    first_unsafe, safe_again = UNSAFE_VALKEY
    if first_unsafe <= _numbers(version) < safe_again:
        fix = "upgrade to Valkey 9.1.2 or newer: in this version a function can use memory that was freed"
        return Finding("Valkey", "wrong", f"Valkey {version}", fix)
    if _numbers(version) < OLDEST_VALKEY:
        return Finding("Valkey", "warning", f"Valkey {version}", "upgrade to Valkey 8 or newer")
    return Finding("Valkey", "ok", f"Valkey {version}")


def judge_permissions(lack: str | None) -> Finding:
    if lack:
        found, _, fix = lack.partition(": ")
        return Finding("permissions", "wrong", found, fix)
    return Finding("permissions", "ok", "Valkey allows every command that Laurels sends")


def judge_replication(
    durability: Durability, replicas: int, replication: Mapping[str, str], least: str | None
) -> list[Finding]:
    """`least`: the server's min-replicas-to-write; None if the server does not say."""
    if durability != "replicated" or not int(replication.get("connected_slaves", 0)):
        return []
    found = f"min-replicas-to-write is {least or 'unknown'}, for {replicas} replicas"
    if least is not None and int(least) < replicas:
        fix = (
            f"set `min-replicas-to-write {replicas}` and `min-replicas-max-lag 10` on every primary: "
            "a primary that loses its replicas then stops accepting writes"
        )
        return [Finding("replication", "warning", found, fix)]
    return [Finding("replication", "ok", found)]


def judge_persistence(persistence: Mapping[str, str], fsync: str | None) -> Finding:
    name = "append-only file"
    if persistence.get("aof_enabled") != "1":
        return Finding(
            name, "wrong", "off: a crash loses scores", "set `appendonly yes` in Valkey's configuration"
        )
    if persistence.get("aof_last_write_status", "ok") != "ok":
        return Finding(name, "wrong", "the last write to it failed", "look at Valkey's log and its disk")
    found = f"on, fsync {fsync or 'policy unknown'}"
    if fsync == "no":
        return Finding(
            name, "warning", found, "set `appendfsync everysec`: a crash may lose half a minute of writes"
        )
    return Finding(name, "ok", found)


def judge_durability(durability: Durability, lack: str | None, fsync: str | None) -> Finding:
    if lack:
        return Finding("durability", "wrong", f"{durability}, but {lack}", "or change LAURELS_DURABILITY")
    if durability != "fast" and fsync == "everysec":
        found = f"{durability}: answers wait up to a second for the disk"
        return Finding("durability", "warning", found, "set `appendfsync always` in Valkey's configuration")
    return Finding("durability", "ok", durability)


def judge_journal(backlog: Backlog, alarm_bytes: int) -> Finding:
    if alarms := backlog.alarms(alarm_bytes):
        fix = "run `laurels worker`, and look at its log"
        if backlog.dead_letters:
            fix += "; read the stream `…:dead` of the board"
        return Finding("journal", "warning", "; ".join(alarms), fix)
    waiting = f"{backlog.calls:,} calls wait for the archive" if backlog.calls else "fully archived"
    return Finding("journal", "ok", waiting)


def judge_memory(memory: Mapping[str, str]) -> Finding:
    policy = memory.get("maxmemory_policy", "noeviction")
    limit, used = int(memory.get("maxmemory", 0)), int(memory.get("used_memory", 0))
    found = f"{used / 1024**2:,.0f} MiB of {f'{limit / 1024**2:,.0f} MiB' if limit else 'no limit'}, {policy}"
    if policy != "noeviction":
        return Finding(
            "memory", "wrong", found, "set `maxmemory-policy noeviction`: other policies drop entries"
        )
    if limit and used > limit * FULL_MEMORY:
        return Finding("memory", "warning", found, "raise maxmemory, or keep fewer windows")
    return Finding("memory", "ok", found)


def judge_functions(*, are_current: bool, is_new: bool) -> Finding:
    if are_current:
        return Finding("functions", "ok", "current on every primary")
    return Finding(
        "functions",
        "warning" if is_new else "wrong",
        "missing or of another version on some primary",
        "`laurels serve` loads them",
    )


def judge_postgres_version(number: int) -> Finding:
    found = f"{number // 10000}.{number % 10000}"
    if number // 10000 < OLDEST_SERVER:
        return Finding("PostgreSQL", "wrong", found, f"upgrade to PostgreSQL {OLDEST_SERVER} or newer")
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
    fix = "upgrade Laurels, or set LAURELS_POSTGRES_URL to another database"
    return Finding("schema", "wrong", f"{current}, made by a newer Laurels than this ({expected})", fix)


def judge_campuses(problems: Sequence[tuple[bool, str]]) -> Finding:
    """`problems`: what cannot be read, and whether a setting names it."""
    found = "; ".join(problem for _, problem in problems)
    if any(is_given for is_given, _ in problems):
        fix = "correct the table or the setting: Laurels does not start like this"
        return Finding("campuses", "wrong", found, fix)
    if problems:
        fix = "if Laurels is to read another table, name it in this setting; if none, ignore this"
        return Finding("campuses", "warning", found, fix)
    return Finding("campuses", "ok", "the tables of users and campuses can be read, if there are any")


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
        return Finding(name, "warning", found, "fix the error; workers keep trying")
    if state.last_succeeded is None or now - state.last_succeeded > STALE_JOB:
        return Finding(name, "warning", found, "run `laurels serve` without --no-jobs, or `laurels worker`")
    return Finding(name, "ok", found)


def judge_skew(name: str, seconds: float) -> Finding:
    if abs(seconds) <= SKEW_SECONDS:
        return Finding(name, "ok", "agrees with this machine's clock")
    found = f"{abs(seconds):,.1f} s {'ahead of' if seconds > 0 else 'behind'} this machine's clock"
    status: Status = "warning" if abs(seconds) <= SKEW_LIMIT_SECONDS else "wrong"
    return Finding(name, status, found, "synchronize both clocks with NTP")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
