"""Signatures on submissions: proof that a request comes from a holder of the project's secret, and once.

`X-Laurels-Signature: v2=HEX` is the HMAC-SHA256 of the text that `laurels.signing` describes. A signed body
is read whole, as it was sent, and verified before any of it counts.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from contextlib import aclosing
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final

from starlette.requests import Request

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
from laurels.http import body
from laurels.valkey.names import NONCE as NONCE_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Message

    from laurels.access.store.secrets import ActiveSecret
    from laurels.engine import Laurels

# How far the client's clock may be from ours, in seconds.
WINDOW_SECONDS: Final = 300
# A nonce is remembered for longer than a timestamp can be good: from 300 s ahead to 300 s behind.
NONCE_SECONDS: Final = 2 * WINDOW_SECONDS + 60
# Beyond this, a signed body waits on disk.
IN_MEMORY_BYTES: Final = 2**20
PIECE_BYTES: Final = 2**16

_LINES: Final = (
    f"{VERSION}, method, path with query, timestamp, nonce, {IDEMPOTENCY_KEY} (may be empty), hex of SHA-256 "
    "of the body as sent"
)
HOW: Final = (
    f"send {TIMESTAMP} (unix seconds), {NONCE} (16 to 64 of A-Z a-z 0-9 - _) and {SIGNATURE}: {VERSION}= and "
    f"the hex of HMAC-SHA256 over seven lines: {_LINES}"
)
OLD_VERSION: Final = (
    f"{SIGNATURE}: v1 is no longer accepted, because its text could be read in more than one way; {HOW}"
)

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


async def verified(
    request: Request, laurels: Laurels, project: str, secrets: Sequence[ActiveSecret], limit: int
) -> Request:
    """The request, once its signature was found good; one that has none, where none is required.

    Raises `BadSignature`; what was read of the body can be read again from the request that is returned.
    """
    keys = [secret.key for secret in secrets if secret.use == "signatures"]
    if not request.headers.getlist(SIGNATURE):
        if any(secret.required for secret in secrets):
            raise BadSignature(f"submissions to {project} must be signed: {HOW}")
        return request
    if not keys:
        raise BadSignature(f"{project} has no secret for signatures in force: leave {SIGNATURE} out")
    signature, signed = _read(request)
    if abs(laurels.clock() // 1_000_000 - int(signed.timestamp)) > WINDOW_SECONDS:
        raise BadSignature(
            f"{TIMESTAMP} is more than {WINDOW_SECONDS} seconds from the server's clock: set the clock, "
            "and sign again"
        )
    spool: SpooledTemporaryFile[bytes] = SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115  # read later
    try:
        digest = hashlib.sha256()
        async with aclosing(body.raw_pieces(request, limit)) as pieces:
            async for piece in pieces:
                spool.write(piece)
                digest.update(piece)
        _compare(signature, [signed.signature(key, digest.hexdigest()) for key in keys])
        await _use_up(laurels, project, signed.nonce)
    except BaseException:
        spool.close()
        raise
    return _replayed(request, spool)


def _read(request: Request) -> tuple[str, Signed]:
    """The signature, and what it says that it covers."""
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
    """The header's value, empty without one; a header that a signature covers is sent once."""
    values = request.headers.getlist(name)
    if len(values) > 1:
        raise BadSignature(f"{name} is there {len(values)} times: send it once")
    return values[0] if values else ""


def _target(request: Request) -> str:
    """The path and the query as they were sent."""
    path: str = request.scope["path"]
    query: bytes = request.scope["query_string"]
    return f"{path}?{query.decode('latin-1')}" if query else path


def _compare(signature: str, computed: Sequence[str]) -> None:
    """With every one, each in constant time."""
    if not sum(hmac.compare_digest(each, signature) for each in computed):
        raise BadSignature(f"{SIGNATURE} is not that of this request: {HOW}")


async def _use_up(laurels: Laurels, project: str, nonce: str) -> None:
    """Only after the signature was found good: so only a holder of the secret can use up a nonce."""
    key = f"{NONCE_KEY}{project}:{nonce}"
    if not await laurels.valkey.command("SET", key, 1, "NX", "EX", NONCE_SECONDS):
        raise BadSignature(f"{NONCE} was used before: sign every request, a repeated one too, with a new one")


def _replayed(request: Request, spool: SpooledTemporaryFile[bytes]) -> Request:
    """The same request, whose body comes from the spool."""
    spool.seek(0)

    async def receive() -> Message:
        if spool.closed:
            return await request.receive()
        piece = spool.read(PIECE_BYTES)
        if not piece:
            spool.close()
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    return Request(request.scope, receive)
