"""What both clients ask of httpx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx

from laurels.client.steps import Lost

if TYPE_CHECKING:
    from laurels.client.steps import Send

# Unlimited: each watched board holds a connection for as long as it is watched.
LIMITS: Final = httpx.Limits(max_connections=None, max_keepalive_connections=100)
# Errors that mean: no answer came, or not all of it.
BROKEN: Final = (httpx.TransportError, httpx.DecodingError)


def request_of(http: httpx.Client | httpx.AsyncClient, step: Send) -> httpx.Request:
    asked = step.request
    return http.build_request(
        asked.method,
        asked.path,
        content=asked.body,
        headers=asked.headers,
        timeout=httpx.Timeout(step.timeout, read=step.silence or step.timeout),
    )


def lost_by(error: httpx.TransportError | httpx.DecodingError) -> Lost:
    return Lost(f"{type(error).__name__} {error}".strip())


def forget_request(response: httpx.Response) -> None:
    """Frees the request's body: request and response refer to each other until the next collection."""
    response.stream = httpx.ByteStream(b"")
