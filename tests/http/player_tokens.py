"""Tokens and signatures, made as a project makes them."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import jwt

# Noon of the tests' clock.
NOW = datetime(2025, 10, 24, 12, tzinfo=UTC)

_nonces = count(1)


def token(
    secret: str,
    project: str,
    member: str,
    *,
    algorithm: str = "HS256",
    kid: str | None = None,
    **claims: Any,  # noqa: ANN401  # JSON
) -> str:
    """Good for an hour; a claim that is None is left out."""
    all_claims: dict[str, Any] = {
        "aud": "laurels",
        "exp": NOW + timedelta(hours=1),
        "project": project,
        "sub": member,
        **claims,
    }
    given = {name: value for name, value in all_claims.items() if value is not None}
    return jwt.encode(given, secret, algorithm, {"kid": kid} if kid else None)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def signed(  # what a signature covers
    secret: str,
    target: str,
    body: bytes,
    *,
    method: str = "POST",
    at: datetime = NOW,
    nonce: str = "",
    key: str = "",
) -> dict[str, str]:
    """The headers of a signed request."""
    timestamp = str(int(at.timestamp()))
    nonce = nonce or f"nonce-{next(_nonces):012}"
    text = "\n".join(("v2", method, target, timestamp, nonce, key, hashlib.sha256(body).hexdigest()))
    digest = hmac.new(secret.encode(), text.encode(), "sha256")
    headers = {
        "X-Laurels-Timestamp": timestamp,
        "X-Laurels-Nonce": nonce,
        "X-Laurels-Signature": f"v2={digest.hexdigest()}",
    }
    return headers | ({"Idempotency-Key": key} if key else {})
