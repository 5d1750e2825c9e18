"""Signatures on submissions: proof that a body comes from who has the project's secret, and comes once.

`X-Laurels-Signature: v1=HEX`, where HEX is the HMAC-SHA256 of `TIMESTAMP.NONCE.BODY` under the secret: the
body to the byte as it was sent, compressed or not. A signed body is read whole, and verified before any of it
counts.
"""

from __future__ import annotations

import hmac
import re
from contextlib import aclosing
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final

from starlette.requests import Request

from laurels.api import body
from laurels.errors import BadSignature
from laurels.valkey.names import NONCE as NONCE_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Message

    from laurels.archive.project_secrets import ActiveSecret
    from laurels.laurels import Laurels

TIMESTAMP: Final = "X-Laurels-Timestamp"
NONCE: Final = "X-Laurels-Nonce"
SIGNATURE: Final = "X-Laurels-Signature"
HEADERS: Final = (TIMESTAMP, NONCE, SIGNATURE)

# How far the client's clock may be from ours, in seconds.
WINDOW_SECONDS: Final = 300
# A nonce is remembered for longer than a timestamp can be good: from 300 s ahead to 300 s behind.
NONCE_SECONDS: Final = 2 * WINDOW_SECONDS + 60
# Beyond this, a signed body waits on disk.
IN_MEMORY_BYTES: Final = 2**20
PIECE_BYTES: Final = 2**16

HOW: Final = (
    f"send {TIMESTAMP} (unix seconds), {NONCE} (8 to 128 visible ASCII characters) and {SIGNATURE}: v1= and "
    "the hex of HMAC-SHA256 over TIMESTAMP.NONCE.BODY"
)

_NONCE: Final = re.compile(r"[!-~]{8,128}")
_SIGNATURE: Final = re.compile(r"v1=([0-9a-fA-F]{64})")


async def verified(
    request: Request, laurels: Laurels, project: str, secrets: Sequence[ActiveSecret], limit: int
) -> Request:
    """The request, once its signature was found good; one that has none, where none is required.

    Raises `BadSignature`; what was read of the body can be read again from the request that is returned.
    """
    keys = [secret.key.encode() for secret in secrets if secret.use == "signatures"]
    sent = request.headers.get(SIGNATURE)
    if sent is None:
        if any(secret.required for secret in secrets):
            raise BadSignature(f"submissions to {project} must be signed: {HOW}")
        return request
    if not keys:
        raise BadSignature(f"{project} has no secret for signatures in force: leave {SIGNATURE} out")
    timestamp, nonce, signature = _read(request, sent)
    if abs(laurels.clock() // 1_000_000 - int(timestamp)) > WINDOW_SECONDS:
        raise BadSignature(
            f"{TIMESTAMP} is more than {WINDOW_SECONDS} seconds from our clock: sign anew, and check yours"
        )
    spool: SpooledTemporaryFile[bytes] = SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115  # read later
    try:
        digests = [hmac.new(key, f"{timestamp}.{nonce}.".encode(), "sha256") for key in keys]
        async with aclosing(body.raw_pieces(request, limit)) as pieces:
            async for piece in pieces:
                spool.write(piece)
                for digest in digests:
                    digest.update(piece)
        _compare(signature, [digest.digest() for digest in digests])
        await _use_up(laurels, project, nonce)
    except BaseException:
        spool.close()
        raise
    return _replayed(request, spool)


def _read(request: Request, sent: str) -> tuple[str, str, bytes]:
    timestamp, nonce = request.headers.get(TIMESTAMP, ""), request.headers.get(NONCE, "")
    signature = _SIGNATURE.fullmatch(sent)
    if signature is None:
        raise BadSignature(f"{SIGNATURE} must be v1= and 64 hexadecimal digits: {HOW}")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise BadSignature(f"{TIMESTAMP} must be the time in unix seconds: {HOW}")
    if not _NONCE.fullmatch(nonce):
        raise BadSignature(f"{NONCE} must be 8 to 128 visible ASCII characters: {HOW}")
    return timestamp, nonce, bytes.fromhex(signature[1])


def _compare(signature: bytes, computed: Sequence[bytes]) -> None:
    """With every one, each in constant time."""
    if not sum(hmac.compare_digest(each, signature) for each in computed):
        raise BadSignature(f"{SIGNATURE} is not that of this body: {HOW}")


async def _use_up(laurels: Laurels, project: str, nonce: str) -> None:
    """Only after the signature was found good: nobody else can use up a nonce."""
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
