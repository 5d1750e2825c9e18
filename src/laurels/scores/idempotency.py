"""Requests that their client gave a key: under one key one request is done, and only once.

Whoever is first claims the key; whoever comes meanwhile, in this process or another, is told to wait; whoever
comes later gets the answer of the first. A claim holds for some seconds only, so that a process that dies
blocks nobody for longer; what keeps the effect from counting twice then is the ids of the submissions.
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

# As long as a key may be held by a process that is gone.
CLAIM_SECONDS: Final = 30
RENEWAL_SECONDS: Final = 10.0
FIELD: Final = "Idempotency-Key"

log = get_logger("laurels.boards")


class Claim:
    """A key while this process works on its request, or the answer that there is already.

    `fingerprint` says what the request is; where only its end tells, it may be given as late as that.
    """

    def __init__(self, key: str, fingerprint: str) -> None:
        self.key = key
        self.fingerprint = fingerprint
        self.done_as = ""
        """The fingerprint of the request that was answered."""
        self.answer: bytes | None = None
        """What it was answered; or, once this one is done, what it is."""

    @property
    def is_done(self) -> bool:
        return bool(self.done_as)

    def check(self) -> None:
        """Raises `KeyReused` if what was answered was another request than this."""
        if self.done_as != self.fingerprint:
            raise _reused(self.key)


class Once:
    """Claims on keys, each of one board."""

    def __init__(self, valkey: Valkey, catalog: Catalog) -> None:
        self._valkey = valkey
        self._catalog = catalog

    @asynccontextmanager
    async def claim(self, ref: BoardRef, key: str, fingerprint: str = "") -> AsyncGenerator[Claim]:
        """Holds the key for as long as it is worked on; raises `InFlight` or `KeyReused`.

        With an `answer` in the end, it is kept for a day. Otherwise the key is free again; after an error
        that leaves the outcome unknown, only for the same request.
        """
        board = await self._catalog.board(ref)
        once = board.keys.generations(0, "once")
        owner = secrets.token_urlsafe(12)
        wanted = ClaimRequest(key, fingerprint, owner, CLAIM_SECONDS)
        found = await functions.claim(self._valkey, (board.keys.of_board(0, "board"), *once), wanted)
        claim = Claim(key, fingerprint)
        match found.outcome:
            case b"busy":
                raise InFlight(
                    f"a request with the {FIELD} {key!r} is under way; try again when it is answered"
                )
            case b"other":
                raise _reused(key)
            case b"done":
                claim.done_as, claim.answer = found.fingerprint.decode(), found.answer
                yield claim
                return
            case _:
                pass
        renewing = asyncio.create_task(self._renew(once, key, owner))
        try:
            yield claim
        except LaurelsError as error:
            how = "open" if isinstance(error, Unavailable) else "forget"
            await self._settle(once, Settlement(key, owner, how, claim.fingerprint))
            raise
        except BaseException:
            # Cut off anywhere: what was sent may have counted.
            await self._settle(once, Settlement(key, owner, "open", claim.fingerprint))
            raise
        finally:
            renewing.cancel()
        if claim.answer is None:
            await self._settle(once, Settlement(key, owner, "forget"))
        else:
            await self._settle(once, Settlement(key, owner, "done", claim.fingerprint, claim.answer))

    async def _renew(self, once: Sequence[str], key: str, owner: str) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            await self._settle(once, Settlement(key, owner, "renew", value=CLAIM_SECONDS))

    async def _settle(self, once: Sequence[str], settlement: Settlement) -> None:
        """What was done is done: a Valkey that does not hear of it only lets the claim run out."""
        try:
            await functions.settle(self._valkey, once, settlement)
        except Unavailable as error:
            log.warning("a claim runs out by itself", key=settlement.key, detail=error.detail)


def _reused(key: str) -> KeyReused:
    return KeyReused.at(FIELD, f"{key!r} was given to another request; choose another key")
