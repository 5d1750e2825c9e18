"""Opens Laurels for one command and closes it afterwards, with a spinner while it starts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from laurels.cli.output import Output
from laurels.engine import Laurels
from laurels.logs import configure_logs
from laurels.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from rich.console import RenderableType

Answer = TypeVar("Answer")


class CommandSession:
    """Joins the servers that `laurels serve` runs on the data folder, or starts them for one command."""

    def __init__(self, data_dir: Path | None, *, as_json: bool) -> None:
        self.output = Output(as_json=as_json)
        self._data_dir = data_dir

    def run(self, action: Callable[[Laurels], Awaitable[Answer]]) -> Answer:
        settings = load_settings(data_dir=self._data_dir)
        if settings.log_level == "info":
            settings = settings.model_copy(update={"log_level": "warning"})
        configure_logs(settings)
        return asyncio.run(self._run(action))

    def show(self, document: object, picture: RenderableType) -> None:
        self.output.show(document, picture)

    async def _run(self, action: Callable[[Laurels], Awaitable[Answer]]) -> Answer:
        with self.output.working("Opening the stores") as say:
            laurels = Laurels(data_dir=self._data_dir, say=say)
            await laurels.open()
        try:
            return await action(laurels)
        finally:
            await laurels.close()
