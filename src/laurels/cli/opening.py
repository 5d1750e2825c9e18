"""Opens Laurels for one command and closes it afterwards, with a spinner while it starts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from laurels.engine import Laurels
from laurels.logs import configure_logs
from laurels.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from laurels.cli.output import Output

Answer = TypeVar("Answer")


def run(action: Callable[[Laurels], Awaitable[Answer]], data_dir: Path | None, output: Output) -> Answer:
    settings = load_settings(data_dir=data_dir)
    if settings.log_level == "info":
        settings = settings.model_copy(update={"log_level": "warning"})
    configure_logs(settings)
    return asyncio.run(_run(action, data_dir, output))


async def _run(
    action: Callable[[Laurels], Awaitable[Answer]], data_dir: Path | None, output: Output
) -> Answer:
    with output.working("Opening the stores") as say:
        laurels = Laurels(data_dir=data_dir, say=say)
        await laurels.open()
    try:
        return await action(laurels)
    finally:
        await laurels.close()
