"""How to open a client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypedDict

from laurels.client.call import Caller
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from laurels.client.retries import Retries

# What a header can carry.
_SECRET: Final = re.compile(r"[!-~]+")
_ADDRESS: Final = re.compile(r"https?://.+")


class ClientOptions(TypedDict, total=False):
    key: str | None
    """An API key."""
    token: str | None
    """A player's token, instead of a key."""
    project: str | None
    """The project of boards that are named without one."""
    timeout: float
    """Seconds that one try may wait to connect, or for more of an answer. Default 10."""
    retries: Retries
    secret: str | None
    """The project's secret for signatures: the client signs every submission with it."""


def caller_of(options: ClientOptions) -> Caller:
    key, token = options.get("key"), options.get("token")
    if key is not None and token is not None:
        raise InvalidInput.at("token", "a client has a key or a player's token, not both")
    for name, given in (("key", key), ("token", token), ("secret", options.get("secret"))):
        if given is not None and not _SECRET.fullmatch(given):
            raise InvalidInput.at(name, "must be visible ASCII characters, without spaces or line ends")
    default = Caller()
    return Caller(
        key if token is None else token,
        options.get("secret"),
        options.get("timeout", default.timeout),
        options.get("retries", default.retries),
    )


def check_address(address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise InvalidInput.at("address", f"write it like http://127.0.0.1:8000, not {address!r}")
    return address
