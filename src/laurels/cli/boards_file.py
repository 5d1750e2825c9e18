"""Reads a file of boards and compares it with the stored definitions. Pure, except for reading the file.

    ["demo/arcade"]
    windows = [{ period = "daily", keep = 30 }, { period = "all_time" }]

Each table is a board, with the fields of a definition (docs/reference/board-definition.md).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from laurels.boards.define import FIXED
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.names import NAME_PATTERN
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from laurels.errors import Drop

Kind = Literal["created", "changed", "unchanged"]


@dataclass(frozen=True)
class FieldChange:
    field: str
    old: object
    new: object


@dataclass(frozen=True)
class BoardChange:
    board: str
    kind: Kind
    fields: tuple[FieldChange, ...] = ()
    drops: tuple[Drop, ...] = ()

    @property
    def fixed(self) -> list[str]:
        """The changed fields that cannot change while the board holds entries."""
        names = [change.field for change in self.fields if change.field in FIXED or change == DENSE_TURNED_ON]
        return names if self.kind == "changed" else []


DENSE_TURNED_ON = FieldChange("dense", old=False, new=True)


def read_boards(path: Path) -> dict[str, BoardDefinition]:
    """The definitions by `project/board`. `InvalidInput` names the file, the board and the field."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    if not tables:
        raise InvalidInput(f'{path} has no boards: a board is a table such as ["demo/arcade"]')
    problems: list[str] = []
    boards: dict[str, BoardDefinition] = {}
    for name, fields in tables.items():
        try:
            if not isinstance(fields, dict):
                raise InvalidInput.at(name, 'is not a board: a board is a table such as ["demo/arcade"]')
            boards[name] = _read_board(name, cast("dict[str, Any]", fields))
        except InvalidInput as error:
            problems.append(f"{path}: {error.detail}")
    if problems:
        raise InvalidInput("; ".join(problems))
    return boards


def difference(board: str, old: BoardDefinition | None, new: BoardDefinition) -> BoardChange:
    """What the new definition changes; for a new board, the fields that differ from the defaults."""
    before = (old or BoardDefinition()).model_dump(mode="json")
    after = new.model_dump(mode="json")
    fields = tuple(
        FieldChange(name, before[name], after[name]) for name in after if before[name] != after[name]
    )
    if old is None:
        return BoardChange(board, "created", fields)
    return BoardChange(board, "changed" if fields else "unchanged", fields)


def in_order(boards: Mapping[str, BoardDefinition]) -> list[str]:
    """The boards in the order to define them: a fed board must exist before its feeder."""
    return sorted(boards, key=lambda board: bool(boards[board].feeds))


def _read_board(name: str, fields: dict[str, Any]) -> BoardDefinition:
    project, slash, board = name.partition("/")
    if not slash:
        inner = next((key for key, value in fields.items() if isinstance(value, dict)), "BOARD")
        raise InvalidInput(f'[{name}] is not a board: write its table as ["{name}/{inner}"], with the quotes')
    for what, word in (("project", project), ("board", board)):
        if not re.fullmatch(NAME_PATTERN, word):
            raise InvalidInput(f'["{name}"]: the {what} {word!r} must be 1 to 64 of A-Z a-z 0-9 - _ .')
    try:
        return parse_definition(fields)
    except InvalidInput as error:
        details = [f'["{name}"] {field.field}: {field.detail}' for field in error.fields]
        raise InvalidInput("; ".join(details)) from None
