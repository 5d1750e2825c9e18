"""Shared by the tests of the embedded servers: waiting, inspecting processes, using both stores."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from laurels.embedded import Endpoints

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")

SERVE_AND_WRITE = Path(__file__).with_name("serve_and_write.py")
OLDER_PYTHON = Path(__file__).with_name("older_python")
DEADLINE = 30.0


def processes_of(data_dir: Path) -> list[int]:
    """The processes that work in the data folder, or name it in their command line."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + b"\0" + os.fsencode((process / "cwd").readlink())
        except OSError:
            continue
        if os.fsencode(data_dir) in words and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Valkey:
    """A minimal client for integer answers."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(endpoints.valkey_url.removeprefix("unix://"))
        except OSError:
            self._socket.close()
            raise
        self._answers = self._socket.makefile("rb")

    def ask(self, command: str) -> int:
        self._socket.sendall(f"{command}\r\n".encode())
        answer = self._answers.readline()
        if not answer.startswith(b":"):
            raise ConnectionError(answer)
        return int(answer[1:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()


def postgres(endpoints: Endpoints, **changes: str) -> psycopg.Connection[tuple[Any, ...]]:
    url = endpoints.postgres_url.replace("postgresql+psycopg://", "postgresql://")
    return psycopg.connect(url, autocommit=True, **changes)  # pyright: ignore[reportArgumentType] any option


def ask_valkey(endpoints: Endpoints, command: str) -> int:
    with Valkey(endpoints) as connection:
        return connection.ask(command)


def increment(endpoints: Endpoints) -> int:
    return ask_valkey(endpoints, "INCR counter")


def insert(endpoints: Endpoints) -> int:
    """Adds a row and returns the number of rows."""
    with postgres(endpoints) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS counter (n bigserial)")
        connection.execute("INSERT INTO counter DEFAULT VALUES")
        row = connection.execute("SELECT count(*) FROM counter").fetchone()
    return row[0] if row else 0


def written(endpoints: Endpoints) -> tuple[int, set[int]]:
    """The counter in Valkey and the rows in PostgreSQL that `serve_and_write.py` left."""
    with postgres(endpoints) as database:
        rows = {row[0] for row in database.execute("SELECT n FROM written")}
    return ask_valkey(endpoints, "INCRBY written 0"), rows


def readable_environment() -> dict[str, str]:
    """Lets any Python of this version find the modules of this one."""
    path = [*filter(None, sys.path), str(OLDER_PYTHON)]
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(path)}


class Writer:
    """A process that serves a data folder and writes into both stores until it is ended."""

    def __init__(
        self,
        data_dir: Path,
        *,
        python: str = sys.executable,
        environment: dict[str, str] | None = None,
        user: int | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [python, str(SERVE_AND_WRITE), str(data_dir)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            cwd="/",
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self._lines = self.process.stdout
        self.pids: dict[str, int] = {}
        self.endpoints = Endpoints("", "")
        self.acknowledged: list[int] = []

    def wait_until_serving(self) -> Self:
        line = self._lines.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        said = json.loads(line)
        self.pids = said["pids"]
        self.endpoints = Endpoints(**said["endpoints"])
        return self

    def wait_until_written(self, count: int) -> None:
        for _ in range(count):
            self.acknowledged.append(int(self._lines.readline()))

    def end_with(self, signal_number: int) -> None:
        """To the whole process group, as a terminal does; what it acknowledged until its end is counted."""
        os.killpg(self.process.pid, signal_number)
        rest = self._lines.read()  # what is buffered too, which communicate() would pass over
        self.process.communicate(timeout=DEADLINE)
        whole_lines = rest[: rest.rfind("\n") + 1].splitlines()
        self.acknowledged += map(int, whole_lines)
