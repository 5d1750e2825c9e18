"""Where a request comes from, as far as it can be believed.

The peer's address; and where the peer is a proxy that the settings trust, what it says in `X-Forwarded-For`,
read from the right: every proxy appends the address that it was asked from, so whatever stands to the left of
the first one that is not trusted may be made up.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import HTTPConnection

FORWARDED: Final = ("x-forwarded-for", "forwarded", "x-real-ip")
# Of IPv6, a network of this length is one customer's.
ONE_SITE: Final = 64


class Addresses:
    def __init__(self, trusted: Iterable[str]) -> None:
        self._trusted = [ip_network(each, strict=False) for each in trusted]

    def of(self, request: HTTPConnection) -> str:
        """The client's address, or its network of IPv6; empty where the server has none to tell."""
        address = self._client(request)
        if isinstance(address, IPv6Address):
            return str(ip_network((address, ONE_SITE), strict=False))
        return str(address or "")

    def is_local(self, request: HTTPConnection) -> bool:
        """Whether this machine itself asks: nobody forwards for anybody who need not be on it."""
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
    # A socket for both versions shows an IPv4 peer as ::ffff:192.0.2.1.
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
