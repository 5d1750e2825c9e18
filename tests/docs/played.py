"""Plays a page of the documentation from top to bottom, as a reader would: with a folder, a shell, and
programs that keep running beside it.

- A block with a title is a file, unless the title is one of the two below.
- `sh` runs in one shell; the `text` or `json` after it is what it prints, `…` standing for anything.
- `sh title="Leave it running"` runs until the page is over; it is ready when its port answers.
- `sh title="Within seconds"` is repeated until it prints what the page says.
- `python` runs in one namespace; the `text` after it is what it prints.
"""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Self

from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).parents[2]
FENCE: Final = re.compile(r'^```(\w*)(?: title="(.*?)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
RUNNING: Final = "Leave it running"
REPEATED: Final = "Within seconds"
# What the environment of the tests has already.
INSTALLS: Final = re.compile(r"^(?:pip|apt|make) (?:install|docs).*\n", re.MULTILINE)
PORTS: Final = ("8000", "8080")


@dataclass(frozen=True)
class Snippet:
    page: str
    line: int
    language: str
    title: str
    code: str


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text()
    name = page.relative_to(ROOT).as_posix()
    return [
        Snippet(name, text.count("\n", 0, found.start()) + 1, found[1], found[2] or "", found[3])
        for found in FENCE.finditer(text)
    ]


class Reader:
    """Does what a page says. `meant` are words of the page, and what they are here."""

    def __init__(self, folder: Path, settings: Mapping[str, str], meant: Mapping[str, str]) -> None:
        self.folder = folder
        self.ports = {port: str(_free_port()) for port in PORTS}
        self.meant = dict(meant)
        self.names = ModuleType("played_page")  # SQLAlchemy looks up annotations in the module of a class
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LAURELS_")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "120",
            "NO_COLOR": "1",
            "LAURELS_PORT": self.ports["8000"],
            "LAURELS_LOG_LEVEL": "error",
            **settings,
        }
        self._ends = ExitStack()
        self._shell = subprocess.Popen(
            ["/bin/bash"],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()
        self._shell.communicate()

    def here(self, code: str) -> str:
        for port, free in self.ports.items():
            code = re.sub(rf"(127\.0\.0\.1:|--port ){port}\b", rf"\g<1>{free}", code)
        for written, there in self.meant.items():
            code = code.replace(written, there)
        return code

    def play(self, page: Path) -> None:
        steps = snippets(page)
        for step, after in zip(steps, [*steps[1:], None], strict=True):
            expected = after if after and after.language in {"text", "json"} and not after.title else None
            try:
                self.follow(step, expected)
            except AssertionError as error:
                raise AssertionError(f"{step.page}, line {step.line}: {error}") from error

    def follow(self, step: Snippet, expected: Snippet | None) -> None:
        code = self.here(step.code)
        if step.title == RUNNING:
            self.leave_running(code)
        elif step.language == "sh":
            said = compared(self.run(code), expected)

            def is_said() -> bool:
                nonlocal said
                said = said and compared(self.run(code), expected)
                return not said

            if step.title == REPEATED:
                until(is_said, lambda: said)
            assert not said, said
        elif step.title:
            (self.folder / step.title).write_text(code)
        elif step.language == "python":
            said = compared(self.execute(code), expected)
            assert not said, said

    def run(self, code: str) -> str:
        """What the shell prints."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        code = f"FAILED=0; trap 'FAILED=$?' ERR\n{INSTALLS.sub('', code)}\necho; echo ENDED $FAILED\n"
        self._shell.stdin.write(code)
        self._shell.stdin.flush()
        lines: list[str] = []
        for line in self._shell.stdout:
            if line.startswith("ENDED "):
                assert line == "ENDED 0\n", "".join(lines)
                return "".join(lines).removesuffix("\n")
            lines.append(line)
        raise AssertionError("the shell ended: " + "".join(lines))

    def leave_running(self, code: str) -> None:
        found = re.search(r"--port (\d+)", code)
        port = int(found[1]) if found else int(self.ports["8000"])
        log = self.folder / "running.log"
        log.touch()  # the shell does not wait until what it leaves running has opened it
        process = self.run(f"{code.rstrip()} > running.log 2>&1 &\necho $!").strip()
        self._ends.callback(self.run, f"kill {process}; wait {process} || true")
        program = Path("/proc", process)
        until(lambda: _answers(port) or not program.exists(), log.read_text)
        assert program.exists(), log.read_text()

    def execute(self, code: str) -> str:
        sys.modules[self.names.__name__] = self.names
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "page", "exec"), vars(self.names))  # noqa: S102  # it is ours, and the point
        return printed.getvalue()


def compared(printed: str, expected: Snippet | None) -> str:
    """How they differ; "" if they do not."""
    if expected is None:
        return ""
    if expected.language == "json":
        same = alike(json.loads(printed), json.loads(expected.code))
    else:
        pattern = re.escape(expected.code.strip()).replace("…", ".*?")
        same = re.fullmatch(pattern, _stripped(printed)) or re.fullmatch(pattern, printed.strip())
    return "" if same else f"it prints\n{printed}\nand the page says\n{expected.code}"


def alike(found: Any, said: Any) -> bool:  # noqa: ANN401  # any JSON
    if isinstance(said, str) and "…" in said:
        return bool(re.fullmatch(re.escape(said).replace("…", ".*"), str(found)))
    if isinstance(said, dict) and isinstance(found, dict):
        return said.keys() == found.keys() and all(alike(found[key], said[key]) for key in said)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(said, list) and isinstance(found, list):
        return len(said) == len(found) and all(map(alike, found, said))  # pyright: ignore[reportUnknownArgumentType]
    return found == said


def _stripped(printed: str) -> str:
    return "\n".join(line.rstrip() for line in printed.strip().splitlines())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def pages(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).glob("*.md"))
