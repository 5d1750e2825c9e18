"""A TCP proxy on loopback that passes HTTP requests on, and fails on request.

Every request travels on a connection of its own, so a fault hits one request and no other.
"""

from __future__ import annotations

import re
import socket
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Fault: TypeAlias = Literal["before", "after", "halfway", "silent"] | bytes
"""`before`: cut before the request goes on. `after`: it goes on, is answered, and then cut. `halfway`: cut in
the middle of the answer. `silent`: it goes on, and nothing comes back. Bytes: the answer of a gateway.
"""

BUFFER: Final = 65536


class Proxy:
    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._released = threading.Event()
        self.faults: deque[Fault | None] = deque()
        """What happens to the next requests, in order; None and what is beyond pass."""
        self.requests: list[bytes] = []
        """As they arrived, head and body."""
        self.removed_prefix = b""
        """What is taken off the beginning of each path."""

    @property
    def address(self) -> str:
        return "http://{}:{}".format(*self._listener.getsockname())

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        # Wakes `accept`, which closing alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def cut(self) -> None:
        """Cuts what is under way."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="proxy")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._start(lambda client=client: self._serve(client))

    def _serve(self, client: socket.socket) -> None:
        self._open.add(client)
        with client, suppress(OSError):
            request = _read_request(client)
            if request:
                self.requests.append(request)
                self._pass(client, request, self.faults.popleft() if self.faults else None)
        self._open.discard(client)

    def _pass(self, client: socket.socket, request: bytes, fault: Fault | None) -> None:
        if fault == "before":
            return
        if isinstance(fault, bytes):
            client.sendall(fault)
            return
        with socket.create_connection(self._upstream) as server:
            self._open.add(server)
            passed = request.replace(b" %s/" % self.removed_prefix, b" /", 1)
            server.sendall(passed.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            if fault is None:
                while piece := server.recv(BUFFER):
                    client.sendall(piece)
            else:
                answer = b"".join(iter(lambda: server.recv(BUFFER), b""))
                if fault == "halfway":
                    client.sendall(answer[: len(answer) - 10])
                elif fault == "silent":
                    self._released.wait()
            self._open.discard(server)


def _read_request(client: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        piece = client.recv(BUFFER)
        if not piece:
            return b""
        request += piece
    head = request.partition(b"\r\n\r\n")[0]
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    whole = len(head) + 4 + (int(length[1]) if length else 0)
    while len(request) < whole:
        request += client.recv(BUFFER)
    return request
