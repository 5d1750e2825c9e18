"""One call: a request, repeated until it has a final answer."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from laurels.access.signing import IDEMPOTENCY_KEY, Signed
from laurels.client.errors import Unreachable, error_of
from laurels.client.retries import Retries, Tries, asked_pause, is_passing
from laurels.client.steps import Lost, Pause, Request, Send
from laurels.errors import NotFound, OutcomeUnknown

if TYPE_CHECKING:
    from laurels.client.steps import Flow, Reply
    from laurels.errors import LaurelsError


@dataclass(frozen=True)
class Caller:
    """The credentials, the time limit and the retries of a client."""

    bearer: str | None = field(default=None, repr=False)
    """A key, or a player's token."""
    secret: str | None = field(default=None, repr=False)
    """Signs submissions."""
    timeout: float = 10.0
    retries: Retries = field(default_factory=Retries)

    def call(
        self,
        request: Request,
        *,
        id: str | None = None,  # noqa: A002  # the name that callers know it by
        signed: bool = False,
        once_gone: bool = False,
    ) -> Flow[Reply]:
        """The answer to a request, which is repeated while it may succeed. Raises the error of a bad answer.

        `id`: with it, the caller can repeat the change. `once_gone`: NotFound is good if an earlier try may
        have removed the thing.
        """
        request_id = uuid4().hex
        tries = Tries(self.retries, self.retries.attempts)
        changes = signed or request.method in {"PUT", "DELETE"}
        unsure = False
        while True:
            reply: Reply | Lost = yield Send(
                self.dressed(request, request_id, signed=signed), max(0.001, min(self.timeout, tries.left))
            )
            if not isinstance(reply, Lost) and reply.status < 300:
                return reply
            error = error_of(reply, request_id)
            if once_gone and unsure and isinstance(error, NotFound) and not isinstance(reply, Lost):
                return reply
            if not is_passing(reply):
                raise error
            unsure = unsure or isinstance(error, OutcomeUnknown)
            if unsure and changes:
                error = _unsure(error, id)
            yield Pause(tries.pause(error, asked_pause(reply)))

    def dressed(self, request: Request, request_id: str, *, signed: bool = False) -> Request:
        """The request with its headers. Each try has its own signature, as a nonce is good once."""
        headers = {**request.headers, "X-Request-Id": request_id, "User-Agent": _AGENT}
        if self.bearer is not None:
            headers["Authorization"] = f"Bearer {self.bearer}"
        if signed and self.secret is not None:
            now, nonce = str(int(time.time())), secrets.token_hex(16)
            key = request.headers.get(IDEMPOTENCY_KEY, "")
            signed_parts = Signed(request.method, request.path, now, nonce, key)
            headers |= signed_parts.headers(self.secret, request.body or b"")
        return replace(request, headers=headers)


def _unsure(error: LaurelsError, id: str | None) -> OutcomeUnknown:  # noqa: A002  # as above
    """The error of a change that an earlier try may have made."""
    kind = Unreachable if isinstance(error, Unreachable) else OutcomeUnknown
    return kind(error.detail, id or getattr(error, "retry_with", None))


_AGENT: Final = f"laurels-python/{version('laurels')}"
