"""Examines the machine and the stores. It changes nothing."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import text

from laurels import embedded
from laurels.activity.store.people import CampusSources, CampusStore
from laurels.boards.store import BoardStore
from laurels.doctor.checks import (
    Finding,
    judge_campuses,
    judge_durability,
    judge_folder,
    judge_functions,
    judge_indexes,
    judge_job,
    judge_journal,
    judge_memory,
    judge_permissions,
    judge_persistence,
    judge_postgres_version,
    judge_python,
    judge_replication,
    judge_schema,
    judge_skew,
    judge_valkey_version,
)
from laurels.errors import LaurelsError
from laurels.index.orphans import known_indexes
from laurels.jobs.store import JobStore
from laurels.journal.streams import JournalStreams
from laurels.masking import masked
from laurels.postgres.engine import Postgres
from laurels.postgres.migrate import current_revision, expected_revision
from laurels.settings import load_settings
from laurels.valkey import requirements, server
from laurels.valkey.client import Valkey
from laurels.valkey.durability import lacking

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from laurels.embedded import EmbeddedServers
    from laurels.settings import Settings


async def examine(
    data_dir: Path | None = None, *, say: Callable[[str], None] = lambda _: None
) -> list[Finding]:
    """All findings, the machine first. Starts the servers of an existing data folder if they do not run, and
    stops them afterwards.
    """
    findings = [judge_python(sys.version_info[:3])]
    try:
        settings = load_settings(data_dir=data_dir)
    except LaurelsError as error:
        return [
            *findings,
            Finding("settings", "wrong", error.detail, "correct it: docs/reference/settings.md lists them"),
        ]
    external = embedded.ExternalServers(settings.valkey_url, settings.postgres_url)
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
            return [*findings, Finding("data folder", "wrong", error.detail, "do what the error says")]
        findings += judge_folder(inspection, is_ours=servers is not None)
        if endpoints is None:
            fix = "`laurels serve` creates and starts them"
            return [*findings, Finding("stores", "ok", "not made yet", fix)]
    valkey_url, postgres_url = endpoints.valkey_url, endpoints.postgres_url
    try:
        return [
            *findings,
            *await _examine_stores(lambda: _valkey_at(valkey_url), lambda: Postgres(postgres_url), settings),
        ]
    finally:
        if servers is not None:
            await asyncio.to_thread(servers.stop)


async def examine_open(valkey: Valkey, postgres: Postgres, settings: Settings) -> list[Finding]:
    """The findings of a running process, over its own connections."""
    findings = await _examine_stores(lambda: nullcontext(valkey), lambda: nullcontext(postgres), settings)
    return [judge_python(sys.version_info[:3]), *findings]


@asynccontextmanager
async def _valkey_at(url: str) -> AsyncGenerator[Valkey]:
    valkey = Valkey(url)
    try:
        yield valkey
    finally:
        await valkey.close()


async def _examine_stores(
    open_valkey: Callable[[], AbstractAsyncContextManager[Valkey]],
    open_postgres: Callable[[], AbstractAsyncContextManager[Postgres]],
    settings: Settings,
) -> list[Finding]:
    async def of_postgres() -> list[Finding]:
        async with open_postgres() as postgres:
            return await _examine_postgres(postgres, settings)

    async def of_valkey() -> list[Finding]:
        async with open_valkey() as valkey:
            return await _examine_valkey(valkey, settings, is_new=is_new)

    async def of_journal() -> list[Finding]:
        async with open_postgres() as postgres, open_valkey() as valkey:
            backlog = await JournalStreams(valkey, BoardStore(postgres)).backlog()
            return [judge_journal(backlog, settings.journal_alarm_bytes)]

    postgres_findings = await _attempt("PostgreSQL", "LAURELS_POSTGRES_URL", of_postgres())
    schema = next((finding.status for finding in postgres_findings if finding.name == "schema"), None)
    is_new = schema == "warning"
    findings = [*await _attempt("Valkey", "LAURELS_VALKEY_URL", of_valkey()), *postgres_findings]
    if schema == "ok":
        findings += await _attempt("journal", "LAURELS_VALKEY_URL", of_journal())
    return findings


async def _attempt(name: str, setting: str, examination: Awaitable[list[Finding]]) -> list[Finding]:
    try:
        return await examination
    except LaurelsError as error:
        fix = f"start it, or correct {setting}"
        return [Finding(name, "wrong", masked(error.detail).splitlines()[0], fix)]


async def _examine_valkey(valkey: Valkey, settings: Settings, *, is_new: bool) -> list[Finding]:
    skew = await _skew(lambda: _valkey_time(valkey))
    persistence = await valkey.info("persistence")
    fsync = await _configured(valkey, "appendfsync")
    are_current = await valkey.functions_are_current()
    permissions: list[Finding] = []
    if are_current:  # one of our functions checks them
        permissions.append(judge_permissions(await requirements.lacking(valkey, settings.durability)))
    return [
        judge_valkey_version(await valkey.info("server")),
        judge_persistence(persistence, fsync),
        judge_durability(
            settings.durability, await lacking(valkey, settings.durability, settings.replicas), fsync
        ),
        *judge_replication(
            settings.durability,
            settings.replicas,
            await valkey.info("replication"),
            await _configured(valkey, "min-replicas-to-write"),
        ),
        judge_memory(await valkey.info("memory")),
        judge_functions(are_current=are_current, is_new=is_new),
        *permissions,
        judge_skew("Valkey's clock", skew),
    ]


async def _examine_postgres(postgres: Postgres, settings: Settings) -> list[Finding]:
    async with postgres.reading() as connection:
        version = (await connection.execute(text("SHOW server_version_num"))).scalar_one()
        indexes = await known_indexes(connection)
    skew = await _skew(lambda: _postgres_time(postgres))
    revision = await current_revision(postgres)
    states = await JobStore(postgres).states() if revision == expected_revision() else {}
    now = datetime.now(UTC)
    sources = CampusSources(settings.campus_users, settings.campus_campuses, settings.campus_timezone)
    return [
        judge_postgres_version(int(version)),
        judge_schema(revision, expected_revision()),
        judge_skew("PostgreSQL's clock", skew),
        judge_campuses(await CampusStore(postgres, sources).problems()),
        *(judge_job(state, now) for state in states.values()),
        *judge_indexes(indexes),
    ]


async def _configured(valkey: Valkey, name: str) -> str | None:
    """A configuration value; None if the server does not say: managed servers refuse CONFIG."""
    try:
        return await valkey.run(server.setting(name))
    except Exception:  # noqa: BLE001  # after any error, the value is unknown
        return None


async def _valkey_time(valkey: Valkey) -> float:
    return await valkey.now() / 1e6


async def _postgres_time(postgres: Postgres) -> float:
    async with postgres.reading() as connection:
        now = await connection.execute(text("SELECT extract(epoch FROM clock_timestamp())"))
        return float(now.scalar_one())


async def _skew(read_clock: Callable[[], Awaitable[float]]) -> float:
    """How many seconds a server's clock is ahead of ours, allowing for the round trip."""
    await read_clock()  # the first call also opens the connection
    before = time.time()
    theirs = await read_clock()
    after = time.time()
    return theirs - min(max(theirs, before), after)
