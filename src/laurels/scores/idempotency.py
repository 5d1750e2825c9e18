"""Idempotency keys: a request with a key takes effect once.

The first request claims the key. A request with the same key in the meantime, in any process, is refused
with `InFlight`; a later one gets the stored answer. A claim expires after some seconds unless renewed, so
that a dead process does not block the key; the ids of the submissions then keep them from counting twice.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from laurels.errors import InFlight, KeyReused, LaurelsError, Unavailable
from laurels.logs import get_logger
from laurels.valkey import functions
from laurels.valkey.messages import ClaimRequest, Settlement

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.valkey.client import Valkey

# How long a dead process can hold a key.
CLAIM_SECONDS: Final = 30
RENEWAL_SECONDS: Final = 10.0
FIELD: Final = "Idempotency-Key"

log = get_logger("laurels.boards")


class Claim:
    """A key whose request this process works on, or that has an answer already.

    `fingerprint` identifies the request. A streamed request may set it at its end.
    """

    def __init__(self, key: str, fingerprint: str) -> None:
        self.key = key
        self.fingerprint = fingerprint
        self.done_as = ""
        """The fingerprint of the answered request."""
        self.answer: bytes | None = None
        """The stored answer, or the answer to store."""

    @property
    def is_done(self) -> bool:
        return bool(self.done_as)

    def check(self) -> None:
        """Raises `KeyReused` if the stored answer belongs to another request."""
        if self.done_as != self.fingerprint:
            raise _reused(self.key)


class IdempotencyKeys:
    """Claims idempotency keys; each belongs to one board."""

    def __init__(self, valkey: Valkey, catalog: Catalog) -> None:
        self._valkey = valkey
        self._catalog = catalog

    @asynccontextmanager
    async def claim(self, ref: BoardRef, key: str, fingerprint: str = "") -> AsyncGenerator[Claim]:
        """Holds the key during the block. Raises `InFlight` or `KeyReused`.

        If the block sets an `answer`, it is kept for a day. Otherwise the key becomes free again; after an
        error with an unknown outcome, only for the same request.
        """
        board = await self._catalog.board(ref)
        generations = board.keys.generations(0, "once")
        owner = secrets.token_urlsafe(12)
        wanted = ClaimRequest(key, fingerprint, owner, CLAIM_SECONDS)
        found = await functions.claim(self._valkey, (board.keys.of_board(0, "board"), *generations), wanted)
        claim = Claim(key, fingerprint)
        match found.outcome:
            case b"busy":
                raise InFlight(
                    f"a request with the {FIELD} {key!r} is in progress; try again when it is answered"
                )
            case b"other":
                raise _reused(key)
            case b"done":
                claim.done_as, claim.answer = found.fingerprint.decode(), found.answer
                yield claim
                return
            case _:
                pass
        renewing = asyncio.create_task(self._renew(generations, key, owner))
        try:
            yield claim
        except LaurelsError as error:
            how = "open" if isinstance(error, Unavailable) else "forget"
            await self._settle(generations, Settlement(key, owner, how, claim.fingerprint))
            raise
        except BaseException:
            # Interrupted at any point: what was sent may have counted.
            await self._settle(generations, Settlement(key, owner, "open", claim.fingerprint))
            raise
        finally:
            renewing.cancel()
        if claim.answer is None:
            await self._settle(generations, Settlement(key, owner, "forget"))
        else:
            await self._settle(generations, Settlement(key, owner, "done", claim.fingerprint, claim.answer))

    async def _renew(self, generations: Sequence[str], key: str, owner: str) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            await self._settle(generations, Settlement(key, owner, "renew", value=CLAIM_SECONDS))

    async def _settle(self, generations: Sequence[str], settlement: Settlement) -> None:
        """Records the end of the claim. If Valkey does not answer, the claim expires by itself."""
        try:
            await functions.settle(self._valkey, generations, settlement)
        except Unavailable as error:
            log.warning(
                "idempotency key not settled; it will expire", key=settlement.key, detail=error.detail
            )


def _reused(key: str) -> KeyReused:
    return KeyReused.at(FIELD, f"{key!r} belongs to another request; choose another key")
