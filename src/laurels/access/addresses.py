"""Finds the address of a client, behind proxies too.

The address is the peer's, unless the peer is a trusted proxy. Then `X-Forwarded-For` is read from the right:
every proxy appends the address of its peer, so anything left of the first untrusted address may be forged.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import HTTPConnection

FORWARDED: Final = ("x-forwarded-for", "forwarded", "x-real-ip")
# One customer has an IPv6 network of this prefix length.
ONE_SITE: Final = 64


class Addresses:
    def __init__(self, trusted: Iterable[str]) -> None:
        self._trusted = [ip_network(each, strict=False) for each in trusted]

    def of(self, request: HTTPConnection) -> str:
        """The client's IPv4 address or IPv6 network; empty if the server does not know it."""
        address = self._client(request)
        if isinstance(address, IPv6Address):
            return str(ip_network((address, ONE_SITE), strict=False))
        return str(address or "")

    def is_local(self, request: HTTPConnection) -> bool:
        """Whether the client is on this machine. Untrusted proxies here may forward for clients elsewhere."""
        address = self._client(request)
        if address is None or not address.is_loopback:
            return False
        peer = _parsed(request.client.host) if request.client else None
        return self._is_trusted(peer) or not any(name in request.headers for name in FORWARDED)

    def _client(self, request: HTTPConnection) -> IPv4Address | IPv6Address | None:
        found = _parsed(request.client.host) if request.client else None
        if not self._is_trusted(found):
            return found
        hops = [hop for line in request.headers.getlist("x-forwarded-for") for hop in line.split(",")]
        for hop in reversed(hops):
            address = _parsed(hop.strip())
            if address is None:
                break
            found = address
            if not self._is_trusted(address):
                break
        return found

    def _is_trusted(self, address: IPv4Address | IPv6Address | None) -> bool:
        return bool(self._trusted) and any(address in network for network in self._trusted if address)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A dual-stack socket shows an IPv4 peer as ::ffff:192.0.2.1.
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
