"""Checks the head of a request and its size (RFC 9112), where the parser does not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.http.problems import (
    HeadersTooLarge,
    MalformedRequest,
    NotImplementedHere,
    TargetTooLong,
    VersionNotSupported,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.errors import LaurelsError

# Request line and headers together.
HEAD_BYTES: Final = 64 * 1024
# Room for 1,000 friends of 40 bytes each, the most that a request may name.
TARGET_BYTES: Final = 48 * 1024
MOST_HEADERS: Final = 100
# Chunk extensions and trailers, between two pieces of a body or after the last one.
FRAMING_BYTES: Final = 16 * 1024

VERSIONS: Final = frozenset({"1.0", "1.1"})

_AUTHORITY: Final = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Za-z:.]+\])(?::[0-9]*)?")
_ABSOLUTE: Final = re.compile(rb"https?://([^/?]+)(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class Head:
    """A parsed head: names in lower case, values without surrounding spaces."""

    method: bytes
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    host: bytes | None
    codings: bytes
    """The values of `Transfer-Encoding`, with a comma before each."""


def check(head: Head) -> None:
    """Raises if the head is not valid; reduces an absolute target to its path."""
    if head.version not in VERSIONS:
        raise VersionNotSupported(f"this server speaks HTTP/1.1 and HTTP/1.0, not HTTP/{head.version}")
    if head.method == b"CONNECT":
        raise NotImplementedHere("CONNECT is for proxies; this server is not a proxy")
    if head.codings:
        _check_codings(head.codings, head.version)
    if head.host is None:
        if head.version == "1.1":
            raise MalformedRequest("send the header Host: HTTP/1.1 requires it")
    elif not _AUTHORITY.fullmatch(head.host):
        raise MalformedRequest("the header Host must be a name or an address, and a port")
    if not head.target.startswith(b"/"):
        _make_own(head)
    if b"#" in head.target:
        raise MalformedRequest("leave the fragment (#) out of the target")


def check_size(target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Counts 4 bytes for the colon, the space and the line end of a header."""
    size = len(target) + sum(len(name) + len(value) + 4 for name, value in headers)
    if len(target) > TARGET_BYTES or size > HEAD_BYTES:
        raise oversize(target)


def check_count(headers: Sequence[tuple[bytes, bytes]]) -> None:
    if len(headers) > MOST_HEADERS:
        raise HeadersTooLarge(f"send at most {MOST_HEADERS} headers, not {len(headers)}")


def oversize(target: bytes) -> LaurelsError:
    """The error for a head that is too large."""
    if len(target) > TARGET_BYTES:
        return TargetTooLong(f"the target (path and query) may have {TARGET_BYTES} bytes")
    return HeadersTooLarge(f"request line and headers together may have {HEAD_BYTES} bytes")


def excess_framing() -> LaurelsError:
    return HeadersTooLarge(
        f"extensions and trailers of a chunked body may have {FRAMING_BYTES} bytes before its next piece"
    )


def _check_codings(listed: bytes, version: str) -> None:
    if version != "1.1":
        raise MalformedRequest("HTTP/1.0 has no Transfer-Encoding; send Content-Length")
    codings = [coding.strip(b" \t").lower() for coding in listed.split(b",")][1:]
    if codings[-1] != b"chunked":
        raise MalformedRequest("the last Transfer-Encoding must be chunked: otherwise the body has no end")
    if len(codings) > 1:
        raise NotImplementedHere("send only Transfer-Encoding: chunked; compress with Content-Encoding")


def _make_own(head: Head) -> None:
    """Reduces `http://host/path` to the path; its host replaces the header's (RFC 9112, 3.2.2)."""
    if head.target == b"*" and head.method == b"OPTIONS":
        return
    absolute = _ABSOLUTE.fullmatch(head.target)
    if absolute is None or not _AUTHORITY.fullmatch(absolute[1]) or absolute[1].startswith(b":"):
        raise MalformedRequest("the target must be a path, such as /v1/projects")
    head.headers[:] = [(name, absolute[1] if name == b"host" else value) for name, value in head.headers]
    head.target = absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]
