"""Folders for the servers of tests."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

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
    """Where there is memory for it, the databases of tests need not wait for a disk."""
    return IN_MEMORY if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM else None
