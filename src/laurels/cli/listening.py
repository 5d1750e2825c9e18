"""The address to listen on. `serve` binds it first, so that a used port stops it before anything starts."""

from __future__ import annotations

import errno
import ipaddress
import socket
from dataclasses import dataclass
from typing import Self

from laurels.errors import StartupError


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def url(self) -> str:
        """The URL for a client on this machine."""
        address = ipaddress.ip_address(self.host)
        if address.is_unspecified:
            address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        return f"http://[{address}]:{self.port}" if address.version == 6 else f"http://{address}:{self.port}"


class Listener:
    """A socket that is bound but does not listen yet: an early connection is refused and does not hang."""

    def __init__(self, host: str, port: int) -> None:
        family, where = _resolve(host, port)
        self.socket = socket.socket(family)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind(where)
        except OSError as error:
            self.socket.close()
            raise StartupError(_explain(error, host, port)) from None
        self.address = Address(*self.socket.getsockname()[:2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise StartupError(f"the address {host!r} cannot be found: choose another with --host") from None
    family, _, _, _, where = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, where


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        another = f"--port {port + 1}" if port < 65_535 else "--port"
        return f"port {port} of {host} is in use: choose another with {another}, or a free one with --port 0"
    if error.errno == errno.EACCES:
        return f"port {port} is reserved for root: choose one above 1023 with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: choose another with --host"
    return f"{host} port {port} cannot be used ({error.strerror}): choose others with --host and --port"
