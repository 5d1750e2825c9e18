"""The text that a signature signs, for the server and the client. Pure.

Seven lines, joined by line feeds: the version, the method, the target, the time, the nonce, the
`Idempotency-Key` and the digest of the body. No line can contain a line feed, so the text is unambiguous.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple

TIMESTAMP: Final = "X-Laurels-Timestamp"
NONCE: Final = "X-Laurels-Nonce"
SIGNATURE: Final = "X-Laurels-Signature"
IDEMPOTENCY_KEY: Final = "Idempotency-Key"
VERSION: Final = "v2"

# What each line may contain, as regular expressions.
TIMESTAMP_PATTERN: Final = r"[0-9]{1,12}"
NONCE_PATTERN: Final = r"[A-Za-z0-9_-]{16,64}"
TARGET_PATTERN: Final = r"/[!-~]*"
IDEMPOTENCY_KEY_PATTERN: Final = r"[ -~]*"


class Signed(NamedTuple):
    """What a signature covers besides the body."""

    method: str
    target: str
    """The path and the query as sent, percent-encoded."""
    timestamp: str
    """Unix seconds."""
    nonce: str
    idempotency_key: str = ""
    """Empty for a request without one."""

    def text(self, body_digest: str) -> str:
        """`body_digest`: the SHA-256 of the body as sent, in hex."""
        return "\n".join((VERSION, *self, body_digest))

    def signature(self, secret: str, body_digest: str) -> str:
        """HMAC-SHA256, in hex."""
        return hmac.new(secret.encode(), self.text(body_digest).encode(), hashlib.sha256).hexdigest()

    def headers(self, secret: str, body: bytes) -> dict[str, str]:
        signature = self.signature(secret, hashlib.sha256(body).hexdigest())
        return {
            TIMESTAMP: self.timestamp,
            NONCE: self.nonce,
            SIGNATURE: f"{VERSION}={signature}",
        }
