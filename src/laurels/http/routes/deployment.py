"""The state of the deployment, for keys of every project: figures, findings and dead letters."""

from typing import Annotated

from msgspec import Meta, Struct, convert

from laurels import doctor
from laurels.doctor.checks import Status
from laurels.history.operator_status import DeadLetters, Figures
from laurels.http.authentication import FOR_EVERY_PROJECT, Call, admit_operator
from laurels.http.operation import Routes

routes = Routes("deployment", admit_operator, FOR_EVERY_PROJECT)


class FindingAnswer(Struct, frozen=True):
    """The result of one check. `fix` says what to do; empty if nothing is wrong."""

    name: str
    status: Status
    found: str
    fix: str


class Findings(Struct, frozen=True):
    findings: list[FindingAnswer]


class LettersParameters(Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many letters, at most.")] = 100


_FIGURES = {
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


@routes.get("/v1/overview", scope="admin", example=_FIGURES)
async def read_overview(call: Call) -> Figures:
    """Read the figures of the deployment.

    How much all processes recorded, and how much of it is archived. Lists the boards with the longest
    journals, at most 100. `postgres` is null while PostgreSQL does not answer.
    """
    return await call.laurels.operator_status.figures()


@routes.get("/v1/doctor", scope="admin", example={"findings": [_FINDING]})
async def read_findings(call: Call) -> Findings:
    """Check the deployment.

    Each check, what it found and how to fix it, as `laurels doctor` prints it.
    """
    laurels = call.laurels
    found = await doctor.examine_open(laurels.valkey, laurels.postgres, laurels.settings)
    return convert({"findings": found}, Findings, from_attributes=True)


@routes.get("/v1/dead-letters", scope="admin", example={"total": 1, "letters": [_LETTER]})
async def list_dead_letters(call: Call, query: LettersParameters) -> DeadLetters:
    """List the dead letters.

    Entries of the journal that PostgreSQL refused, with the reason, newest first.
    """
    return await call.laurels.operator_status.dead_letters(query.limit)


@routes.post("/v1/dead-letters/{letter:segment}/retry", scope="admin", problems=(404,))
async def retry_dead_letter(call: Call, letter: str) -> None:
    """Retry a dead letter.

    Puts it back at the end of its journal. Do this after you have fixed the cause of the failure.
    """
    await call.laurels.operator_status.retry(letter)


@routes.delete("/v1/dead-letters/{letter:segment}", scope="admin", problems=(404,))
async def discard_dead_letter(call: Call, letter: str) -> None:
    """Discard a dead letter.

    Permanently. Its changes stay on the board, but a rebuild will not include them.
    """
    await call.laurels.operator_status.discard(letter)
