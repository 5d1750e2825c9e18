"""The message of `serve` once the API answers: the address, a key and commands to try."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rich.text import Text

if TYPE_CHECKING:
    from pathlib import Path

    from laurels.cli.output import Output

POLL = 0.02
"""Seconds between two checks whether the API answers."""
OWN_BOARD = "my-game/high-scores"


@dataclass(frozen=True)
class Welcome:
    url: str
    board: str
    """The board in the commands."""
    is_defined: bool
    key: str | None
    key_file: Path | None
    key_variable: str
    """The variable that the commands take the key from if it is not shown."""
    token: str | None = None
    """The token of one of the campuses' invented people."""

    @property
    def page(self) -> str:
        """The board's page, if the board exists. The key is in the fragment, which browsers send nowhere."""
        path = f"boards/{self.board}" if self.is_defined else ""
        return f"{self.url}/{path}#key={self.key}" if self.key else f"{self.url}/{path}"

    @property
    def campus(self) -> str | None:
        return f"{self.url}/leaderboards#token={self.token}" if self.token else None

    @property
    def commands(self) -> list[str]:
        """Commands to paste into a shell."""
        project, board = self.board.split("/")
        at = f"{self.url}/v1/projects/{project}/boards/{board}"
        key = f'-H "Authorization: Bearer {self.key or f"${self.key_variable}"}"'
        json = "-H 'Content-Type: application/json'"
        define = f"curl -sS -X PUT {key} {json} -d '{{}}' {at}"
        submit = f'curl -sS {key} {json} -d \'{{"member": "you", "score": 42000}}\' {at}/scores'
        top = f"curl -sS {key} '{at}/entries?limit=5'"
        return [submit, top] if self.is_defined else [define, submit, top]

    @property
    def document(self) -> dict[str, object]:
        document: dict[str, object] = {
            "url": self.url,
            "page": self.page,
            "key": self.key,
            "commands": self.commands,
        }
        return document | ({"campus": self.campus} if self.campus else {})

    @property
    def picture(self) -> Text:
        text = Text()
        text.append("\nLaurels is ready.\n\n", "bold green")
        _line(text, "page", self.page, "bold")
        if self.campus:
            _line(text, "campus", self.campus)
        _line(text, "API", f"{self.url}/docs")
        if self.key:
            _line(text, "key", self.key)
            text.append(
                f"           for every project, on this machine only; stored in {self.key_file}\n", "dim"
            )
        else:
            where = f"the commands read it from ${self.key_variable}"
            _line(text, "key", f"make one with `laurels keys create PROJECT`; {where}")
        text.append("\n  Try it:\n\n")
        for command in self.commands:
            text.append(f"  {command}\n\n")
        text.append("  Ctrl-C stops it.\n", "dim")
        return text


class Announcement:
    """Waits in a thread until the server answers, then prints the welcome once."""

    def __init__(self, welcome: Welcome, output: Output) -> None:
        self._welcome = welcome
        self._output = output
        self.was_made = False
        threading.Thread(target=self._announce, name="welcome", daemon=True).start()

    def _announce(self) -> None:
        while not _answers(self._welcome.url):
            time.sleep(POLL)
        self.was_made = True
        with contextlib.suppress(BrokenPipeError):  # the reader has gone
            self._output.show(self._welcome.document, self._welcome.picture)


def _answers(url: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _line(text: Text, name: str, value: str, style: str = "") -> None:
    text.append(f"  {name:<7}  ", "dim")
    text.append(f"{value}\n", style)
