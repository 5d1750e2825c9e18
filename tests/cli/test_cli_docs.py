"""What is documented is what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hooks
import pytest

from laurels.boards.definition import BoardDefinition
from laurels.cli.application import COMMANDS, loaded
from laurels.cli.boards_file import read_boards

DOCUMENTS = Path(__file__).parents[2] / "docs" / "reference"
GROUPS = ("people", "places", "keys", "secrets")
OF_ALL = {"--data-dir", "--json", "--help"}


def commands(node: Any, path: str) -> dict[str, set[str]]:  # noqa: ANN401  # Typer's own tree
    """Each command with its own options."""
    if hasattr(node, "commands"):
        found: dict[str, set[str]] = {}
        for name, inner in node.commands.items():
            found |= commands(inner, f"{path} {name}")
        return found
    return {
        path: {option for parameter in node.params for option in parameter.opts if option[0] == "-"} - OF_ALL
    }


def documented() -> dict[str, set[str]]:
    sections = re.split(r"^## ", hooks.filled((DOCUMENTS / "cli.md").read_text()), flags=re.MULTILINE)[1:]
    return {
        section.splitlines()[0]: set(re.findall(r"^\| `(--[a-z-]+)", section, re.MULTILINE))
        for section in sections
    }


def test_every_command_and_option_is_documented():
    assert documented() == {
        path: options
        for name in COMMANDS
        for path, options in commands(loaded(name), f"laurels {name}").items()
    }


def test_the_options_of_all_commands_belong_to_all():
    tree: dict[str, Any] = {name: loaded(name) for name in COMMANDS}
    inner = [pair for name in GROUPS for pair in tree[name].commands.items()]
    for name, command in [*tree.items(), *inner]:
        options = {option for parameter in command.params for option in parameter.opts}
        assert name in (*GROUPS, "version") or {"--data-dir", "--json"} <= options


@pytest.fixture
def example(tmp_path: Path) -> Path:
    text = re.search(r"```toml\n(.*?)```", (DOCUMENTS / "board-definition.md").read_text(), re.DOTALL)
    assert text is not None
    path = tmp_path / "boards.toml"
    path.write_text(text[1])
    return path


def test_the_example_of_boards_is_valid_and_names_every_field(example: Path):
    assert list(read_boards(example)) == ["acme/arcade", "acme/all-games", "acme/duels"]
    named = set(re.findall(r"^(\w+) = ", example.read_text(), re.MULTILINE))
    assert named == set(BoardDefinition.model_fields)
