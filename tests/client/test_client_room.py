"""The client's room: light to import, and with one place for what talks to the world."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import laurels.client
from laurels.client import AsyncClient, Client
from laurels.client.operations import ClientOperations

SERVER = {"alembic", "fastapi", "psycopg", "redis", "sqlalchemy", "starlette", "typer", "uvicorn", "uvloop"}
FOLDER = Path(laurels.client.__file__).parent
DRIVERS = {"async_client.py", "sync_client.py"}


def test_the_client_brings_no_server():
    code = "import sys, laurels.client; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert set(loaded.split()) & SERVER == set()


def test_only_the_drivers_wait_and_send():
    for path in FOLDER.glob("*.py"):
        talks = any(
            word in path.read_text()
            for word in ("httpx.Client(", "httpx.AsyncClient(", "await ", "time.sleep")
        )
        assert talks == (path.name in DRIVERS), path.name


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_operations_say_what_they_do(client: type[Client | AsyncClient]):
    for name in vars(ClientOperations):
        if not name.startswith("_"):
            assert getattr(client, name).__doc__, name
