"""Verifies the signature of a request before any of its body counts.

The whole body is read as sent, into memory or, if large, a temporary file. The operation reads it there.
"""

from __future__ import annotations

import hashlib
from contextlib import aclosing
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final

from starlette.requests import Request

from laurels.access import signatures
from laurels.http import body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Message

    from laurels.access.store.secrets import ActiveSecret
    from laurels.engine import Laurels

# A larger body is kept on disk.
IN_MEMORY_BYTES: Final = 2**20
PIECE_BYTES: Final = 2**16


async def verified(
    request: Request, laurels: Laurels, project: str, secrets: Sequence[ActiveSecret], limit: int
) -> Request:
    """The request with a body that can be read again, after its signature was verified.

    Raises `BadSignature`. A request without a signature, where none is required, is returned as it is.
    """
    signed = signatures.signed_request(request, project, secrets, laurels.clock())
    if signed is None:
        return request
    spool: SpooledTemporaryFile[bytes] = SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115  # read later
    try:
        digest = hashlib.sha256()
        async with aclosing(body.raw_pieces(request, limit)) as pieces:
            async for piece in pieces:
                spool.write(piece)
                digest.update(piece)
        signed.check(digest.hexdigest())
        await signatures.use_nonce(laurels.valkey, project, signed.covers.nonce)
    except BaseException:
        spool.close()
        raise
    return _replayed(request, spool)


def _replayed(request: Request, spool: SpooledTemporaryFile[bytes]) -> Request:
    """The same request, with the body read from the spool."""
    spool.seek(0)

    async def receive() -> Message:
        if spool.closed:
            return await request.receive()
        piece = spool.read(PIECE_BYTES)
        if not piece:
            spool.close()
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    return Request(request.scope, receive)
