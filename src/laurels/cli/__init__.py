"""The command line. `application` is the tree of commands; each module beside it is one or a few of them."""

from laurels.cli.application import main

__all__ = ["main"]
