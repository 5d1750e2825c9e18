"""Servers for one example alone: its keys are the documented ones, and there are no others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli_processes import COMMAND, environment
from places import fast_place, folder_that_anybody_may_pass
from raw_valkey import RawValkey

from laurels import embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from laurels.embedded import Endpoints

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def own_endpoints() -> Generator[Endpoints]:
    with folder_that_anybody_may_pass(fast_place()) as folder, embedded.start(folder / "data") as servers:
        yield servers.endpoints


@pytest.fixture(scope="module")
def raw(own_endpoints: Endpoints) -> Generator[RawValkey]:
    """The example's Valkey, as any Redis client sees it."""
    valkey = RawValkey(own_endpoints.valkey_url)
    yield valkey
    valkey.close()


@pytest.fixture
def performed(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """Runs an example as `make example` does; what it printed, and its plot."""

    def run(name: str) -> tuple[str, str]:
        plot = tmp_path / "plot.svg"
        with folder_that_anybody_may_pass(fast_place()) as folder:
            done = subprocess.run(
                [sys.executable, "-m", f"examples.{name}.play", "--plot", str(plot)],
                cwd=ROOT,
                env={**environment(), "TMPDIR": str(folder)},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        return done.stdout, plot.read_text()

    return run


@pytest.fixture
def applied(own_endpoints: Endpoints) -> Callable[..., dict[str, str]]:
    """Runs `laurels apply FILE`; what became of each board. On the example's servers, unless words say."""

    def run(file: Path, *words: str) -> dict[str, str]:
        urls = {
            "LAURELS_VALKEY_URL": own_endpoints.valkey_url,
            "LAURELS_POSTGRES_URL": own_endpoints.postgres_url,
        }
        done = subprocess.run(
            [*COMMAND, "apply", str(file), "--json", *words],
            cwd="/",  # where there is no laurels.toml
            env=environment({} if words else urls),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return {board["board"]: board["kind"] for board in json.loads(done.stdout)["boards"]}

    return run
