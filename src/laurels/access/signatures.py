"""Verifies signatures on submissions: the sender holds a secret of the project, and sends the request once.

`X-Laurels-Signature: v2=HEX` is the HMAC-SHA256 of the text that `access/signing.py` describes. A signed body
is read completely and verified before any part of it counts.
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.access.signing import (
    IDEMPOTENCY_KEY,
    IDEMPOTENCY_KEY_PATTERN,
    NONCE,
    NONCE_PATTERN,
    SIGNATURE,
    TARGET_PATTERN,
    TIMESTAMP,
    TIMESTAMP_PATTERN,
    VERSION,
    Signed,
)
from laurels.errors import BadSignature
from laurels.valkey import strings
from laurels.valkey.names import NONCE as NONCE_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from laurels.access.store.secrets import ActiveSecret
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey

# How far the client's clock may be from ours, in seconds.
WINDOW_SECONDS: Final = 300
# A nonce is remembered for longer than its timestamp is valid: from 300 s ahead to 300 s behind.
NONCE_SECONDS: Final = 2 * WINDOW_SECONDS + 60

_LINES: Final = (
    f"{VERSION}, method, path with query, timestamp, nonce, {IDEMPOTENCY_KEY} (may be empty), hex of SHA-256 "
    "of the body as sent"
)
HOW: Final = (
    f"send {TIMESTAMP} (unix seconds), {NONCE} (16 to 64 of A-Z a-z 0-9 - _) and {SIGNATURE}: {VERSION}= and "
    f"the hex of HMAC-SHA256 over seven lines: {_LINES}"
)
OLD_VERSION: Final = f"{SIGNATURE}: v1 is no longer accepted, because its text was ambiguous; {HOW}"

_IDEMPOTENCY_KEY: Final = re.compile(IDEMPOTENCY_KEY_PATTERN)
_NONCE: Final = re.compile(NONCE_PATTERN)
_TARGET: Final = re.compile(TARGET_PATTERN)
_TIMESTAMP: Final = re.compile(TIMESTAMP_PATTERN)
_SIGNATURE: Final = re.compile(rf"{VERSION}=([0-9a-fA-F]{{64}})")

DOCUMENTED: Final = {
    TIMESTAMP: "Of a signed request: the time, in unix seconds.",
    NONCE: "Of a signed request: 16 to 64 of `A-Z a-z 0-9 - _`, never used before in the project.",
    SIGNATURE: f"`{VERSION}=` and the hex of HMAC-SHA256 over seven lines: {_LINES}.",
}


class SignedRequest(NamedTuple):
    """A signature and what it covers, not verified yet."""

    signature: str
    covers: Signed
    keys: tuple[str, ...]
    """The project's active secrets for signatures."""

    def check(self, body_digest: str) -> None:
        """Raises `BadSignature` unless one of the keys made the signature. Compares in constant time."""
        computed = [self.covers.signature(key, body_digest) for key in self.keys]
        if not sum(hmac.compare_digest(each, self.signature) for each in computed):
            raise BadSignature(f"{SIGNATURE} does not match this request: {HOW}")


def signed_request(
    request: Request, project: str, secrets: Sequence[ActiveSecret], now: Moment
) -> SignedRequest | None:
    """The signature of a request; None if there is none and the project requires none."""
    keys = tuple(secret.key for secret in secrets if secret.use == "signatures")
    if not request.headers.getlist(SIGNATURE):
        if any(secret.required for secret in secrets):
            raise BadSignature(f"submissions to {project} must be signed: {HOW}")
        return None
    if not keys:
        raise BadSignature(f"{project} has no secret for signatures in force: leave {SIGNATURE} out")
    signature, covers = _read(request)
    if abs(now // 1_000_000 - int(covers.timestamp)) > WINDOW_SECONDS:
        raise BadSignature(
            f"{TIMESTAMP} differs from the server's clock by more than {WINDOW_SECONDS} seconds: "
            "set the clock and sign again"
        )
    return SignedRequest(signature, covers, keys)


async def use_nonce(valkey: Valkey, project: str, nonce: str) -> None:
    """Raises `BadSignature` for a used nonce. Call it after `check`: only a valid signature uses one up."""
    key = f"{NONCE_KEY}{project}:{nonce}"
    if not await valkey.run(strings.put(key, 1, seconds=NONCE_SECONDS, if_absent=True)):
        raise BadSignature(f"{NONCE} was used before: sign every request with a new one, repeated ones too")


def _read(request: Request) -> tuple[str, Signed]:
    """The signature's hex digits, and what it covers."""
    found = _SIGNATURE.fullmatch(_only(request, SIGNATURE))
    if found is None:
        if _only(request, SIGNATURE).startswith("v1="):
            raise BadSignature(OLD_VERSION)
        raise BadSignature(f"{SIGNATURE} must be {VERSION}= and 64 hexadecimal digits: {HOW}")
    timestamp, nonce = _only(request, TIMESTAMP), _only(request, NONCE)
    if not _TIMESTAMP.fullmatch(timestamp):
        raise BadSignature(f"{TIMESTAMP} must be the time in unix seconds: {HOW}")
    if not _NONCE.fullmatch(nonce):
        raise BadSignature(f"{NONCE} must be 16 to 64 of A-Z a-z 0-9 - _: {HOW}")
    target = _target(request)
    if not _TARGET.fullmatch(target):
        raise BadSignature("the path and the query of a signed request must be percent-encoded ASCII")
    key = _only(request, IDEMPOTENCY_KEY)
    if not _IDEMPOTENCY_KEY.fullmatch(key):
        raise BadSignature(f"{IDEMPOTENCY_KEY} of a signed request must be ASCII characters")
    return found[1].lower(), Signed(request.method, target, timestamp, nonce, key)


def _only(request: Request, name: str) -> str:
    """The value of a header; empty without one. Raises `BadSignature` for a repeated header."""
    values = request.headers.getlist(name)
    if len(values) > 1:
        raise BadSignature(f"{name} was sent {len(values)} times: send it once")
    return values[0] if values else ""


def _target(request: Request) -> str:
    """The path and the query as they were sent."""
    path: str = request.scope["path"]
    query: bytes = request.scope["query_string"]
    return f"{path}?{query.decode('latin-1')}" if query else path
