"""Applies a file of boards: compares it with the boards that exist, and defines those that change."""

from __future__ import annotations

import asyncio
import json as json_text
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from rich.text import Text

from laurels.boards.consent import counts_of, in_words
from laurels.boards.keys import BoardRef
from laurels.cli.allowed_drops import allowed_by, parse_words, words_for
from laurels.cli.boards_file import difference, in_order, read_boards
from laurels.cli.output import printable, table
from laurels.errors import Conflict, DropNotAllowed, InvalidInput, LaurelsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.table import Table

    from laurels import Laurels
    from laurels.boards.definition import BoardDefinition, StoredBoard
    from laurels.cli.boards_file import BoardChange
    from laurels.cli.session import CommandSession

# Boards that one query reads.
READ_TOGETHER = 500
# Boards that are compared at the same time: each takes a connection of the pool's ten for some milliseconds.
COMPARED_AT_ONCE = 8

STYLES = {"created": "green", "changed": "yellow", "unchanged": "dim"}


def apply_file(file: Path, allow_drop: list[str], session: CommandSession, *, dry_run: bool) -> None:
    boards = read_boards(file)
    named = parse_words(allow_drop)

    async def work(laurels: Laurels) -> tuple[list[BoardChange], bool]:
        await _check_feeds(laurels, file, boards)
        windows: dict[str, list[str]] = {}
        turns = asyncio.Semaphore(COMPARED_AT_ONCE)

        async def compare(name: str, stored: StoredBoard | None) -> BoardChange:
            async with turns:
                return await _compare(laurels, (file, name), boards[name], stored, windows)

        changes: list[BoardChange] = []
        for together in _by_hundreds(in_order(boards)):
            found = await _stored(laurels, together)
            changes += await asyncio.gather(*(compare(*each) for each in found.items()))
        allowed = allowed_by(named, changes, windows)
        is_allowed = all(drop.window in allowed[each.board] for each in changes for drop in each.drops)
        if not dry_run:
            if not is_allowed:
                raise DropNotAllowed(_refusal(file, changes))
            await _define(laurels, file, changes, boards, allowed)
        return changes, is_allowed

    changes, is_allowed = session.run(work)
    caption = "Nothing was changed: this was a dry run." if dry_run else None
    session.show({"applied": not dry_run, "boards": changes}, _picture(changes, caption))
    if not is_allowed and not session.output.as_json:
        hint = Text.assemble("To allow the drops: ", (_words(file, changes), "bold"))
        session.output.console.print(hint, soft_wrap=True)


def _by_hundreds(names: list[str]) -> Iterator[list[str]]:
    return (names[first : first + READ_TOGETHER] for first in range(0, len(names), READ_TOGETHER))


async def _stored(laurels: Laurels, names: list[str]) -> dict[str, StoredBoard | None]:
    """These boards as they are now, in this order."""
    found = await laurels.store.get_all(map(BoardRef.parse, names))
    stored: dict[str, StoredBoard | None] = {}
    for name in names:
        each = found.get(BoardRef.parse(name))
        if isinstance(each, LaurelsError):
            raise each
        stored[name] = each
    return stored


async def _compare(
    laurels: Laurels,
    where: tuple[Path, str],
    definition: BoardDefinition,
    stored: StoredBoard | None,
    windows: dict[str, list[str]],
) -> BoardChange:
    """What would change on a board. Raises `Conflict` if its entries forbid the change. Adds the current and
    the new windows of a changed board to `windows`.
    """
    file, board = where
    change = difference(board, stored.definition if stored else None, definition)
    if stored is None or change.kind != "changed":
        return change
    windows[board] = [window.label for window in (*stored.definition.windows, *definition.windows)]
    if change.fixed and any(window.entries for window in await laurels.windows(board)):
        raise Conflict(
            f'{file}: ["{board}"] {", ".join(change.fixed)} cannot change, since the board holds entries: '
            "give the new definition another name, or drop the board first"
        )
    try:
        # The boards that it feeds may be new in the file; `_check_feeds` has checked them.
        preview = await laurels.preview(board, definition.model_copy(update={"feeds": ()}))
    except InvalidInput as error:
        raise InvalidInput(f'{file}: ["{board}"] {error.detail}') from error
    if preview.conflict:
        raise Conflict(f'{file}: ["{board}"] {preview.conflict}')
    return replace(change, drops=preview.drops)


def _refusal(file: Path, changes: list[BoardChange]) -> str:
    dropping = "; ".join(
        f'["{each.board}"] would drop {in_words(each.drops)}' for each in changes if each.drops
    )
    return f"{file}: {dropping}; nothing was applied. To allow it: {_words(file, changes)}"


def _words(file: Path, changes: list[BoardChange]) -> str:
    return f"laurels apply {shlex.quote(str(file))} {words_for(changes)}"


async def _check_feeds(laurels: Laurels, file: Path, boards: dict[str, BoardDefinition]) -> None:
    for board, definition in boards.items():
        for index, feed in enumerate(definition.feeds):
            ref = BoardRef.parse(feed)
            if feed not in boards and await laurels.store.get(ref.project, ref.board) is None:
                raise InvalidInput(
                    f'{file}: ["{board}"] feeds[{index}]: there is no board {feed}: define it in the file too'
                )
            if feed in boards and boards[feed].feeds:
                raise InvalidInput(
                    f'{file}: ["{board}"] feeds[{index}]: {feed} feeds others itself: list those here instead'
                )


async def _define(
    laurels: Laurels,
    file: Path,
    changes: list[BoardChange],
    boards: dict[str, BoardDefinition],
    allowed: dict[str, frozenset[str]],
) -> None:
    """Defines the boards that change. An error says which boards were applied before it."""
    done: list[str] = []
    for has_feeds in (False, True):  # a fed board exists before its feeder, which may be in another project
        by_project: dict[str, dict[str, BoardChange]] = {}
        for change in changes:
            if change.kind != "unchanged" and bool(boards[change.board].feeds) == has_feeds:
                ref = BoardRef.parse(change.board)
                by_project.setdefault(ref.project, {})[ref.board] = change
        for project, named in by_project.items():
            consents = {
                name: allowed[change.board] & {drop.window for drop in change.drops}
                for name, change in named.items()
                if change.drops
            }
            definitions = {name: boards[change.board] for name, change in named.items()}
            results = await laurels.define_many(project, definitions, allow_drop=consents)
            done += (named[each.board].board for each in results if each.problem is None)
            for each in results:
                if each.problem:
                    applied = f"applied: {', '.join(done)}" if done else "nothing was applied"
                    detail = f'["{named[each.board].board}"] {each.problem.detail}'
                    raise LaurelsError(f"{file}: {detail} ({applied})")


def _picture(changes: list[BoardChange], caption: str | None) -> Table:
    picture = table("board", "", "field", "old", "new", caption=caption)
    for change in changes:
        kind = Text(change.kind, STYLES[change.kind])
        rows = [(field.field, field.old, field.new) for field in change.fields]
        if not rows:
            picture.add_row(change.board, kind)
        for index, (field, old, new) in enumerate(rows):
            heading = (change.board, kind) if index == 0 else ("", "")
            before = Text("") if change.kind == "created" else _value(old)
            picture.add_row(*heading, field, before, _value(new))
        for drop in change.drops:
            lost = Text(f"{drop.window}: {counts_of(drop)}", "bold red")
            picture.add_row("", "", Text("drops", "bold red"), lost, Text("gone", "bold red"))
    return picture


def _value(value: object) -> Text:
    """Compact JSON without nulls."""
    return Text(printable(json_text.dumps(_without_nulls(value), ensure_ascii=False)))


def _without_nulls(value: object) -> object:
    if isinstance(value, list):
        return [_without_nulls(each) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value).items()
        return {name: _without_nulls(each) for name, each in fields if each is not None}
    return value
