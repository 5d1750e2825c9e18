"""Idempotency keys: a request with a key takes effect once.

A single score is one call of `laurels_submit`, which also looks up the key and records the answer.

Other requests take several calls, also a score for a board with shards, each of which would have keys of its
own. Such a request first claims its key. A request with the same key in the meantime, in any process, is
refused with `InFlight`; a later one gets the stored answer. A claim expires after some seconds unless it is
renewed, so that a dead process does not block the key. Then ids keep the submissions from counting twice.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

from laurels.errors import InFlight, KeyReused, LaurelsError, Unavailable
from laurels.logs import get_logger
from laurels.valkey import functions
from laurels.valkey.messages import ClaimRequest, Settlement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.boards.catalog import Catalog
    from laurels.boards.keys import BoardRef
    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Settling

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
            raise key_reused(self.key)


class IdempotencyKeys:
    """Claims idempotency keys; each belongs to one board."""

    def __init__(self, valkey: Valkey, catalog: Catalog) -> None:
        self._valkey = valkey
        self._catalog = catalog

    def claim(self, ref: BoardRef, key: str, fingerprint: str = "") -> _Holding:
        """Holds the key during the block. Raises `InFlight` or `KeyReused`.

        If the block sets an `answer`, it is kept for a day. Otherwise the key becomes free again; after an
        error with an unknown outcome, only for the same request.
        """
        return _Holding(self._valkey, self._catalog, ref, Claim(key, fingerprint))


class _Holding:
    """Holds a key while a request is under way. A class, since a generator takes twice the time."""

    def __init__(self, valkey: Valkey, catalog: Catalog, ref: BoardRef, claim: Claim) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._ref = ref
        self._claim = claim
        self._owner = secrets.token_urlsafe(12)
        self._generations: Sequence[str] = ()
        self._renewing: asyncio.TimerHandle | asyncio.Task[None] | None = None

    async def __aenter__(self) -> Claim:
        claim, key = self._claim, self._claim.key
        board = await self._catalog.board(self._ref)
        self._generations = board.keys.generations(0, "once")
        wanted = ClaimRequest(key, claim.fingerprint, self._owner, CLAIM_SECONDS)
        keys = board.keys.of_board(0, "board"), *self._generations
        found = await functions.claim(self._valkey, keys, wanted)
        match found.outcome:
            case b"busy":
                raise in_flight(key)
            case b"other":
                raise key_reused(key)
            case b"done":
                claim.done_as, claim.answer = found.fingerprint.decode(), found.answer
            case _:
                loop = asyncio.get_running_loop()
                self._renewing = loop.call_later(RENEWAL_SECONDS, self._begin_to_renew)
        return claim

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._renewing is None:  # an answer from before
            return
        self._renewing.cancel()
        claim = self._claim
        if error is None and claim.answer is not None:
            await self._settle("done", claim.answer)
        elif error is None or (isinstance(error, LaurelsError) and not isinstance(error, Unavailable)):
            await self._settle("forget")
        else:
            # Unavailable, or interrupted at any point: what was sent may have counted.
            await self._settle("open")

    def _begin_to_renew(self) -> None:
        self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            await self._settle("renew", CLAIM_SECONDS)
            await asyncio.sleep(RENEWAL_SECONDS)

    async def _settle(self, how: Settling, value: bytes | int = b"") -> None:
        """Records the end of the claim. If Valkey does not answer, the claim expires by itself."""
        settlement = Settlement(self._claim.key, self._owner, how, self._claim.fingerprint, value)
        try:
            await functions.settle(self._valkey, self._generations, settlement)
        except Unavailable as error:
            log.warning(
                "idempotency key not settled; it will expire", key=settlement.key, detail=error.detail
            )


def in_flight(key: str) -> InFlight:
    return InFlight(f"a request with the {FIELD} {key!r} is in progress; try again when it is answered")


def key_reused(key: str) -> KeyReused:
    return KeyReused.at(FIELD, f"{key!r} belongs to another request; choose another key")
