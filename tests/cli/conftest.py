from __future__ import annotations

import shutil
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli_processes import Past, Served, end_preloaded, serving

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

IN_MEMORY = Path("/dev/shm")  # noqa: S108  # what is made in it has a random name
ROOM = 2 * 1024**3


@contextmanager
def _place() -> Generator[Path]:
    """Unlike `tmp_path`, open to the unprivileged user of root's servers; in memory, if there is room."""
    is_roomy = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM
    with tempfile.TemporaryDirectory(prefix="laurels-test-", dir=IN_MEMORY if is_roomy else None) as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(scope="session", autouse=True)
def preloaded() -> Iterator[None]:
    yield
    end_preloaded()


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Where nothing is yet."""
    with _place() as place:
        yield place / "data"


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """One `laurels serve --demo` for every test that does not end it."""
    with _place() as place, serving(place / "data", "--demo") as served:
        yield served


@pytest.fixture(scope="session")
def past() -> Iterator[Past]:
    with _place() as place:
        with serving(place / "data", "--demo") as served:
            code = served.end(signal.SIGTERM)
        yield Past(served.data_dir, served.welcome["key"], code)
