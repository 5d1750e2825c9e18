"""Laurels ranks people: a leaderboard engine, a service around it, and a declared index for models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laurels.boards.definition import BoardDefinition, Window
    from laurels.engine import Laurels
    from laurels.scores.submission import Submission

__all__ = ["BoardDefinition", "Laurels", "Submission", "Window"]

_HOMES = {
    "BoardDefinition": "laurels.boards.definition",
    "Window": "laurels.boards.definition",
    "Submission": "laurels.scores.submission",
    "Laurels": "laurels.engine",
}


def __getattr__(name: str) -> object:
    """Imports a name when it is first used, so that a short command loads little."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'laurels' has no attribute {name!r}")
