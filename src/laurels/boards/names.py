"""What the names of projects, boards and dimensions look like. Pure."""

from __future__ import annotations

from typing import Final

NAME_PATTERN: Final = r"^[A-Za-z0-9._-]{1,64}$"
BOARD_PATTERN: Final = r"^[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,64}$"
PATTERNS: Final = {
    NAME_PATTERN: "1 to 64 of A-Z a-z 0-9 - _ .",
    BOARD_PATTERN: "a board, PROJECT/BOARD",
}
