"""Runs Valkey: only on a unix socket, with every write in its append-only file."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = "valkey"
STOP_SIGNALS: list[int] = [signal.SIGTERM, signal.SIGKILL]
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC"}
# The wheel's Valkey uses the C library's allocator. With jemalloc, as in Valkey's own build, writing took a
# fifth less CPU time, and freeing large keys blocks no commands.
ALLOCATOR = "libjemalloc.so.2"
SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "daemonize": "no",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "aof-load-truncated": "yes",
    "save": "",  # no snapshots: the append-only file holds everything
    "maxmemory-policy": "noeviction",
    "enable-debug-command": "no",
    "enable-module-command": "no",
    "slowlog-log-slower-than": "10000",  # microseconds
    "latency-monitor-threshold": "100",  # milliseconds
}


def socket_path(sockets: Path) -> Path:
    return sockets / "valkey.sock"


def url(sockets: Path) -> str:
    return f"unix://{socket_path(sockets)}"


def command_line(program: Path, folder: Path, sockets: Path) -> list[str]:
    settings = {**SETTINGS, "dir": str(folder), "unixsocket": str(socket_path(sockets))}
    return [str(program), *(word for name, value in settings.items() for word in (f"--{name}", value))]


def allocator(program: Path) -> str | None:
    """jemalloc, if the machine has it and the program runs with it."""
    if not sys.platform.startswith("linux"):
        return None
    tried = subprocess.run(  # noqa: S603  # our own
        [str(program), "--version"], env={"LD_PRELOAD": ALLOCATOR}, capture_output=True, check=False
    )
    return None if tried.returncode or tried.stderr else ALLOCATOR


def environment(program: Path) -> dict[str, str]:
    preloaded = allocator(program)
    return {**ENVIRONMENT, "LD_PRELOAD": preloaded} if preloaded else ENVIRONMENT


def waiting_for(sockets: Path) -> str | None:
    """What Valkey is doing; None when it is ready."""
    try:
        answer = _ask_persistence(socket_path(sockets))
    except OSError:
        return "Valkey is starting"
    if re.search(rb"^loading:0\r$", answer, re.MULTILINE):
        return None
    loaded = re.search(rb"^loading_loaded_perc:(\d+)", answer, re.MULTILINE)
    return f"Valkey is loading its data ({int(loaded[1])}%)" if loaded else "Valkey is starting"


def _ask_persistence(path: Path) -> bytes:
    """The answer to `INFO persistence`, which Valkey gives also while it loads; a few hundred bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(str(path))
        connection.sendall(b"INFO persistence\r\n")
        answer = connection.recv(65536)
        length = int(answer[1 : answer.index(b"\r\n")]) if answer.startswith(b"$") else 0
        while len(answer) < length:
            received = connection.recv(65536)
            if not received:
                break
            answer += received
        return answer
