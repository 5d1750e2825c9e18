from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from laurels import embedded

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


IN_MEMORY = Path("/dev/shm")  # noqa: S108  # what is made in it has a random name
ROOM = 2 * 1024**3


@contextmanager
def folder_that_anybody_may_pass(inside: Path | None = None) -> Generator[Path]:
    """Unlike `tmp_path`, which cannot be entered by the unprivileged user of root's servers."""
    with tempfile.TemporaryDirectory(prefix="laurels-test-", dir=inside) as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


def fast_place() -> Path | None:
    """Where there is memory for it, the many new databases of these tests need not wait for a disk."""
    return IN_MEMORY if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM else None


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_that_anybody_may_pass(fast_place()) as folder:
        yield folder


@pytest.fixture
def place_on_disk() -> Iterator[Path]:
    """Programs can be run from here."""
    with folder_that_anybody_may_pass() as folder:
        yield folder


@pytest.fixture
def data_dir(place: Path) -> Path:
    return place / "data"


@pytest.fixture(scope="module")
def running() -> Iterator[embedded.EmbeddedServers]:
    """Servers for the tests that change nothing."""
    with folder_that_anybody_may_pass(fast_place()) as folder, embedded.start(folder / "data") as servers:
        yield servers
