"""Changes the metadata of a member's existing entries, without a score.

Each call covers as many windows as fit, and is atomic: it checks the id, sets the metadata of the entries
and journals which windows had one. Only the last call remembers the id, so that a retry repeats a change
that was interrupted between two calls.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Unpack

from laurels.boards.board import WindowAddress
from laurels.boards.keys import WHOLE, BoardRef, group_text, parse_cut
from laurels.boards.retention import WINDOWS_A_CALL, target_at
from laurels.errors import InvalidInput, NotFound, OutcomeUnknown
from laurels.journal.entry import metadata_entry
from laurels.scores.submission import MetadataSet, check_id, check_member, check_metadata
from laurels.valkey import functions, hashes, sorted_sets
from laurels.valkey.functions import DefinitionChanged
from laurels.valkey.messages import MetadataHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from laurels.arguments import Selection
    from laurels.boards.board import Board, Target, ZonedWindow
    from laurels.boards.catalog import Catalog
    from laurels.boards.retention import Retention
    from laurels.clock import Clock
    from laurels.moments import Moment
    from laurels.valkey.client import Valkey
    from laurels.valkey.command import Command
    from laurels.valkey.messages import Durability

NO_METADATA: Final = "combine several submissions, so they have no metadata"


@dataclass(frozen=True, slots=True)
class _MetadataChange:
    """A validated change."""

    member: bytes
    metadata: str
    id: str
    selection: Selection
    durability: Durability


class MetadataSetter:
    """Sets the metadata of entries."""

    def __init__(self, valkey: Valkey, catalog: Catalog, retention: Retention, clock: Clock) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._retention = retention
        self._clock = clock

    async def set(
        self,
        ref: BoardRef,
        member: str,
        metadata: dict[str, Any] | None,
        selection: Selection,
        durability: Durability,
    ) -> MetadataSet:
        """Raises `NotFound` if the member has no such entry."""
        given = selection.get("id")
        change = _MetadataChange(
            check_member(member),
            check_metadata(metadata),
            _made_id() if given is None else check_id(given),
            selection,
            durability,
        )
        while True:
            board = await self._catalog.in_force(ref)
            board.require_writer(None)
            try:
                found = await self._set(board, change)
                break
            except DefinitionChanged as changed:
                await self._catalog.refresh(ref, changed.known)
            except OutcomeUnknown as error:
                raise OutcomeUnknown(error.detail, change.id) from error
        if found == 0:
            raise NotFound(f"{ref}: {member!r} has no entry{_where(selection)}")
        return MetadataSet(member, found or 0, found is not None, change.id)

    async def _set(self, board: Board, change: _MetadataChange) -> int | None:
        """How many entries were changed; None if the id was seen before."""
        now = self._clock()
        shard = board.keys.shard_of(change.member)
        targets = await self._targets(board, shard, change, now)
        found = 0
        for first in range(0, max(1, len(targets)), WINDOWS_A_CALL):
            some = targets[first : first + WINDOWS_A_CALL]
            is_last = first + WINDOWS_A_CALL >= len(targets)
            several = await self._call(board, shard, change, some, is_last=is_last)
            if several is None:
                return None
            found += several
        if found and change.metadata:
            self._catalog.note_metadata(board)
        return found

    async def _call(
        self, board: Board, shard: int, change: _MetadataChange, targets: Sequence[Target], *, is_last: bool
    ) -> int | None:
        now, keys = self._clock(), board.keys
        header = MetadataHeader(
            shape=board.shape(metadata=True),
            version=board.version,
            journal=1 if board.definition.archive.journal else 2,
            id=change.id,
            remember=int(is_last),
            metadata=change.metadata,
            seconds=[target.seconds_to_live(now) for target in targets],
            durable=int(change.durability != "fast"),
        )
        windows = [(each.address.token, each.address.cut.named or None) for each in targets]
        recorded = change.id if is_last else "", change.member, change.metadata
        entry = metadata_entry(secrets.token_urlsafe(16), now, board.version, windows, recorded)
        names = [keys.of_board(shard, name) for name in ("board", "journal")]
        names += keys.generations(shard, "ids")
        for target in targets:
            names += keys.parts(board.window_key(shard, target.address), metadata=True)
        rest = entry, change.member
        return await functions.set_metadata(self._valkey, names, header, rest, change.durability)

    async def _targets(self, board: Board, shard: int, change: _MetadataChange, now: Moment) -> list[Target]:
        """The live windows and groups where the member has an entry that can have metadata."""
        chosen = _SelectedWindows(board, change.selection, now)
        written = [each for each in await self._retention.written(board, shard) if chosen.may_be_in(*each)]
        whole = chosen.among(WindowAddress(*each, WHOLE) for each in written)
        found = await self._held(board, shard, whole, change.member)
        # A member of a window's group is in the window itself too, unless the group has another timezone.
        known = {(target.address.label, target.address.slot) for target in found}
        windows = [each for each in written if len(board.zones) > 1 or each in known]
        if chosen.cut:
            groups = [WindowAddress(*each, chosen.cut) for each in windows]
            return await self._held(board, shard, chosen.among(groups), change.member)
        groups = await self._retention.groups_of(board, shard, windows)
        return found + await self._held(board, shard, chosen.among(groups), change.member)

    async def _held(self, board: Board, shard: int, targets: list[Target], member: bytes) -> list[Target]:
        """The targets where the member has an entry."""
        commands: list[Command[Sequence[object]]] = []
        for target in targets:
            entries, *beside = board.keys.parts(board.window_key(shard, target.address), metadata=False)
            commands.append(
                hashes.get_many(beside[0], [member])
                if board.ordering.prefixed
                else sorted_sets.scores(entries, [member])
            )
        found = await self._valkey.run_all(commands)
        return [target for target, (entry,) in zip(targets, found, strict=True) if entry is not None]


class _SelectedWindows:
    """The windows of a board that a selection names."""

    def __init__(self, board: Board, selection: Selection, now: Moment) -> None:
        self._board = board
        self._now = now
        self.cut = parse_cut(selection.get("group"), board.definition)
        period, slot = selection.get("period"), selection.get("slot")
        self._label: str | None = None
        self._slot: str | None = None
        if period is not None or slot is not None:
            zoned = board.zoned_window(period, self.cut)
            self._label = zoned.label
            self._slot = slot and board.slot(zoned, slot, now).text
            if not _has_metadata(zoned):
                raise InvalidInput.at("period", f"{zoned.label!r} is rolling: its entries {NO_METADATA}")
        elif not any(map(_has_metadata, board.zoned_windows(board.definition.timezone))):
            raise InvalidInput.at("board", f"has only rolling windows: their entries {NO_METADATA}")

    def may_be_in(self, label: str, slot: str) -> bool:
        return self._label in (None, label) and self._slot in (None, slot)

    def among(self, addresses: Iterable[WindowAddress]) -> list[Target]:
        """The addresses that the selection names and reads can still ask for."""
        return [target for each in addresses if (target := self._target(each))]

    def _target(self, address: WindowAddress) -> Target | None:
        target = target_at(self._board, address)
        if target is None or not _has_metadata(target.zoned):
            return None
        calendar, slot = target.zoned.calendar, target.slot
        until = calendar.kept_until(slot)
        if until is not None and self._now >= until:
            return None
        # Each timezone has its own current slot.
        is_other = self._label and self._slot is None and slot.text != calendar.at(self._now).text
        return None if is_other else target


def _made_id() -> str:
    """An id that names no call of the journal, since a change may take several calls."""
    return f"~{secrets.token_urlsafe(16)}.0"


def _has_metadata(zoned: ZonedWindow) -> bool:
    """Whether entries of this window can have metadata."""
    return zoned.how != "fold" and not zoned.is_hidden


def _where(selection: Selection) -> str:
    named = [f"{name}={value}" for name in ("period", "slot", "group") if (value := selection.get(name))]
    return f" with {', '.join(named)}" if named else " that can have metadata"


class MetadataOperations:
    """The operation `set_metadata` of `Laurels`."""

    metadata: MetadataSetter

    async def set_metadata(
        self,
        board: str,
        member: str,
        metadata: dict[str, Any] | None,
        *,
        durability: Durability | None = None,
        **selection: Unpack[Selection],
    ) -> MetadataSet:
        """Replaces or removes the metadata of a member's entries, without a score: in every live window and
        group, or in those that `period`, `slot` and `group` name. Raises `NotFound` if there is none.
        """
        wanted = self._durability(durability)
        selection["group"] = group_text(selection.get("group"))
        return await self.metadata.set(BoardRef.parse(board), member, metadata, selection, wanted)

    def _durability(self, asked: Durability | None) -> Durability:
        raise NotImplementedError
