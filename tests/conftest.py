"""What every test may ask for: the real servers, started once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from laurels import embedded

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.embedded import Endpoints


@pytest.fixture(scope="session")
def endpoints() -> Generator[Endpoints]:
    """Where the tests' own Valkey and PostgreSQL answer."""
    # Not under pytest's folder: that one is closed to the user that the servers run as when we are root.
    folder = Path(tempfile.mkdtemp(prefix="laurels-test-"))
    folder.chmod(0o711)
    try:
        with embedded.start(folder / "data") as servers:
            yield servers.endpoints
    finally:
        shutil.rmtree(folder)
