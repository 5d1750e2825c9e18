"""How the deployment goes, for who runs it: figures, findings, and what could not be archived.

For keys of every project alone.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from laurels import doctor
from laurels.access.store.keys import EVERY_PROJECT
from laurels.http.authentication import Call, identify
from laurels.http.openapi import own_name, problem_answers, query_parameters
from laurels.http.parameters import NoParameters, query

router = APIRouter(tags=["deployment"], generate_unique_id_function=own_name)


class ValkeyFigures(BaseModel):
    """Over all primaries; `commands`: since it started."""

    name: str
    version: str
    nodes: int
    memory_bytes: int
    memory_limit_bytes: int | None
    commands: int
    clients: int


class PostgresFigures(BaseModel):
    """`bytes`: of the database. `rows`: that came into the journal since its statistics began."""

    version: str
    bytes: int
    rows: int


class JournalFigures(BaseModel):
    """In calls: one carries the submissions that came at the same moment, up to some hundreds.

    Everything that was recorded before the `watermark` is archived.
    """

    recorded: int
    waiting: int
    bytes: int
    watermark: datetime
    age_seconds: float
    dead_letters: int


class BoardFigures(BaseModel):
    """Of one board's journal, in calls."""

    project: str
    board: str
    recorded: int
    waiting: int
    watermark: datetime


class Figures(BaseModel):
    """One look. What counts from a start on only grows: two looks tell how much comes a second."""

    at: datetime
    valkey: ValkeyFigures
    postgres: PostgresFigures | None
    journal: JournalFigures
    boards: list[BoardFigures]


class Finding(BaseModel):
    """One thing that was looked at; `fix`: how to mend it, if it is to be."""

    name: str
    status: Literal["ok", "warning", "wrong"]
    found: str
    fix: str


class Findings(BaseModel):
    findings: list[Finding]


class DeadLetter(BaseModel):
    """An entry of a journal that PostgreSQL did not take, or an event of a campus that cannot count."""

    id: str
    source: Literal["journal", "campus"]
    board: str | None
    recorded_at: datetime
    why: str
    summary: str


class DeadLetters(BaseModel):
    """Newest first."""

    total: int
    letters: list[DeadLetter]


class LettersParameters(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000, description="How many letters, at most.")] = 100


_FIGURES: dict[str, Any] = {
    "at": "2025-10-24T12:00:00Z",
    "valkey": {
        "name": "Valkey",
        "version": "9.1.2",
        "nodes": 1,
        "memory_bytes": 104857600,
        "memory_limit_bytes": None,
        "commands": 1234567,
        "clients": 12,
    },
    "postgres": {"version": "18.4", "bytes": 52428800, "rows": 400000},
    "journal": {
        "recorded": 25000,
        "waiting": 2,
        "bytes": 4096,
        "watermark": "2025-10-24T11:59:59Z",
        "age_seconds": 1.0,
        "dead_letters": 0,
    },
    "boards": [
        {
            "project": "acme",
            "board": "arcade",
            "recorded": 25000,
            "waiting": 2,
            "watermark": "2025-10-24T11:59:59Z",
        }
    ],
}
_FINDING = {"name": "Valkey", "status": "ok", "found": "Valkey 9.1.2", "fix": ""}
_LETTER = {
    "id": "17.0.1761307200000-0",
    "source": "journal",
    "board": "acme/arcade",
    "recorded_at": "2025-10-24T12:00:00Z",
    "why": "the kind 'season' is not known",
    "summary": "70 bytes: 95 a6 73 65 61 73 6f 6e",
}


def _example(shown: object) -> dict[str, Any]:
    return {"content": {"application/json": {"example": shown}}}


async def operator(request: Request) -> Call:
    call = await identify(request)
    call.principal.check(EVERY_PROJECT, "admin")
    return call


async def _operator_who_asks_nothing(request: Request) -> Call:
    call = await operator(request)
    query(request, NoParameters)
    return call


Operator = Annotated[Call, Depends(_operator_who_asks_nothing)]
LetterId = Annotated[str, Path(description="As it was listed.", examples=["17.0.1761307200000-0"])]


@router.get(
    "/v1/overview",
    summary="How much comes in, and how far it is archived",
    responses={200: _example(_FIGURES), **problem_answers(401, 403, 422, 429, 503)},
)
async def read_overview(call: Operator) -> Figures:
    """Of all processes together. The boards with the longest journals are listed, 100 at most.

    `postgres` is null while it does not answer. The key must be for every project. Needs the scope `admin`.
    """
    return Figures.model_validate(await call.laurels.operator_status.figures(), from_attributes=True)


@router.get(
    "/v1/doctor",
    summary="What could be wrong",
    responses={200: _example({"findings": [_FINDING]}), **problem_answers(401, 403, 422, 429, 503)},
)
async def read_findings(call: Operator) -> Findings:
    """Each thing that was looked at, what was found, and how to mend it: as `laurels doctor` tells it.

    The key must be for every project. Needs the scope `admin`.
    """
    laurels = call.laurels
    found = await doctor.examine_open(laurels.valkey, laurels.postgres, laurels.settings)
    return Findings(findings=[Finding(**vars(each)) for each in found])


@router.get(
    "/v1/dead-letters",
    summary="What could not be archived",
    responses={
        200: _example({"total": 1, "letters": [_LETTER]}),
        **problem_answers(401, 403, 422, 429, 503),
    },
    openapi_extra={"parameters": list(query_parameters(LettersParameters))},
)
async def list_dead_letters(request: Request, call: Annotated[Call, Depends(operator)]) -> DeadLetters:
    """Entries of the journal that PostgreSQL did not take, and why; newest first.

    The key must be for every project. Needs the scope `admin`.
    """
    asked = query(request, LettersParameters)
    found = await call.laurels.operator_status.dead_letters(asked.limit)
    return DeadLetters.model_validate(found, from_attributes=True)


@router.post(
    "/v1/dead-letters/{letter:segment}/retry",
    summary="Archive a dead letter after all",
    status_code=204,
    responses=problem_answers(401, 403, 404, 422, 429, 503),
)
async def retry_dead_letter(call: Operator, letter: LetterId) -> None:
    """Puts it back into its journal, behind what is there: once what it failed by is mended.

    The key must be for every project. Needs the scope `admin`.
    """
    await call.laurels.operator_status.retry(letter)


@router.delete(
    "/v1/dead-letters/{letter:segment}",
    summary="Discard a dead letter",
    status_code=204,
    responses=problem_answers(401, 403, 404, 422, 429, 503),
)
async def discard_dead_letter(call: Operator, letter: LetterId) -> None:
    """For good: what it recorded counts on the board, but no rebuild will know of it.

    The key must be for every project. Needs the scope `admin`.
    """
    await call.laurels.operator_status.discard(letter)
