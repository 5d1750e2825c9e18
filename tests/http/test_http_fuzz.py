"""Schemathesis against `laurels serve` on stores of its own: the document is true, and nothing makes it fail.

`make test` looks at the same few requests every time; `make fuzz` at many more, by a seed that it prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from cli_processes import serving
from places import fast_place, folder_that_anybody_may_pass

if TYPE_CHECKING:
    from collections.abc import Generator

CONFIGURATION = Path(__file__).parent / "fuzz" / "schemathesis.toml"
KEY = "fuzz-key"
SETTINGS = {
    "LAURELS_BOOTSTRAP_KEY": KEY,
    # Some checks come with wrong keys, on purpose and often.
    "LAURELS_RATE_LIMIT_FAILURES": "none",
}
# Requests for each operation; and how many stories, of some requests each, are told.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "5"))
STORIES = max(40, EXAMPLES)
SEED = os.environ.get("FUZZ_SEED", "")
SECONDS = 24 * 3600 if SEED else 300

BOARD = "/v1/projects/acme/boards/arcade"


@pytest.fixture(scope="module")
def served() -> Generator[httpx.Client]:
    """A server with a board such as the document's examples speak of."""
    definition = {
        "windows": [{"period": "daily"}, {"period": "all_time"}],
        "groups": [["country"]],
        "allow_op": True,
        "lateness": "P36500D",
    }
    ada = {
        "member": "ada",
        "score": 1200,
        "groups": {"country": "BR"},
        "at": "2025-10-24T12:00:00Z",
        "metadata": {"level": 7},
    }
    headers = {"Authorization": f"Bearer {KEY}"}
    with (
        folder_that_anybody_may_pass(fast_place()) as folder,
        serving(folder / "data", settings=SETTINGS) as server,
        httpx.Client(base_url=server.url, headers=headers, timeout=30) as client,
    ):
        assert client.put(BOARD, json=definition).status_code == 201
        for submission in (ada, {**ada, "member": "bob", "score": 800}):
            assert client.post(f"{BOARD}/scores", json=submission).status_code == 200
        yield client


def fuzz(client: httpx.Client, folder: Path, phases: str, examples: int) -> str:
    """What Schemathesis says, if it has nothing to complain about."""
    drawn = ["--seed", SEED] if SEED else ["--generation-deterministic"]
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION), "run"]
    limits = ["--phases", phases, "--max-examples", str(examples)]
    found = subprocess.run(
        [*command, str(client.base_url.join("/openapi.json")), "--no-color", *limits, *drawn],
        cwd=folder,
        env=os.environ | {"FUZZ_KEY": KEY, "FUZZ_PHASES": phases, "PYTHONPATH": str(CONFIGURATION.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    sys.stdout.write(f"{examples} examples, seed {SEED or 'none: derandomized'}\n{found.stdout}")
    assert found.returncode == 0, found.stdout[-20_000:] + found.stderr
    for phase in phases.split(","):
        assert re.search(rf"✅\s+{phase.capitalize()}$", found.stdout, re.MULTILINE), phase
    return found.stdout


def test_every_operation_holds_whatever_is_sent(served: httpx.Client, tmp_path: Path):
    told = fuzz(served, tmp_path, "examples,coverage,fuzzing", EXAMPLES)
    document = served.get("/openapi.json").json()
    operations = sum(len(methods) for methods in document["paths"].values())
    assert f"Selected: {operations}/{operations}" in told
    assert f"Tested: {operations}\n" in told


def test_every_operation_holds_behind_others(served: httpx.Client, tmp_path: Path):
    """A board, a score, its member: what one answer says is asked for in the next."""
    told = fuzz(served, tmp_path, "stateful", STORIES)
    covered = re.search(r"API Links:\s+(\d+) covered", told)
    assert covered is not None
    assert int(covered[1]) >= 10


def test_nothing_failed_inside(served: httpx.Client):
    failed = re.findall(
        r'^laurels_\w*requests\w*{[^}]*status="5[^}]*} .*$', served.get("/metrics").text, re.MULTILINE
    )
    assert failed == []
