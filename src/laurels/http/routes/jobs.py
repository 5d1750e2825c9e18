"""Background work: how it goes, and a run out of turn. For keys of every project alone."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from laurels.access.store.keys import EVERY_PROJECT
from laurels.http.authentication import Call, identify
from laurels.http.openapi import own_name, problem_answers
from laurels.http.parameters import NoParameters, query
from laurels.jobs.overview import JobInfo

router = APIRouter(tags=["jobs"], generate_unique_id_function=own_name)


_JOB = {
    "name": "snapshots",
    "next_due": "2025-10-24T12:00:10Z",
    "last_due": "2025-10-24T12:00:00Z",
    "last_started": "2025-10-24T12:00:01Z",
    "last_finished": "2025-10-24T12:00:02Z",
    "last_succeeded": "2025-10-24T12:00:02Z",
    "last_result": "3 snapshots of 1300 entries",
    "progress": "",
    "error": "",
    "attempts": 0,
    "retry_at": None,
    "requested_at": None,
    "worker": "host:4711",
    "succeeded": 8640,
    "failed": 0,
}


class Job(BaseModel):
    """A job, and what became of its runs. Times are null for what has not happened yet."""

    name: str
    next_due: datetime | None
    last_due: datetime | None
    last_started: datetime | None
    last_finished: datetime | None
    last_succeeded: datetime | None
    last_result: str
    progress: str
    error: str
    attempts: int
    retry_at: datetime | None
    requested_at: datetime | None
    worker: str
    succeeded: int
    failed: int


class Jobs(BaseModel):
    """Every job that there is."""

    jobs: list[Job]


def _example(shown: object) -> dict[str, Any]:
    return {"content": {"application/json": {"example": shown}}}


async def _operator(request: Request) -> Call:
    call = await identify(request)
    call.principal.check(EVERY_PROJECT, "admin")
    query(request, NoParameters)
    return call


@router.get(
    "/v1/jobs",
    summary="List the jobs",
    responses={200: _example({"jobs": [_JOB]}), **problem_answers(401, 403, 422, 429, 503)},
)
async def list_jobs(call: Annotated[Call, Depends(_operator)]) -> Jobs:
    """What is done in the background, when it is due, and how the last runs ended.

    The key must be for every project. Needs the scope `admin`.
    """
    found = await call.laurels.jobs()
    return Jobs(jobs=[_shown(job) for job in found])


@router.post(
    "/v1/jobs/{name:segment}/run",
    status_code=202,
    summary="Run a job",
    responses={202: _example(_JOB), **problem_answers(401, 403, 404, 422, 429, 503)},
)
async def run_job(
    call: Annotated[Call, Depends(_operator)],
    name: Annotated[str, Path(description="One of the jobs.", examples=["snapshots"])],
) -> Job:
    """As soon as a worker looks, whether or not it is due.

    The key must be for every project. Needs the scope `admin`.
    """
    return _shown(await call.laurels.request_job(name))


def _shown(job: JobInfo) -> Job:
    return Job.model_validate({"next_due": job.next_due, **vars(job.state)})
