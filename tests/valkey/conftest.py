"""Valkey servers that a test may empty, break and refill without harm to the others."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from supported_servers import valkey_server
from valkey_cluster import running_cluster

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="session")
def own_valkey_url() -> Generator[str]:
    """A Valkey on a socket of its own, with nothing in it."""
    folder = Path(tempfile.mkdtemp(prefix="laurels-own-"))
    options = {"port": "0", "unixsocket": str(folder / "socket"), "save": "", "dir": str(folder)}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    program = str(valkey_server())
    server = subprocess.Popen([program, *words], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        assert any("Ready to accept connections" in line for line in server.stdout)
        yield f"unix://{folder / 'socket'}"
    finally:
        server.terminate()
        server.stdout.close()
        server.wait()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def own_cluster_url() -> Generator[str]:
    with running_cluster(3) as url:
        yield url
