"""What a command has while it runs: its output, and Laurels, which it opens only to do its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from laurels.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from rich.console import RenderableType

    from laurels.engine import Laurels

Answer = TypeVar("Answer")


class CommandSession:
    """Joins the servers that `laurels serve` runs on the data folder, or starts them for one command."""

    def __init__(self, data_dir: Path | None, *, as_json: bool) -> None:
        self.output = Output(as_json=as_json)
        self._data_dir = data_dir

    def run(self, action: Callable[[Laurels], Awaitable[Answer]]) -> Answer:
        from laurels.cli.opening import run  # noqa: PLC0415  # the engine: a second, which --help saves

        return run(action, self._data_dir, self.output)

    def show(self, document: object, picture: RenderableType) -> None:
        self.output.show(document, picture)
