from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from cli_processes import Past, Served, end_preloaded, serving
from places import fast_place, folder_that_anybody_may_pass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


def _place() -> AbstractContextManager[Path]:
    return folder_that_anybody_may_pass(fast_place())


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
