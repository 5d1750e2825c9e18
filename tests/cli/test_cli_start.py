"""A command starts fast: it imports what it needs, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli_processes import environment, run
from typer.main import get_group

from laurels.cli.application import COMMANDS, app, loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

# What takes longest to import. Typer itself reads values with Pydantic, so only our models are listed.
HEAVY = {
    "alembic", "cryptography", "fastapi", "httpx", "jwt", "limits", "prometheus_client", "psycopg", "pyarrow",
    "pydantic_settings", "redis", "sqlalchemy", "starlette", "structlog", "uvicorn", "uvloop",
    "laurels.boards.declared", "laurels.engine", "laurels.settings",
}  # fmt: skip
# What only work, drawing and JSON need.
OF_WORK = {"asyncio", "msgspec", "rich", "zstandard"}

PROGRAM = """
import contextlib, io, json, sys
from laurels.cli import main
output = io.StringIO()
for words in json.loads(sys.argv[1]):
    sys.argv = ["laurels", *words]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(output):
        main()
print(json.dumps([output.getvalue(), sorted(sys.modules)]))
"""


def started(*commands: Sequence[str], settings: dict[str, str] | None = None) -> tuple[str, set[str]]:
    """What the commands print, and the libraries and modules of ours that they import in one process."""
    output, modules = json.loads(python(PROGRAM, json.dumps(commands), settings=settings))
    return output, libraries(modules)


def python(program: str, *arguments: str, settings: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment(settings), cwd="/"
    ).stdout


def libraries(modules: Sequence[str]) -> set[str]:
    return {name if name.startswith("laurels.") else name.partition(".")[0] for name in modules}


def completed(words: str, shell: str = "bash") -> tuple[str, set[str]]:
    """What a shell completes at the end of the words."""
    count = len(words.split(" ")) - 1
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(count), "_TYPER_COMPLETE_ARGS": words}
    return started([], settings={"_LAURELS_COMPLETE": f"complete_{shell}", **asked})


def test_version_imports_no_engine_and_draws_nothing():
    output, imported = started(["version"])
    assert output.startswith("Laurels ")
    assert imported & (HEAVY | OF_WORK) == set()


def test_version_in_json_draws_nothing():
    output, imported = started(["version", "--json"])
    assert json.loads(output).keys() == {"laurels", "python"}
    assert imported & (HEAVY | OF_WORK - {"msgspec"}) == set()


def test_a_command_exits_without_a_last_garbage_collection():
    told_at_the_end = "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count()))"
    program = f"{told_at_the_end}; from laurels.cli import main; sys.argv = ['', 'version']; main()"
    assert int(python(program).split()[-1]) > 10_000


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_imports_no_command(words: list[str]):
    output, imported = started(words)
    assert all(f"\n  {name} " in output for name in COMMANDS)
    assert imported & (HEAVY | OF_WORK) == set()
    ours = {name for name in imported if name.startswith("laurels.cli.")}
    assert ours == {"laurels.cli.application", "laurels.cli.output"}


def test_help_of_a_command_imports_nothing_that_it_works_with():
    output, imported = started(*([name, "--help"] for name in COMMANDS))
    assert output.count("Usage: laurels ") == len(COMMANDS)
    assert imported & HEAVY == set()


def test_completion_imports_no_command():
    output, imported = completed("laurels se")
    assert output.split() == ["serve", "secrets"]
    assert imported & (HEAVY | OF_WORK) == set()


def test_completion_of_an_option_imports_nothing_that_the_command_works_with():
    output, imported = completed("laurels serve --po")
    assert output.split() == ["--port"]
    assert imported & HEAVY == set()


def test_completion_knows_subcommands_and_their_options():
    assert completed("laurels keys re")[0].split() == ["revoke"]
    assert completed("laurels keys create --sc")[0].split() == ["--scope"]


def test_zsh_shows_a_summary_beside_each_completion():
    output, imported = completed("laurels se", "zsh")
    assert '"serve":"Start the API and the stores."' in output
    assert imported & HEAVY == set()


def test_a_declared_index_imports_no_engine():
    modules = python("from laurels.index import LeaderboardIndex\nimport sys\nprint(*sys.modules)").split()
    assert (
        libraries(modules) & {"alembic", "laurels.engine", "psycopg", "redis", "rich", "structlog"} == set()
    )


@pytest.mark.parametrize("statement", ["import laurels", "from laurels import Submission"])
def test_the_package_imports_what_a_name_needs(statement: str):
    modules = python(f"{statement}\nimport sys\nprint(*sys.modules)").split()
    assert libraries(modules) & (HEAVY | {"asyncio", "pydantic", "rich", "typer"}) == set()


def test_the_list_of_commands_repeats_the_first_sentence_of_each():
    for name, listed in COMMANDS.items():
        assert (loaded(name).help or "").partition(". ")[0].removesuffix(".") + "." == listed.summary, name


def test_the_list_has_every_command_that_typer_lists():
    assert [*get_group(app).commands] == [*COMMANDS]


def test_an_unknown_command_is_answered_with_the_nearest():
    assert (
        run("versoin").complaint == "No such command 'versoin'. Did you mean 'version'? (see laurels --help)"
    )


def test_a_wrong_option_names_its_command():
    assert run("serve", "--prot", "1").complaint.endswith("(see laurels serve --help)")
    assert run("keys", "create", "--scoop", "x").complaint.endswith("(see laurels keys create --help)")
