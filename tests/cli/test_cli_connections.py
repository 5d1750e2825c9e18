"""What `laurels serve` makes of its settings for connections."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from cli_processes import serving

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = b"GET /healthz HTTP/1.1\r\nHost: laurels\r\n\r\n"
DEADLINE_SECONDS = 60


def connected(url: str) -> socket.socket:
    address = urlsplit(url)
    assert address.hostname
    assert address.port
    return socket.create_connection((address.hostname, address.port), timeout=DEADLINE_SECONDS)


def rest(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    with connection.makefile("rb") as reading:
        return reading.read()


def test_connections_are_as_many_and_as_idle_as_the_settings_allow(data_dir: Path):
    settings = {"LAURELS_MAX_CONNECTIONS": "2", "LAURELS_KEEP_ALIVE": "1"}
    with (
        serving(data_dir, settings=settings) as server,
        closing(connected(server.url)) as first,
        closing(connected(server.url)) as second,
    ):
        first.sendall(QUESTION)
        second.sendall(QUESTION)
        with closing(connected(server.url)) as third:
            assert rest(third).startswith(b"HTTP/1.1 503 ")
        assert rest(first).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "got"), [(512, 4096, 1000, 1000), (512, 512, 1000, 256), (64, 64, 1000, 1)]
)
def test_connections_fit_into_the_limit_of_open_files(soft: int, hard: int, wanted: int, got: int):
    program = f"""
import json, resource
from laurels.cli.open_files import RESERVED, connections_within
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
found = connections_within({wanted})
print(json.dumps([found, resource.getrlimit(resource.RLIMIT_NOFILE)[0], RESERVED]))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found, now, reserved = json.loads(ran.stdout.splitlines()[-1])
    assert found == got
    assert now == min(wanted + reserved, hard)
