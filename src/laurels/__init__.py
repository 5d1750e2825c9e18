"""Laurels ranks people: a leaderboard engine, a service around it, and a declared index for models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.lazy_names import lazy_names

if TYPE_CHECKING:
    from laurels.boards.definition import BoardDefinition, Window
    from laurels.engine import Laurels
    from laurels.scores.submission import Submission

__all__ = ["BoardDefinition", "Laurels", "Submission", "Window"]

__getattr__ = lazy_names(
    __name__,
    {
        "BoardDefinition": "laurels.boards.definition",
        "Laurels": "laurels.engine",
        "Submission": "laurels.scores.submission",
        "Window": "laurels.boards.definition",
    },
)
