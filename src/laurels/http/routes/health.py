"""The state of the process for load balancers, orchestrators and Prometheus: public, so without secrets."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from starlette.responses import Response

from laurels import metrics
from laurels.access.store.api_keys import EVERY_PROJECT
from laurels.activity.store.totals import BADGES, BOUNDS, COMPUTE, SNAPSHOTS
from laurels.engine import Laurels
from laurels.errors import LaurelsError, Unavailable
from laurels.http.authentication import Call, admit_without_key, identify
from laurels.http.operation import Routes
from laurels.http.problems import NotReady
from laurels.logs import get_logger
from laurels.postgres.migrate import current_revision, expected_revision
from laurels.valkey import server

if TYPE_CHECKING:
    from laurels.access.limits import Limiter

# A healthy store answers sooner, and an orchestrator waits longer.
CHECK_SECONDS: Final = 2.0

State = Literal["ok", "outdated", "unreachable", "refusing", "failing"]

routes = Routes("health", admit_without_key, checks_query=False)
log = get_logger("laurels.api")


class Health(Struct, frozen=True):
    status: Literal["ok"] = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """The process can answer in spite of `warnings`, but an operator should look at them."""

    status: Literal["ready"] = "ready"
    checks: dict[str, State]
    warnings: list[str]


CHECKS: Final = ("valkey", "functions", "writes", "postgres", "migrations")
_READY = {"status": "ready", "checks": dict.fromkeys(CHECKS, "ok")}


@routes.get("/healthz", example={"status": "ok"})
async def read_health(_: Call) -> Health:
    """Check that the process is alive."""
    return Health()


@routes.get("/readyz", example={**_READY, "warnings": []}, problems=(503,))
async def read_readiness(call: Call) -> Readiness:
    """Check that the process can answer.

    Both stores answer and take writes; Valkey has this version's functions, PostgreSQL its tables.

    `warnings` says if archiving falls behind or Valkey is out of memory. The process stays ready then,
    because operators free memory through it.
    """
    laurels = call.laurels

    async def has_valkey() -> bool:
        await laurels.valkey.run(server.ping())
        return True

    async def has_functions() -> bool:
        await laurels.valkey.load_missing_functions()
        return await laurels.valkey.functions_are_current()

    async def takes_writes() -> bool:
        await laurels.valkey.load_missing_functions()
        if not await laurels.operator_status.takes_writes():
            warnings.append("Valkey is out of memory: raise its maxmemory or keep less")
        return True

    async def has_postgres() -> bool:
        await laurels.postgres.require_writes()
        return True

    async def has_tables() -> bool:
        return await current_revision(laurels.postgres) == expected_revision()

    warnings: list[str] = []
    checks: dict[str, Callable[[], Awaitable[bool]]] = {
        "valkey": has_valkey,
        "functions": has_functions,
        "writes": takes_writes,
        "postgres": has_postgres,
        "migrations": has_tables,
    }
    results = await asyncio.gather(*(_run(name, check) for name, check in checks.items()))
    found: dict[str, State] = {name: state for name, (state, _) in zip(checks, results, strict=True)}
    failed = [f"{name} is {state}" for name, state in found.items() if state != "ok"]
    if failed:
        advice = dict.fromkeys(advice for _, advice in results if advice)
        raise NotReady("; ".join([", ".join(failed), *advice]), {**found})
    return Readiness(checks=found, warnings=warnings + await _warnings(laurels))


@routes.get(
    "/metrics",
    answer=str,
    media_type="text/plain",
    example="laurels_http_requests_total 1.0",
    problems=(401, 403, 429),
)
async def read_metrics(call: Call) -> Response:
    """Read the metrics for Prometheus.

    Open to clients on this machine and, with the setting `metrics_public`, to all.

    Others need a key with the scope `read` for every project.
    """
    laurels, request = call.laurels, call.request
    limiter: Limiter = request.app.state.limiter
    if not (laurels.settings.metrics_public or limiter.addresses.is_local(request)):
        (await identify(request)).principal.check(EVERY_PROJECT, "read")
    await _warnings(laurels)  # for the metrics of the journal
    await _note_jobs(laurels)
    await _note_streams(laurels)
    await _note_campuses(laurels)
    return Response(metrics.render(), media_type=metrics.CONTENT_TYPE)


async def _note_jobs(laurels: Laurels) -> None:
    """Updates the metrics of jobs, if PostgreSQL answers."""
    with suppress(LaurelsError, TimeoutError):
        async with asyncio.timeout(CHECK_SECONDS):
            found = await laurels.jobs()
        noted = metrics.JobMetrics()
        for state in (job.state for job in found):
            noted.add(
                state.name,
                succeeded=state.succeeded,
                failed=state.failed,
                seconds=state.seconds,
                last_success=state.last_succeeded.timestamp() if state.last_succeeded else None,
            )
        metrics.note(noted)


async def _note_streams(laurels: Laurels) -> None:
    """Updates the metrics of campus streams, if Valkey answers."""
    with suppress(LaurelsError, TimeoutError):
        async with asyncio.timeout(CHECK_SECONDS):
            accrual = laurels.activity.accrual
            noted = metrics.StreamMetrics(await accrual.parked())
            for stream, lag in (await accrual.lags()).items():
                noted.add(stream, processed=lag.applied, late=lag.late, lag_seconds=lag.seconds)
        metrics.note(noted)


async def _note_campuses(laurels: Laurels) -> None:
    """Updates the metrics of campuses, if PostgreSQL answers."""
    with suppress(LaurelsError, TimeoutError):
        async with asyncio.timeout(CHECK_SECONDS):
            totals = await laurels.activity.totals.read()
        noted = metrics.CampusMetrics()
        for labels, count in totals[SNAPSHOTS].items():
            noted.snapshots.add_metric(labels, count)
        for labels, count in totals[BADGES].items():
            noted.badges.add_metric(labels, count)
        computed = totals[COMPUTE]
        for period in sorted({period for period, _ in computed}):
            buckets = [(bound, computed.get((period, bound), 0.0)) for bound in BOUNDS]
            noted.add_compute(period, buckets, computed[period, "sum"])
        metrics.note(noted)


async def _warnings(laurels: Laurels) -> list[str]:
    """Warnings about the journal. Workers archive it, and this process may not be one."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            backlog = await laurels.drain.journal_streams.recent_backlog()
    except (LaurelsError, TimeoutError) as error:
        log.warning("the journal's backlog cannot be read", detail=str(error) or "no answer in time")
        return ["the journal's backlog cannot be read"]
    return backlog.alarms(laurels.settings.journal_alarm_bytes)


async def _run(name: str, check: Callable[[], Awaitable[bool]]) -> tuple[State, str]:
    """The result of a check, and what an operator can do."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return ("ok" if await check() else "outdated"), ""
    except (LaurelsError, TimeoutError) as error:
        log.warning("check failed", check=name, detail=str(error) or "no answer in time")
        advice = error.advice if isinstance(error, Unavailable) else ""
        return ("refusing" if "refuses" in advice else "unreachable"), advice
    except Exception:
        log.exception("check failed", check=name)
        return "failing", ""
