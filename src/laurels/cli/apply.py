import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table
from rich.text import Text

from laurels.boards.definition import BoardDefinition
from laurels.boards.keys import BoardRef
from laurels.cli.boards_file import Change, difference, in_order, read_boards
from laurels.cli.options import DataDir, Json
from laurels.cli.output import printable, table
from laurels.cli.session import Session
from laurels.errors import Conflict, InvalidInput, LaurelsError

if TYPE_CHECKING:
    from laurels import Laurels

STYLES = {"created": "green", "changed": "yellow", "unchanged": "dim"}


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Boards as TOML.", show_default=False)],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference, change nothing.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Define the boards of a file, and show what that changes. Boards that are not in it stay as they are."""
    boards = read_boards(file)
    session = Session(data_dir, as_json=json)

    async def bring_in(laurels: "Laurels") -> list[Change]:
        await _check_feeds(laurels, file, boards)
        changes = [await _compare(laurels, file, board, boards[board]) for board in in_order(boards)]
        for change in changes:
            if not dry_run and change.kind != "unchanged":
                await _define(laurels, file, change.board, boards[change.board])
        return changes

    changes = session.run(bring_in)
    session.show({"applied": not dry_run, "boards": changes}, _picture(changes, dry_run=dry_run))


async def _compare(laurels: "Laurels", file: Path, board: str, definition: BoardDefinition) -> Change:
    """What would change; refused before anything is changed when the board's entries forbid it."""
    ref = BoardRef.parse(board)
    stored = await laurels.store.get(ref.project, ref.board)
    change = difference(board, stored.definition if stored else None, definition)
    if change.fixed and any(window.entries for window in await laurels.windows(board)):
        raise Conflict(
            f'{file}: ["{board}"] {", ".join(change.fixed)} cannot change, since the board holds entries: '
            "give the new definition another name, or drop the board first"
        )
    return change


async def _check_feeds(laurels: "Laurels", file: Path, boards: dict[str, BoardDefinition]) -> None:
    for board, definition in boards.items():
        for index, feed in enumerate(definition.feeds):
            ref = BoardRef.parse(feed)
            if feed not in boards and await laurels.store.get(ref.project, ref.board) is None:
                raise InvalidInput(
                    f'{file}: ["{board}"] feeds[{index}]: there is no board {feed}: define it in the file too'
                )
            if feed in boards and boards[feed].feeds:
                raise InvalidInput(
                    f'{file}: ["{board}"] feeds[{index}]: {feed} feeds others itself: name them here instead'
                )


async def _define(laurels: "Laurels", file: Path, board: str, definition: BoardDefinition) -> None:
    try:
        await laurels.define(board, definition)
    except (InvalidInput, Conflict) as error:
        raise LaurelsError(f'{file}: ["{board}"] {error.detail}') from error


def _picture(changes: list[Change], *, dry_run: bool) -> Table:
    caption = "Nothing was changed: this was a dry run." if dry_run else None
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
    return picture


def _value(value: object) -> Text:
    """As compact JSON, without what is not set."""
    return Text(printable(json_text.dumps(_without_nulls(value), ensure_ascii=False)))


def _without_nulls(value: object) -> object:
    if isinstance(value, list):
        return [_without_nulls(each) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value).items()
        return {name: _without_nulls(each) for name, each in fields if each is not None}
    return value
