"""A file of boards: what it says, and how that differs from what there is. Pure, but for reading the file.

    ["demo/arcade"]
    windows = [{ period = "daily", keep = 30 }, { period = "all_time" }]

Each table is a board; its keys are the fields of a definition; docs/reference/board-definition.md has all.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from laurels.boards.declared import NAME_PATTERN
from laurels.boards.define import FIXED
from laurels.boards.definition import BoardDefinition, parse_definition
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
        """The changed fields that cannot change under entries."""
        names = [change.field for change in self.fields if change.field in FIXED or change == DENSE_TURNED_ON]
        return names if self.kind == "changed" else []


DENSE_TURNED_ON = FieldChange("dense", old=False, new=True)


def read_boards(path: Path) -> dict[str, BoardDefinition]:
    """The definitions by `project/board`; `InvalidInput` names the file, the board, the field and the fix."""
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
    """What the new definition changes; of one that is created, the fields that are not the default."""
    before = (old or BoardDefinition()).model_dump(mode="json")
    after = new.model_dump(mode="json")
    fields = tuple(
        FieldChange(name, before[name], after[name]) for name in after if before[name] != after[name]
    )
    if old is None:
        return BoardChange(board, "created", fields)
    return BoardChange(board, "changed" if fields else "unchanged", fields)


def in_order(boards: Mapping[str, BoardDefinition]) -> list[str]:
    """Those that feed none first: a board that is fed must exist, and must not feed others."""
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
        told = [f'["{name}"] {field.field}: {field.detail}' for field in error.fields]
        raise InvalidInput("; ".join(told)) from None
