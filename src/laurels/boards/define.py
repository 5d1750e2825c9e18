"""Defines, changes and drops boards: what may change on a board with entries, and what follows a change."""

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
from laurels.postgres.tables import WITH_FEEDS, WITH_KEYS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from laurels.boards.catalog import Catalog
    from laurels.boards.claims import Patterns
    from laurels.boards.definition import Owner, StoredBoard, Window
    from laurels.boards.drop_counts import DropCounter
    from laurels.boards.drops import Drops
    from laurels.boards.existing_keys import ExistingKeys, ForeignKeys
    from laurels.boards.store import BoardStore, PutConditions, RetiredDefinition
    from laurels.moments import Moment

Changed = TypeVar("Changed")

# How long a request waits for its drops in Valkey.
FINISH_SECONDS: Final = 10.0
# Attempts at a change for which the board must be held. The job `drops` may release it.
HOLDS: Final = 4

log = get_logger("laurels.boards")

# Fields that decide how entries are stored or what they mean. They cannot change while there are entries.
FIXED = ("score", "ties", "aggregate", "order", "shards", "keys", "timezone_by")


class Definer:
    """Defines boards in PostgreSQL and puts them in force in Valkey."""

    def __init__(
        self,
        catalog: Catalog,
        store: BoardStore,
        drops: Drops,
        drop_counter: DropCounter,
        existing: ExistingKeys,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._drops = drops
        self._drop_counter = drop_counter
        self._existing = existing
        self._cluster = existing.valkey.is_cluster
        self._owner: Owner | None = None

    def acting_for(self, owner: Owner) -> Self:
        """A definer whose boards belong to this flow."""
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
        """Creates or changes the board. Raises `Conflict` for a change that its entries forbid, and
        `DropNotAllowed` if a window that is not in `allow_drop` would lose entries or snapshots.

        `only_new`: raises `Conflict` if the board exists.
        """
        KeySpace(ref, definition, cluster=self._cluster)
        await self._check_feeds(ref, definition)
        check_templates(ref, definition, cluster=self._cluster)
        if definition.keys:  # a dropped board may have had these keys
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
            detail = (
                f"the definition of {ref} is stored and takes effect once Valkey answers ({error.detail})"
            )
            raise OutcomeUnknown.after(error, detail) from error
        await self._finish(ref)
        return stored

    async def _check_takeover(self, before: StoredBoard) -> None:
        """Raises `Conflict` if another board feeds the one that the flow would take over."""
        owner, ref = self._owner, BoardRef(before.project, before.board)
        if owner is None or before.owner is not None:
            return
        if feeder := await self._feeder(ref):
            raise Conflict(
                f"{feeder} feeds {ref}, to which only {OWNERS[owner]} may write; "
                f"take {ref} out of its feeds first"
            )

    async def _put(
        self, ref: BoardRef, definition: BoardDefinition, *, only_new: bool, allow_drop: frozenset[str]
    ) -> tuple[StoredBoard, ForeignKeys | None]:
        """Stores the definition; returns it, and the keys of other programs under the board's names."""
        before = await self._store.get(*ref)
        if before and only_new:
            raise Conflict(f"the board {ref} exists already")
        if before:
            before.require_writer(self._owner)
            await self._check_takeover(before)
        is_change = before is not None and before.definition != definition
        old = self._catalog.compile(before) if before else None
        if old and is_change:
            await self._check_entries(old, Board(ref, definition, old.version, cluster=self._cluster))
        # Not for a flow, whose names are reserved, nor for `only_new`, whose callers may not list all keys:
        # the first write to such a key is refused.
        found = None if only_new or self._owner else await self._found(ref, definition, old)
        if found:
            found.check(adopts=definition.adopt)
        own = check_templates(ref, definition, cluster=self._cluster)
        terms: PutConditions = {"owner": self._owner, "check_others": partial(self._check_apart, ref, own)}
        if before and is_change:
            return await self._change(before, definition, allow_drop, terms), found
        terms["expected_version"] = before.version if before else 0
        return await self._store.put(*ref, definition, **terms), found

    async def _change(
        self,
        before: StoredBoard,
        definition: BoardDefinition,
        allow_drop: frozenset[str],
        terms: PutConditions,
    ) -> StoredBoard:
        """Checks and stores the definition; holds the board meanwhile where new entries could matter."""
        ref = BoardRef(before.project, before.board)
        old = self._catalog.compile(before)
        new = Board(ref, definition, before.version, cluster=self._cluster)
        check_names(ref, (*old.definition.windows, *definition.windows), allow_drop)
        may_lose = not self._owns(before) and not windows_at_risk(old.definition, definition) <= allow_drop

        async def check() -> None:
            await self._check_entries(old, new)
            if may_lose:
                check_change(ref, await self._drop_counter.of_change(old, before.id, new), allow_drop)

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
        """Whether the caller owns the board. It may drop entries, because it can compute them again."""
        return self._owner is not None and stored.owner == self._owner

    @asynccontextmanager
    async def _holding(self, stored: StoredBoard) -> AsyncGenerator[RetiredDefinition]:
        """Refuses all other calls on the board until the block has changed it or raises. If this process
        dies, the job `drops` releases the board.
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
        """Deletes the keys in the shards of a board without entries; returns the board as stored then."""
        ref = BoardRef(before.project, before.board)
        await self._store.clear(*ref, before.version)
        is_cleared = await self._drops.finish(ref)
        after = await self._store.get(*ref)
        if not is_cleared or after is None:
            raise Conflict(f"{ref} has received scores, so its shards cannot change; drop the board first")
        return after

    async def _finish(self, ref: BoardRef) -> None:
        """Deletes what the change left in Valkey; if that takes too long, leaves it to the job `drops`."""
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await self._drops.finish(ref)
        except (Unavailable, TimeoutError) as error:
            log.warning(
                "deleting the board's old keys in Valkey is left to the job `drops`",
                board=str(ref),
                error=str(error),
            )

    async def preview(self, ref: BoardRef, definition: BoardDefinition, now: Moment) -> Preview:
        """What `define` would do. Raises as `define` does, except for what entries forbid."""
        board = Board(ref, definition, 0, cluster=self._cluster)
        await self._check_feeds(ref, definition)
        own = check_templates(ref, definition, cluster=self._cluster)
        if definition.keys:
            self._check_apart(ref, own, await self._store.matching(WITH_KEYS), [])
        before = await self._store.get(ref.project, ref.board)
        was = before.definition if before else None
        conflict: str | None = None
        drops: tuple[Drop, ...] = ()
        try:
            old = self._catalog.compile(before) if before else None
            if before and old:
                drops = await self._drop_counter.of_change(old, before.id, board)
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
        """Drops the board with all its entries; raises `NotFound`, `Conflict` while another board feeds it,
        or `DropNotAllowed` if it holds something that is not in `allow_drop` ("all" allows everything).

        The drop takes effect at once; Valkey's memory may be freed later.
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
        drops = await self._drop_counter.of_board(board, stored.id)
        check_names(board.ref, board.definition.windows, allow_drop - {drop.window for drop in drops})
        check_drop(board.ref, drops, allow_drop)

    async def _check_feeds(self, ref: BoardRef, definition: BoardDefinition) -> None:
        """Raises unless the fed boards exist, and take scores, and feed no board themselves."""
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
        """A board that feeds this one; None if there is none."""
        for other in await self._store.matching(WITH_FEEDS):
            if str(ref) in other.definition.feeds:
                return BoardRef(other.project, other.board)
        return None

    async def _found(
        self, ref: BoardRef, definition: BoardDefinition, old: Board | None
    ) -> ForeignKeys | None:
        """Keys of other programs under the board's new names; None if no name is new."""
        board = Board(ref, definition, 0, cluster=self._cluster)
        if not definition.keys or (old and _claims(old) == _claims(board)):
            return None
        return await self._existing.find(board, old)

    def _check_apart(
        self, ref: BoardRef, own: Patterns, in_force: list[StoredBoard], leaving: list[StoredBoard]
    ) -> None:
        """Raises if a template can make a key of another board, or of one that is being dropped."""
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
        except InvalidInput:  # defined for a single node: unusable on a cluster, so without keys
            return {}

    async def _check_entries(self, old: Board, new: Board) -> None:
        changed, reshaped = _fixed(old, new), _reshaped(old, new)
        if (changed or reshaped) and await self._drop_counter.retention.holds_entries(old):
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
    """The windows that would have to be computed from the entries of others."""
    outlines = {window.label: _outline(old, window) for window in old.definition.windows}
    return [
        window.label
        for window in new.definition.windows
        if (window.label in outlines and outlines[window.label] != _outline(new, window))
        or (window.label not in outlines and (window.sum_of or window.period == "rolling"))
    ]


def drops_nothing(old: Board, new: Board) -> bool:
    """Whether the change needs no look at entries or at other boards: it can be made with others."""
    was, will_be = old.definition, new.definition
    concerns_others = was.keys or will_be.keys or was.feeds or will_be.feeds or was.rating != will_be.rating
    loses = windows_at_risk(was, will_be) or (was.archive.journal and not will_be.archive.journal)
    return not (concerns_others or loses or _fixed(old, new) or _reshaped(old, new))


def _system(definition: BoardDefinition) -> str | None:
    """The rating system. Its constants may change."""
    return definition.rating.system if definition.rating else None


def _claims(board: Board) -> tuple[object, ...]:
    """The keys that the templates name, and whether existing ones are taken over."""
    return board.keys.patterns(board.definition), board.definition.adopt


def _outline(board: Board, window: Window) -> tuple[object, ...]:
    """What a window is computed from. A rolling window's days may be a window that it does not name."""
    base = board.zoned_window(window.label).base
    return window.period, window.sum_of, window.days, window.seconds, base.label if base else None
