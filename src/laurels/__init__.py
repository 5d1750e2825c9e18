"""Laurels ranks people: a leaderboard engine, a service around it, and a declared index for models."""

from laurels.boards.definition import BoardDefinition, Window
from laurels.boards.submission import Submission
from laurels.laurels import Laurels

__all__ = ["BoardDefinition", "Laurels", "Submission", "Window"]
