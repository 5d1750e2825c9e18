from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from places import fast_place, folder_that_anybody_may_pass

from laurels import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_that_anybody_may_pass(fast_place()) as folder:
        yield folder


@pytest.fixture
def place_on_disk() -> Iterator[Path]:
    """A folder on a file system that allows running programs."""
    with folder_that_anybody_may_pass() as folder:
        yield folder


@pytest.fixture
def data_dir(place: Path) -> Path:
    return place / "data"


@pytest.fixture(scope="module")
def running() -> Iterator[embedded.EmbeddedServers]:
    """Servers for tests that change nothing."""
    with folder_that_anybody_may_pass(fast_place()) as folder, embedded.start(folder / "data") as servers:
        yield servers
