"""The client's room: light to import, and with one place for what talks to the world."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import laurels.client
from laurels import Laurels
from laurels.client import AsyncClient, Client
from laurels.client.operations import Operations

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


def test_both_clients_have_every_operation():
    operations = {name for name in vars(Operations) if not name.startswith("_")}
    assert operations <= {name for name in vars(Client) if inspect.isfunction(getattr(Client, name))}
    assert operations <= {
        name for name in vars(AsyncClient) if inspect.isfunction(getattr(AsyncClient, name))
    }


@pytest.mark.parametrize(
    "name",
    ["among", "around", "define", "definition", "distribution", "drop", "match", "page", "percentile",
     "remove", "standing", "submit", "windows"],
)  # fmt: skip
def test_operations_take_what_the_engines_take(name: str):
    ours, theirs = (
        [str(each) for each in inspect.signature(getattr(kind, name)).parameters.values()]
        for kind in (Operations, Laurels)
    )
    assert theirs[: len(ours)] == ours


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_operations_say_what_they_do(client: type[Client | AsyncClient]):
    for name in vars(Operations):
        if not name.startswith("_"):
            assert getattr(client, name).__doc__, name
