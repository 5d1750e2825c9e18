"""Background jobs: their state, and requests for a run. For keys of every project."""

from msgspec import Struct, convert

from laurels.http.authentication import FOR_EVERY_PROJECT, Call, admit_operator
from laurels.http.operation import Routes
from laurels.jobs.state import JobInfo
from laurels.moments import Timestamp

routes = Routes("jobs", admit_operator, FOR_EVERY_PROJECT)

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


class Job(Struct, frozen=True):
    """A job with the results of its runs. Times are null for what has not happened yet."""

    name: str
    next_due: Timestamp | None
    last_due: Timestamp | None
    last_started: Timestamp | None
    last_finished: Timestamp | None
    last_succeeded: Timestamp | None
    last_result: str
    progress: str
    error: str
    attempts: int
    retry_at: Timestamp | None
    requested_at: Timestamp | None
    worker: str
    succeeded: int
    failed: int


class Jobs(Struct, frozen=True):
    """All jobs."""

    jobs: list[Job]


def _job(job: JobInfo) -> Job:
    return convert({"next_due": job.next_due, **vars(job.state)}, Job)


@routes.get("/v1/jobs", scope="admin", example={"jobs": [_JOB]})
async def list_jobs(call: Call) -> Jobs:
    """List the jobs.

    Each with the time when it is due next and the results of its runs.
    """
    return Jobs([_job(job) for job in await call.laurels.jobs()])


@routes.post("/v1/jobs/{name:segment}/run", scope="admin", status=202, example=_JOB, problems=(404,))
async def run_job(call: Call, name: str) -> Job:
    """Run a job.

    A worker starts it at its next look, whether or not it is due.
    """
    return _job(await call.laurels.request_job(name))
