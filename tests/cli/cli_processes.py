"""The command line as its users run it: in a process of its own, with an environment of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

COMMAND = [sys.executable, "-m", "laurels.cli"]
DEADLINE = 60.0


def environment(settings: dict[str, str] | None = None) -> dict[str, str]:
    """Ours, without settings of Laurels but those given."""
    ours = {name: value for name, value in os.environ.items() if not name.upper().startswith("LAURELS_")}
    return ours | {"COLUMNS": "120", "NO_COLOR": "1"} | (settings or {})


@dataclass(frozen=True)
class Ran:
    code: int
    output: str
    errors: str

    @property
    def document(self) -> Any:  # noqa: ANN401  # whatever the command says
        assert self.code == 0, self.errors
        return json.loads(self.output)

    @property
    def complaint(self) -> str:
        """The one line that a failure is."""
        assert self.code != 0, self.output
        assert self.errors.count("\n") == 1, self.errors
        assert self.errors.startswith("laurels: ")
        assert "Traceback" not in self.errors
        return self.errors.removeprefix("laurels: ").strip()


class Preloaded:
    """Starts commands from a process that has imported Laurels already: many times as fast, no less real.

    It freezes what it imported: the garbage collector of a command would visit, and so copy, all of it.
    """

    PROGRAM = """
import gc, json, os, sys
import limits, psycopg
import laurels.cli.board_changes, laurels.cli.opening, laurels.cli.server, laurels.doctor
from laurels.cli import main
from laurels.cli.application import COMMANDS, loaded
for name in COMMANDS:
    loaded(name)
gc.collect()
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    if (child := os.fork()) == 0:
        for descriptor, name in enumerate((os.devnull, asked["output"], asked["errors"])):
            os.dup2(os.open(name, os.O_RDWR), descriptor)
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv = ["laurels", *asked["words"]]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd="/",  # where there is no laurels.toml
        )

    def run(self, words: list[str], settings: dict[str, str] | None) -> Ran:
        with NamedTemporaryFile("r+") as output, NamedTemporaryFile("r+") as errors:
            asked = {
                "words": words,
                "environment": environment(settings),
                "output": output.name,
                "errors": errors.name,
            }
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            return Ran(code, output.read(), errors.read())

    def close(self) -> None:
        self._process.communicate()


_preloaded = cache(Preloaded)


def run(*words: str, data_dir: Path | None = None, settings: dict[str, str] | None = None) -> Ran:
    folder = ["--data-dir", str(data_dir)] if data_dir else []
    return _preloaded().run([*words, *folder], settings)


def end_preloaded() -> None:
    if _preloaded.cache_info().currsize:
        _preloaded().close()


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[str]
    data_dir: Path
    welcome: dict[str, Any]

    @property
    def url(self) -> str:
        return self.welcome["url"]

    def end(self, signal_number: int) -> int:
        """The exit code."""
        self.process.send_signal(signal_number)
        return self.process.wait(DEADLINE)


@dataclass(frozen=True)
class Past:
    """A `laurels serve --demo` that was ended by SIGTERM."""

    data_dir: Path
    key: str
    code: int


@contextmanager
def serving(data_dir: Path, *words: str, settings: dict[str, str] | None = None) -> Generator[Served]:
    """`laurels serve`, from when it is ready; ended by SIGTERM at the latest."""
    command = [*COMMAND, "serve", "--port", "0", "--json", "--data-dir", str(data_dir), *words]
    with (
        NamedTemporaryFile("r+") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment(settings), cwd="/"
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, Path(log.name).read_text()
            yield Served(process, data_dir, json.loads(line))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE)
