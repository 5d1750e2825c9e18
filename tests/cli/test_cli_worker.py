"""`laurels worker`, and the background work of `laurels serve`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import psutil
from cli_processes import COMMAND, environment, run, serving
from waiting import until

from laurels.jobs.agenda import AGENDA

if TYPE_CHECKING:
    from pathlib import Path

    from cli_processes import Served


def jobs_of(served: Served) -> list[dict[str, Any]]:
    key = {"Authorization": f"Bearer {served.welcome['key']}"}
    answer = httpx.get(f"{served.url}/v1/jobs", headers=key)
    assert answer.status_code == 200, answer.text
    return answer.json()["jobs"]


def background(served: Served) -> list[psutil.Process]:
    """The processes that work for it."""
    children = psutil.Process(served.process.pid).children()
    return [child for child in children if "serve_parent" in _command(child)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # or a zombie, which is one
        return ""


def test_serve_does_all_there_is_to_do(served: Served):
    until(lambda: all(job["last_succeeded"] for job in jobs_of(served)))
    assert [job["name"] for job in jobs_of(served)] == [job.name for job in AGENDA]
    assert [job["error"] for job in jobs_of(served)] == [""] * len(AGENDA)


def test_background_work_that_dies_is_started_again_and_ends_with_its_parent(data_dir: Path):
    with serving(data_dir) as served:
        until(lambda: background(served) and jobs_of(served)[0]["last_succeeded"])
        (first,) = background(served)
        first.kill()
        until(lambda: any(each.pid != first.pid for each in background(served)))
        (second,) = background(served)
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait()
        until(lambda: not second.is_running())


def test_without_jobs_a_worker_beside_does_them(data_dir: Path):
    with serving(data_dir, "--no-jobs") as served:
        assert background(served) == []
        assert [job["last_succeeded"] for job in jobs_of(served)] == [None] * len(AGENDA)
        worker = subprocess.Popen(
            [*COMMAND, "worker", "--json", "--data-dir", str(data_dir)],
            stdout=subprocess.PIPE,
            env=environment(),
        )
        until(lambda: all(job["last_succeeded"] for job in jobs_of(served)))
        worker.send_signal(signal.SIGTERM)
        output, _ = worker.communicate()
        assert worker.returncode == 0
        assert json.loads(output) == {"jobs": [job.name for job in AGENDA]}
        findings = run("doctor", "--json", "--data-dir", str(data_dir)).document["findings"]
        assert {f"job {job.name}" for job in AGENDA} <= {finding["name"] for finding in findings}
