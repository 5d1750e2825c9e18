"""Defines many boards: new ones, and changes that drop nothing, in one transaction for some hundreds.

A change that may drop entries or needs to look at them is made as `Definer` does it alone. So is the
definition of a board with key templates or feeds, since what it may change depends on what other boards hold.
A refused board stops no other.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from laurels.boards.define import FINISH_SECONDS, drops_nothing
from laurels.boards.defined import Defined, Outcome, refused
from laurels.boards.definition import StoredBoard
from laurels.boards.keys import BoardRef
from laurels.errors import (
    InvalidInput,
    LaurelsError,
    OutcomeUnknown,
    Unavailable,
)
from laurels.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping

    from laurels.boards.catalog import Catalog
    from laurels.boards.define import Definer
    from laurels.boards.definition import BoardDefinition
    from laurels.boards.drops import Drops
    from laurels.boards.store import BoardStore

# Boards of one transaction, each with an advisory lock: PostgreSQL has room for 6,400 locks by default.
DEFINED_TOGETHER: Final = 200
# Transactions at once: PostgreSQL works on one while Valkey adopts the boards of another.
CHUNKS_AT_ONCE: Final = 2
# Boards that are defined alone, at once: each takes a connection of the pool's ten for some milliseconds.
ALONE_AT_ONCE: Final = 4

log = get_logger("laurels.boards")


class BulkDefiner:
    """Defines many boards of one project."""

    def __init__(self, definer: Definer, catalog: Catalog, store: BoardStore, drops: Drops) -> None:
        self._definer = definer
        self._drops = drops
        self._catalog = catalog
        self._store = store

    async def define(
        self,
        project: str,
        boards: Mapping[str, BoardDefinition | InvalidInput],
        allow_drop: Mapping[str, frozenset[str]],
    ) -> list[Defined]:
        """What became of each board, in the same order. Raises `OutcomeUnknown` if a store stops answering:
        the call can be repeated, and boards that have their definition already are unchanged.
        """
        results: dict[str, Defined] = {}
        given: dict[BoardRef, BoardDefinition] = {}
        for name, definition in boards.items():
            try:
                if isinstance(definition, InvalidInput):
                    raise definition
                given[BoardRef.parse(f"{project}/{name}")] = definition
            except InvalidInput as error:
                results[name] = refused(name, error)
        try:
            coming = iter(
                [ref for ref, definition in given.items() if not (definition.keys or definition.feeds)]
            )
            turns = asyncio.Semaphore(CHUNKS_AT_ONCE)
            chunks: list[Awaitable[dict[str, Defined]]] = []
            while together := list(islice(coming, DEFINED_TOGETHER)):
                chunks.append(self._define_new({ref: given[ref] for ref in together}, turns))
            for defined in await asyncio.gather(*chunks):
                results |= defined
            coming = iter([ref for ref in given if ref.board not in {*results, *allow_drop}])
            changes: list[Awaitable[dict[str, Defined]]] = []
            while together := list(islice(coming, DEFINED_TOGETHER)):
                changes.append(self._change_together({ref: given[ref] for ref in together}, turns))
            for defined in await asyncio.gather(*changes):
                results |= defined
            left = [ref for ref in given if ref.board not in results]
            for has_feeds in (False, True):  # a fed board exists before its feeder
                some = [ref for ref in left if bool(given[ref].feeds) == has_feeds]
                results |= await self._define_alone(some, given, allow_drop)
        except Unavailable as error:
            detail = f"{error.detail}; repeat the call: boards that are defined already stay as they are"
            raise OutcomeUnknown.after(error, detail) from error
        return [results[name] for name in boards]

    async def _define_new(
        self, together: Mapping[BoardRef, BoardDefinition], turns: asyncio.Semaphore
    ) -> dict[str, Defined]:
        """Makes those that do not exist, and finds those that are unchanged; leaves out all others."""
        async with turns:
            stored = await self._store.put_new(together)
            await self._catalog.put_in_force(stored.values())
        return {ref.board: _defined(each, is_same=True) for ref, each in stored.items()}

    async def _change_together(
        self, together: Mapping[BoardRef, BoardDefinition], turns: asyncio.Semaphore
    ) -> dict[str, Defined]:
        """Changes those whose change drops nothing; leaves out all others."""
        async with turns:
            changing: dict[BoardRef, tuple[int, BoardDefinition]] = {}
            for ref, stored in (await self._store.get_all(together)).items():
                if isinstance(stored, StoredBoard) and not (stored.definition.keys or together[ref].keys):
                    new = self._catalog.compile(replace(stored, definition=together[ref]))
                    if drops_nothing(self._catalog.compile(stored), new):
                        changing[ref] = stored.version, together[ref]
            changed = await self._store.put_changed(changing) if changing else []
            await self._catalog.put_in_force(stored for _, stored in changed)
            try:
                async with asyncio.timeout(FINISH_SECONDS):
                    await self._drops.finish_together(changed)
            except (Unavailable, TimeoutError) as error:
                log.warning(
                    "fitting windows to changed definitions is left to the job `drops`", error=str(error)
                )
        return {stored.board: _defined(stored, is_same=False) for _, stored in changed}

    async def _define_alone(
        self,
        refs: Iterable[BoardRef],
        given: Mapping[BoardRef, BoardDefinition],
        allow_drop: Mapping[str, frozenset[str]],
    ) -> dict[str, Defined]:
        turns = asyncio.Semaphore(ALONE_AT_ONCE)

        async def define(ref: BoardRef) -> Defined:
            async with turns:
                before = await self._store.get(*ref)
                try:
                    allowed = allow_drop.get(ref.board, frozenset[str]())
                    stored = await self._definer.define(ref, given[ref], allow_drop=allowed)
                except Unavailable:
                    raise
                except LaurelsError as error:
                    return refused(ref.board, error)
                return _defined(stored, is_same=before is not None and before.version == stored.version)

        return {each.board: each for each in await asyncio.gather(*map(define, refs))}


def _defined(stored: StoredBoard, *, is_same: bool) -> Defined:
    outcome: Outcome = "created" if stored.created else "unchanged" if is_same else "changed"
    return Defined(stored.board, outcome, stored.version)
