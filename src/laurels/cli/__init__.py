"""The command line. `application` is the tree of commands; most other modules have a command or two each."""

from laurels.cli.application import main

__all__ = ["main"]
