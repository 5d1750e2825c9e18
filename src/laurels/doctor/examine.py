"""Asks the machine and the stores, and has each answer judged. Nothing is changed."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import text

from laurels import embedded
from laurels.boards.store import BoardStore
from laurels.doctor.checks import (
    Finding,
    judge_durability,
    judge_folder,
    judge_functions,
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
from laurels.jobs.store import JobStore
from laurels.journal.streams import Journals
from laurels.masking import masked
from laurels.postgres.engine import Postgres
from laurels.postgres.migrate import current_revision, expected_revision
from laurels.settings import load_settings
from laurels.valkey import requirements, server
from laurels.valkey.client import Valkey
from laurels.valkey.durability import lacking

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from laurels.embedded import EmbeddedServers, Endpoints
    from laurels.settings import Settings

    _OfValkey = Callable[[Valkey], Awaitable[list["Finding"]]]
    _OfPostgres = Callable[[Postgres], Awaitable[list["Finding"]]]
    _OfBoth = Callable[[Valkey, Postgres], Awaitable[list["Finding"]]]


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
            Finding(
                "settings", "wrong", error.detail, "correct it; docs/reference/settings.md lists them all"
            ),
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


async def examine_open(valkey: Valkey, postgres: Postgres, settings: Settings) -> list[Finding]:
    """The same of a process that runs: by the connections that it has."""
    found = await _examine(
        lambda look: look(valkey), lambda look: look(postgres), lambda look: look(valkey, postgres), settings
    )
    return [judge_python(sys.version_info[:3]), *found]


async def _examine_stores(endpoints: Endpoints, settings: Settings) -> list[Finding]:
    async def with_valkey(look: _OfValkey) -> list[Finding]:
        valkey = Valkey(endpoints.valkey_url)
        try:
            return await look(valkey)
        finally:
            await valkey.close()

    async def with_postgres(look: _OfPostgres) -> list[Finding]:
        async with Postgres(endpoints.postgres_url) as postgres:
            return await look(postgres)

    async def with_both(look: _OfBoth) -> list[Finding]:
        return await with_postgres(lambda postgres: with_valkey(lambda valkey: look(valkey, postgres)))

    return await _examine(with_valkey, with_postgres, with_both, settings)


async def _examine(
    with_valkey: Callable[[_OfValkey], Awaitable[list[Finding]]],
    with_postgres: Callable[[_OfPostgres], Awaitable[list[Finding]]],
    with_both: Callable[[_OfBoth], Awaitable[list[Finding]]],
    settings: Settings,
) -> list[Finding]:
    postgres = await _attempt("PostgreSQL", "LAURELS_POSTGRES_URL", lambda: with_postgres(_examine_postgres))
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
                lambda valkey, postgres: _examine_journal(valkey, postgres, settings.journal_alarm_bytes)
            ),
        )
    return findings


async def _attempt(name: str, setting: str, look: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    try:
        return await look()
    except LaurelsError as error:
        fix = f"start it, or correct {setting}"
        return [Finding(name, "wrong", masked(error.detail).splitlines()[0], fix)]


async def _examine_journal(valkey: Valkey, postgres: Postgres, alarm_bytes: int) -> list[Finding]:
    return [judge_journal(await Journals(valkey, BoardStore(postgres)).backlog(), alarm_bytes)]


async def _examine_valkey(valkey: Valkey, settings: Settings, *, is_new: bool) -> list[Finding]:
    skew = await _skew(lambda: _valkey_time(valkey))
    persistence = await valkey.info("persistence")
    fsync = await _configured(valkey, "appendfsync")
    are_current = await valkey.functions_are_current()
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
        *(await _examine_permissions(valkey, settings) if are_current else ()),
        judge_skew("Valkey's clock", skew),
    ]


async def _examine_permissions(valkey: Valkey, settings: Settings) -> list[Finding]:
    """Our functions must be there: one of them asks."""
    return [judge_permissions(await requirements.lacking(valkey, settings.durability))]


async def _examine_postgres(postgres: Postgres) -> list[Finding]:
    async with postgres.reading() as connection:
        version = (await connection.execute(text("SHOW server_version_num"))).scalar_one()
    skew = await _skew(lambda: _postgres_time(postgres))
    revision = await current_revision(postgres)
    states = await JobStore(postgres).states() if revision == expected_revision() else {}
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
        return await valkey.run(server.setting(name))
    except Exception:  # noqa: BLE001  # whatever the refusal is called, the answer is «not known»
        return None


async def _valkey_time(valkey: Valkey) -> float:
    return await valkey.now() / 1e6


async def _postgres_time(postgres: Postgres) -> float:
    async with postgres.reading() as connection:
        now = await connection.execute(text("SELECT extract(epoch FROM clock_timestamp())"))
        return float(now.scalar_one())


async def _skew(ask: Callable[[], Awaitable[float]]) -> float:
    """Seconds that a clock is ahead of ours, not counting the way there and back."""
    await ask()  # the first question pays for the connection
    before = time.time()
    theirs = await ask()
    after = time.time()
    return theirs - min(max(theirs, before), after)
