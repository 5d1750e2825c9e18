"""The output of commands: tables and progress for people, one JSON document for programs.

Functions import Rich where they draw: it takes 50 ms, which a line of text and a JSON document save.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.console import Console, RenderableType
    from rich.table import Table

DAY, HOUR, MINUTE = 86_400, 3_600, 60


class Output:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        return _console()

    @cached_property
    def _messages(self) -> Console:
        return _console(stderr=True)

    def show(self, document: object, picture: RenderableType) -> None:
        """Prints the document as JSON for programs, or the picture for people."""
        if self.as_json:
            import msgspec  # noqa: PLC0415  # 30 ms

            _write_line(msgspec.json.encode(document).decode())
        elif isinstance(picture, str):
            _write_line(printable(picture))
        else:
            from rich.text import Text  # noqa: PLC0415  # 50 ms, as above

            self.console.print(picture, soft_wrap=isinstance(picture, Text))

    @property
    def is_watched(self) -> bool:
        """Whether a person sees progress: in a terminal, without `--json`."""
        return not self.as_json and self._messages.is_terminal

    @contextmanager
    def working(self, doing: str) -> Generator[Callable[[str], None]]:
        """Shows a spinner; yields a function that changes its text."""
        if not self.is_watched:
            yield lambda _: None
            return
        plain = partial(self._messages.render_str, markup=False)
        with self._messages.status(plain(doing)) as status:
            yield lambda words: status.update(plain(words))

    @contextmanager
    def counting(self, doing: str) -> Generator[Callable[[int, int], None]]:
        """Shows a progress bar; yields a function of the count done and the total."""
        if not self.is_watched:
            yield lambda _done, _of: None
            return
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415  # 50 ms, as above

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:,} of {task.total:,}"),
        )
        with Progress(*columns, console=self._messages, transient=True) as progress:
            task = progress.add_task(doing, total=0)
            yield lambda done, of: progress.update(task, completed=done, total=of)


def complain(message: str) -> None:
    """Prints an error in one line on stderr. The last lines of a server's log may follow, indented."""
    console = _console(stderr=True)
    first, *log_lines = message.splitlines() or ["an error without a message"]
    name = console.render_str("laurels:", style="bold red")
    console.print(name, printable(first), markup=False, soft_wrap=True)
    for line in log_lines:
        console.print(printable(line), style="dim", markup=False, soft_wrap=True)


def table(*columns: str, title: str | None = None, caption: str | None = None) -> Table:
    """A plain table. A `>` before a column's name aligns it to the right."""
    from rich.table import Table  # noqa: PLC0415  # 50 ms, as above

    made = Table(
        title=title, caption=caption, title_justify="left", caption_justify="left", title_style="bold"
    )
    for column in columns:
        made.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    return made


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console  # noqa: PLC0415  # 50 ms, as above

    return Console(stderr=stderr, highlight=False, emoji=False)


def _write_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def printable(text: str) -> str:
    """The text made safe for a terminal: escapes replace control characters, which members may contain."""
    return re.sub(r"[^\S ]|[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def grouped(number: float) -> str:
    """1234567 as 1,234,567; keeps all digits of a fraction."""
    if isinstance(number, int) or (number.is_integer() and abs(number) < 2**53):
        return f"{int(number):,}"
    return f"{number:,}" if abs(number) < 2**53 else repr(number)


def duration(seconds: float) -> str:
    """In one or two units: 3 d 4 h, 12 min, 40 s."""
    whole = max(0, round(seconds))
    days, hours, minutes = whole // DAY, whole % DAY // HOUR, whole % HOUR // MINUTE
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{whole} s"
