"""Rebuild, export, import and erase, as people call them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cli_processes import COMMAND, DEADLINE, Ran, environment, run

if TYPE_CHECKING:
    from pathlib import Path

    from cli_processes import Served


@pytest.fixture
def board(served: Served, tmp_path: Path) -> str:
    name = f"keeping/{tmp_path.name}"
    boards = tmp_path / "boards.toml"
    boards.write_text(f'["{name}"]\nties = "earliest"\n')
    assert run("apply", str(boards), data_dir=served.data_dir).code == 0
    for member, score in (("ada", "5"), ("bob", "7"), ("eve", "5")):
        assert run("submit", name, member, score, data_dir=served.data_dir).code == 0
    return name


def entries(served: Served, board: str) -> list[Any]:
    return run("top", board, "--json", data_dir=served.data_dir).document["entries"]


def test_a_board_is_rebuilt_and_compared(served: Served, board: str):
    before = entries(served, board)
    rebuilt = run("rebuild", board, "--json", data_dir=served.data_dir)
    assert rebuilt.code == 0
    (told,) = rebuilt.document["boards"]
    assert (told["board"], told["rows"], told["entries"]) == (board, 3, 3)
    assert told["watermark"] >= told["begins"]
    assert entries(served, board) == before
    verified = run("rebuild", board, "--verify", "--json", data_dir=served.data_dir)
    assert (verified.code, verified.document["boards"][0]["different"]) == (0, 0)
    assert "name a board" in run("rebuild", data_dir=served.data_dir).complaint


@pytest.mark.parametrize("ending", ["ndjson", "ndjson.gz", "ndjson.zst", "parquet"])
def test_a_file_brings_a_board_to_another_place(served: Served, board: str, tmp_path: Path, ending: str):
    file = tmp_path / f"board.{ending}"
    written = run("export", str(file), "--board", board, "--json", data_dir=served.data_dir)
    assert (written.code, written.document["entries"]) == (0, 3)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
    other = f"{board}-{ending}"
    tried = run("import", str(file), "--into", other, "--dry-run", "--json", data_dir=served.data_dir)
    assert tried.document["entries"] == 3
    assert run("top", other, data_dir=served.data_dir).code == 1
    brought = run("import", str(file), "--into", other, "--json", data_dir=served.data_dir)
    assert (brought.document["entries"], brought.document["boards"]) == (3, [other])
    assert entries(served, other) == entries(served, board)
    torn = tmp_path / f"torn.{ending}"
    torn.write_bytes(file.read_bytes()[:-20])
    refused = run("import", str(torn), "--into", f"{other}-torn", data_dir=served.data_dir)
    assert refused.code == 1
    assert "Traceback" not in refused.complaint
    assert run("top", f"{other}-torn", data_dir=served.data_dir).code == 1


def test_parquet_without_pyarrow_is_refused_in_one_line(served: Served, board: str, tmp_path: Path):
    program = "import sys; sys.modules['pyarrow'] = None; from laurels.cli import main; main()"
    file = tmp_path / "board.parquet"
    words = ["export", str(file), "--board", board, "--data-dir", str(served.data_dir)]
    ran = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=environment(),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "pip install pyarrow" in Ran(ran.returncode, ran.stdout, ran.stderr).complaint
    assert list(tmp_path.glob("board.parquet*")) == []


def test_a_member_is_erased(served: Served, board: str):
    project, name = board.split("/")
    erased = run("erase", project, "ada", "--board", name, "--yes", "--json", data_dir=served.data_dir)
    assert (erased.document["boards"], erased.document["windows"]) == (1, 1)
    assert [entry["member"] for entry in entries(served, board)] == ["bob", "eve"]
    again = run("erase", project, "ada", "--board", name, "--yes", "--json", data_dir=served.data_dir)
    assert again.document == {"boards": 0, "windows": 0, "rows": 0}


def test_erasing_without_a_terminal_takes_yes(served: Served, board: str):
    project, name = board.split("/")
    complaint = run("erase", project, "ada", "--board", name, data_dir=served.data_dir).complaint
    assert complaint == (
        f"Erasing ada from {board} cannot be undone, and there is no terminal to confirm it: add --yes"
    )
    assert len(entries(served, board)) == 3


@pytest.mark.parametrize(("typed", "code"), [("ada", 0), ("eve", 1), ("", 1)])
def test_erasing_at_a_terminal_waits_for_the_members_name(served: Served, board: str, typed: str, code: int):
    project, name = board.split("/")
    words = ["erase", project, "ada", "--board", name, "--data-dir", str(served.data_dir)]
    terminal, inside = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words], stdin=inside, stdout=subprocess.PIPE, stderr=inside, env=environment(), cwd="/"
    ) as process:
        os.close(inside)
        os.write(terminal, f"{typed}\n".encode())
        assert process.wait(DEADLINE) == code
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(terminal, 10_000).decode())
    os.close(terminal)
    assert f"Erasing ada from {board} cannot be undone." in shown
    assert "Type ada to continue" in shown
    assert ("that is not ada: nothing was changed" in shown) == bool(code)
    left = [entry["member"] for entry in entries(served, board)]
    assert left == (["bob", "eve"] if code == 0 else ["bob", "ada", "eve"])
