"""Single Valkey servers on loopback, from the bundled binary, with the options that a test wants."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from supported_servers import valkey_server
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from contextlib import AbstractContextManager

Client = Any  # redis-py types its client only in part
DEADLINE_SECONDS = 30


@dataclass(frozen=True)
class Server:
    url: str
    socket: str
    process: subprocess.Popen[bytes]
    client: Client


def running_valkey(**options: str) -> AbstractContextManager[Server]:
    """A server of its own, ready; `appendfsync="always"` is an option `appendfsync always`."""
    return running(valkey_server(), None, **options)


@contextmanager
def running(program: Path, environment: Mapping[str, str] | None = None, **options: str) -> Generator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="laurels-valkey-"))
    address = str(folder / "socket")
    given = {
        "port": "0",
        "unixsocket": address,
        "save": "",
        "dir": str(folder),
        "logfile": str(folder / "log"),
    }
    given |= {name.replace("_", "-"): value for name, value in options.items()}
    words = [word for name, value in given.items() for word in (f"--{name}", *(value.split() or [""]))]
    process = subprocess.Popen([str(program), *words], env={**os.environ, **(environment or {})})
    untyped: Any = redis.Redis
    client: Client = untyped(unix_socket_path=address)
    try:
        until(client.ping)
        yield Server(f"unix://{address}", address, process, client)
    finally:
        client.close()
        process.kill()
        process.wait()
        shutil.rmtree(folder)
