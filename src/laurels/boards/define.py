"""Defining, changing and dropping boards: what may change under entries, and what must follow a change."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVar

from laurels.boards.board import Board
from laurels.boards.claims import check_apart, check_templates, name_within
from laurels.boards.consent import EVERYTHING, check_change, check_drop, check_names, windows_at_risk
from laurels.boards.definition import OWNERS, BoardDefinition, HoldLost
from laurels.boards.keys import BoardRef, KeySpace
from laurels.boards.preview import Preview, preview_windows
from laurels.errors import Conflict, Drop, InvalidInput, NotFound, OutcomeUnknown, Unavailable
from laurels.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from laurels.boards.catalog import Catalog
    from laurels.boards.claims import Patterns
    from laurels.boards.definition import Owner, StoredBoard, Window
    from laurels.boards.drops import Drops
    from laurels.boards.existing_keys import ExistingKeys, ForeignKeys
    from laurels.boards.losses import DropCounter
    from laurels.boards.store import BoardStore, Retired, Terms
    from laurels.moments import Moment

Changed = TypeVar("Changed")

# How long a request waits for Valkey to free what was dropped.
FINISH_SECONDS: Final = 10.0
# How often a change is tried for which the board must be held: the job `drops` may let go of it.
HOLDS: Final = 4

log = get_logger("laurels.boards")

# What decides how entries are stored or what they mean; it cannot change under them.
FIXED = ("score", "ties", "aggregate", "order", "shards", "keys", "timezone_by")


class Definer:
    """Defines boards in PostgreSQL and puts them in force in Valkey."""

    def __init__(
        self,
        catalog: Catalog,
        store: BoardStore,
        drops: Drops,
        losses: DropCounter,
        existing: ExistingKeys,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._drops = drops
        self._losses = losses
        self._existing = existing
        self._cluster = existing.valkey.is_cluster
        self._owner: Owner | None = None

    def acting_for(self, owner: Owner) -> Self:
        """The same for a flow: boards that it defines are its own."""
        flow = copy(self)
        flow._owner = owner  # noqa: SLF001  # of its own kind
        return flow

    async def define(
        self,
        ref: BoardRef,
        definition: BoardDefinition,
        *,
        only_new: bool = False,
        allow_drop: frozenset[str] = frozenset(),
    ) -> StoredBoard:
        """Creates the board, or changes it; raises `Conflict` for what entries forbid, and `DropNotAllowed`
        where a window that is not in `allow_drop` would lose entries or snapshots.

        With `only_new` a board that is there stays as it is, and `Conflict` is raised.
        """
        KeySpace(ref, definition, cluster=self._cluster)
        await self._check_feeds(ref, definition)
        check_templates(ref, definition, cluster=self._cluster)
        if definition.keys:  # a dropped board may have had the same
            await self._drops.finish_all(templated=True)
        await self._drops.finish(ref)
        stored, found = await _until_held(
            lambda: self._put(ref, definition, only_new=only_new, allow_drop=allow_drop)
        )
        self._catalog.forget(ref)
        board = self._catalog.compile(stored)
        try:
            await self._catalog.adopt(board)
            if found:
                await self._existing.take_over(board, found)
        except Unavailable as error:
            detail = f"the definition of {ref} is stored, and counts once Valkey answers ({error.detail})"
            raise OutcomeUnknown.after(error, detail) from error
        await self._finish(ref)
        return stored

    async def _check_takeover(self, before: StoredBoard) -> None:
        """A flow alone writes to its boards, so no board feeds them."""
        owner, ref = self._owner, BoardRef(before.project, before.board)
        if owner is None or before.owner is not None:
            return
        if feeder := await self._feeder(ref):
            raise Conflict(
                f"{feeder} feeds {ref}, to which {OWNERS[owner]} alone is to write; end that first"
            )

    async def _put(
        self, ref: BoardRef, definition: BoardDefinition, *, only_new: bool, allow_drop: frozenset[str]
    ) -> tuple[StoredBoard, ForeignKeys | None]:
        """As it is stored now, and what other programs have under its names."""
        before = await self._store.get(*ref)
        if before and only_new:
            raise Conflict(f"there is a board {ref} already")
        if before:
            before.require_writer(self._owner)
            await self._check_takeover(before)
        is_change = before is not None and before.definition != definition
        old = self._catalog.compile(before) if before else None
        if old and is_change:
            await self._check_entries(old, Board(ref, definition, old.version, cluster=self._cluster))
        # A flow's names are reserved for it; and whoever only adds a board of a facade's may not look at all
        # keys. What another program has there, the board meets when it first writes to it.
        found = None if only_new or self._owner else await self._found(ref, definition, old)
        if found:
            found.check(adopts=definition.adopt)
        own = check_templates(ref, definition, cluster=self._cluster)
        terms: Terms = {"owner": self._owner, "check_others": partial(self._check_apart, ref, own)}
        if before and is_change:
            return await self._change(before, definition, allow_drop, terms), found
        terms["expected_version"] = before.version if before else 0
        return await self._store.put(*ref, definition, **terms), found

    async def _change(
        self, before: StoredBoard, definition: BoardDefinition, allow_drop: frozenset[str], terms: Terms
    ) -> StoredBoard:
        """Checks and stores the definition. Where entries that arrive between the two would be lost, or would
        forbid it, the board is held for both.
        """
        ref = BoardRef(before.project, before.board)
        old = self._catalog.compile(before)
        new = Board(ref, definition, before.version, cluster=self._cluster)
        check_names(ref, (*old.definition.windows, *definition.windows), allow_drop)
        may_lose = not self._owns(before) and not windows_at_risk(old.definition, definition) <= allow_drop

        async def check() -> None:
            await self._check_entries(old, new)
            if may_lose:
                check_change(ref, await self._losses.of_change(old, before.id, new), allow_drop)

        await check()
        now = before
        if old.keys.shards != definition.shards:
            now = await self._clear(before)
        terms["expected_version"] = now.version
        if not may_lose and not _fixed(old, new) and not _reshaped(old, new):
            return await self._store.put(*ref, definition, **terms)
        async with self._holding(now) as held:
            await check()
            terms["held"] = held
            return await self._store.put(*ref, definition, **terms)

    def _owns(self, stored: StoredBoard) -> bool:
        """A flow makes its boards of what it has elsewhere, so it may drop what they hold."""
        return self._owner is not None and stored.owner == self._owner

    @asynccontextmanager
    async def _holding(self, stored: StoredBoard) -> AsyncGenerator[Retired]:
        """Keeps everybody else off the board until the block has changed it or raises. If this process dies,
        the job `drops` opens the board again.
        """
        ref = BoardRef(stored.project, stored.board)
        held = await self._store.hold(*ref, stored.version)
        try:
            await self._catalog.bar(self._catalog.compile(stored), held.number)
            yield held
        except BaseException:
            await asyncio.shield(self._finish(ref))
            self._catalog.forget(ref)
            raise

    async def _clear(self, before: StoredBoard) -> StoredBoard:
        """Takes away what the board has in its shards; it holds no entries. As it is stored then."""
        ref = BoardRef(before.project, before.board)
        await self._store.clear(*ref, before.version)
        is_cleared = await self._drops.finish(ref)
        after = await self._store.get(*ref)
        if not is_cleared or after is None:
            raise Conflict(f"{ref} took scores meanwhile, so shards cannot change; drop it first")
        return after

    async def _finish(self, ref: BoardRef) -> None:
        """What was asked is decided. What it leaves in Valkey goes at once, or by the job `drops`."""
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await self._drops.finish(ref)
        except (Unavailable, TimeoutError) as error:
            log.warning("what the board left in Valkey goes later", board=str(ref), error=str(error))

    async def preview(self, ref: BoardRef, definition: BoardDefinition, now: Moment) -> Preview:
        """What `define` would do; nothing is changed. Raises as it does, but for what entries forbid."""
        board = Board(ref, definition, 0, cluster=self._cluster)
        await self._check_feeds(ref, definition)
        own = check_templates(ref, definition, cluster=self._cluster)
        if definition.keys:
            self._check_apart(ref, own, await self._store.matching("$.keys.*"), [])
        before = await self._store.get(ref.project, ref.board)
        was = before.definition if before else None
        conflict: str | None = None
        drops: tuple[Drop, ...] = ()
        try:
            old = self._catalog.compile(before) if before else None
            if before and old:
                drops = await self._losses.of_change(old, before.id, board)
                before.require_writer(self._owner)
                await self._check_entries(old, board)
            if found := await self._found(ref, definition, old):
                found.check(adopts=definition.adopt)
        except Conflict as error:
            conflict = error.detail
        return Preview(
            definition=definition,
            is_new=was is None,
            changed=tuple(
                name
                for name in BoardDefinition.model_fields
                if was and getattr(was, name) != getattr(definition, name)
            ),
            conflict=conflict,
            drops=drops,
            windows=preview_windows(board, now),
        )

    async def drop(self, ref: BoardRef, *, allow_drop: frozenset[str] = frozenset()) -> None:
        """Drops the board with everything that it holds; raises `NotFound`, `Conflict` while it is fed, or
        `DropNotAllowed` when it holds something that is not in `allow_drop` ("all" allows everything).

        Dropped is dropped, though its memory in Valkey may be freed later.
        """
        await _until_held(lambda: self._drop(ref, allow_drop))
        self._catalog.forget(ref)
        await self._finish(ref)

    async def _drop(self, ref: BoardRef, allow_drop: frozenset[str]) -> None:
        stored = await self._store.get(*ref)
        if stored is None:
            raise NotFound(f"there is no board {ref}")
        stored.require_writer(self._owner)
        feeder = await self._feeder(ref)
        if feeder:
            named = name_within(ref, feeder)
            raise Conflict(f"{named} feeds {ref}; take {ref} out of its feeds first")
        if EVERYTHING in allow_drop or self._owns(stored):
            is_dropped = await self._store.drop(*ref)
        else:
            await self._check_drop(stored, allow_drop)
            await self._drops.finish(ref)
            async with self._holding(stored) as held:
                await self._check_drop(stored, allow_drop)
                is_dropped = await self._store.drop(*ref, held=held)
        if not is_dropped:
            raise NotFound(f"there is no board {ref}")

    async def _check_drop(self, stored: StoredBoard, allow_drop: frozenset[str]) -> None:
        board = self._catalog.compile(stored)
        drops = await self._losses.of_board(board, stored.id)
        check_names(board.ref, board.definition.windows, allow_drop - {drop.window for drop in drops})
        check_drop(board.ref, drops, allow_drop)

    async def _check_feeds(self, ref: BoardRef, definition: BoardDefinition) -> None:
        """Fed boards exist, and no submission would come back to where it started or go on from there."""
        for index, feed in enumerate(definition.feeds):
            fed = BoardRef.parse(feed)
            stored = None if fed == ref else await self._store.get(fed.project, fed.board)
            if fed == ref:
                raise InvalidInput.at(f"feeds[{index}]", "a board cannot feed itself")
            if stored is None:
                raise InvalidInput.at(f"feeds[{index}]", f"there is no board {feed}; define it first")
            stored.require_writer(None)
            if stored.definition.rating is not None:
                raise InvalidInput.at(f"feeds[{index}]", f"{feed} takes its scores from matches alone")
            if stored.definition.feeds:
                raise InvalidInput.at(
                    f"feeds[{index}]", f"{feed} feeds others itself; name them here instead"
                )
        feeder = await self._feeder(ref) if definition.feeds or definition.rating else None
        if feeder is None:
            return
        named = name_within(ref, feeder)
        if definition.rating:
            raise InvalidInput.at("rating", f"{named} feeds this board, so its scores are given")
        raise InvalidInput.at("feeds", f"{named} feeds this board, so it cannot feed others")

    async def _feeder(self, ref: BoardRef) -> BoardRef | None:
        """A board that feeds this one."""
        for other in await self._store.matching("$.feeds[*]"):
            if str(ref) in other.definition.feeds:
                return BoardRef(other.project, other.board)
        return None

    async def _found(
        self, ref: BoardRef, definition: BoardDefinition, old: Board | None
    ) -> ForeignKeys | None:
        """What other programs have under names that are new to the board; None where none are."""
        board = Board(ref, definition, 0, cluster=self._cluster)
        if not definition.keys or (old and _claims(old) == _claims(board)):
            return None
        return await self._existing.find(board, old)

    def _check_apart(
        self, ref: BoardRef, own: Patterns, in_force: list[StoredBoard], leaving: list[StoredBoard]
    ) -> None:
        """The templates make no key of another board; nor of one whose keys are still being taken away."""
        for other in in_force:
            other_ref = BoardRef(other.project, other.board)
            if other_ref != ref:
                check_apart(own, self._patterns(other), name_within(ref, other_ref))
        try:
            for other in leaving:
                check_apart(own, self._patterns(other), "a board that is being dropped")
        except InvalidInput as error:
            raise Conflict(f"{error.detail}; try again in a moment") from error

    def _patterns(self, stored: StoredBoard) -> Patterns:
        ref = BoardRef(stored.project, stored.board)
        try:
            return KeySpace(ref, stored.definition, cluster=self._cluster).patterns(stored.definition)
        except InvalidInput:  # defined on one node, and of no use on a cluster: it has no keys here
            return {}

    async def _check_entries(self, old: Board, new: Board) -> None:
        changed, reshaped = _fixed(old, new), _reshaped(old, new)
        if (changed or reshaped) and await self._losses.retention.holds_entries(old):
            if changed:
                raise Conflict(
                    f"{old.ref} holds entries, so {', '.join(changed)} cannot change; "
                    "define a new board and submit to it, or drop this one first"
                )
            raise Conflict(
                f"{old.ref} holds entries that the window {reshaped[0]!r} would have to be computed from; "
                "define a new board with it, or drop this one first"
            )


async def _until_held(change: Callable[[], Awaitable[Changed]]) -> Changed:
    for _ in range(HOLDS - 1):
        with suppress(HoldLost):
            return await change()
    return await change()


def _fixed(old: Board, new: Board) -> list[str]:
    """The changed fields that cannot change under entries."""
    was, will_be = old.definition, new.definition
    changed = [name for name in FIXED if getattr(was, name) != getattr(will_be, name)]
    if will_be.dense and not was.dense:
        changed.append("dense")
    if _system(was) != _system(will_be):
        changed.append("rating.system")
    return changed


def _reshaped(old: Board, new: Board) -> list[str]:
    """The windows that would have to be computed from entries."""
    outlines = {window.label: _outline(old, window) for window in old.definition.windows}
    return [
        window.label
        for window in new.definition.windows
        if (window.label in outlines and outlines[window.label] != _outline(new, window))
        or (window.label not in outlines and (window.sum_of or window.period == "rolling"))
    ]


def _system(definition: BoardDefinition) -> str | None:
    """By which ratings are computed; their constants may change."""
    return definition.rating.system if definition.rating else None


def _claims(board: Board) -> tuple[object, ...]:
    """Which keys the templates name, and whether others' are taken over."""
    return board.keys.patterns(board.definition), board.definition.adopt


def _outline(board: Board, window: Window) -> tuple[object, ...]:
    """What a window is made of; a rolling one may take its days from a window that it does not name."""
    base = board.zoned_window(window.label).base
    return window.period, window.sum_of, window.days, window.seconds, base.label if base else None
