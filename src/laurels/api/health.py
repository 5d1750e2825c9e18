"""How the process is: for load balancers, orchestrators and Prometheus. Open to all, so no secrets here."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Literal

import structlog
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from laurels import metrics
from laurels.api.document import own_name, problem_answers
from laurels.api.problems import NotReady
from laurels.archive.migrate import current_revision, expected_revision
from laurels.errors import LaurelsError

if TYPE_CHECKING:
    from laurels.laurels import Laurels

# Longer than a healthy store ever takes, shorter than an orchestrator waits.
CHECK_SECONDS: Final = 2.0

State = Literal["ok", "outdated", "unreachable"]

router = APIRouter(tags=["health"], generate_unique_id_function=own_name)
log = structlog.get_logger("laurels.api")


class Health(BaseModel):
    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    status: Literal["ready"] = "ready"
    checks: dict[str, State]


@router.get("/healthz", summary="Whether the process lives")
async def read_health() -> Health:
    return Health()


@router.get("/readyz", summary="Whether the process can answer", responses=problem_answers(503))
async def read_readiness(request: Request) -> Readiness:
    """Both stores answer, Valkey has this version's functions, PostgreSQL this version's tables."""
    laurels: Laurels = request.app.state.laurels

    async def has_valkey() -> bool:
        await laurels.valkey.command("PING")
        return True

    async def has_functions() -> bool:
        await laurels.valkey.load_missing_functions()
        return await laurels.valkey.functions_are_current()

    async def has_postgres() -> bool:
        await laurels.archive.ping()
        return True

    async def has_tables() -> bool:
        return await current_revision(laurels.archive) == expected_revision()

    checks: dict[str, Callable[[], Awaitable[bool]]] = {
        "valkey": has_valkey,
        "functions": has_functions,
        "postgres": has_postgres,
        "migrations": has_tables,
    }
    states = await asyncio.gather(*(_state(name, check) for name, check in checks.items()))
    found = dict(zip(checks, states, strict=True))
    failed = [f"{name} is {state}" for name, state in found.items() if state != "ok"]
    if failed:
        raise NotReady(", ".join(failed), {**found})
    return Readiness(checks=found)


@router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
async def read_metrics() -> Response:
    return Response(metrics.render(), media_type=metrics.CONTENT_TYPE)


async def _state(name: str, check: Callable[[], Awaitable[bool]]) -> State:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return "ok" if await check() else "outdated"
    except (LaurelsError, TimeoutError) as error:
        log.warning("check failed", check=name, detail=str(error) or "no answer in time")
        return "unreachable"
