from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli_processes import run

if TYPE_CHECKING:
    from pathlib import Path

    from cli_processes import Ran, Served

FEEDING = """
["apply/first"]
feeds = ["apply/second"]
windows = [{ period = "daily", keep = 30 }]
limits = { max = 100 }

["apply/second"]
aggregate = "sum"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "boards.toml"


def apply(served: Served, file: Path, text: str, *words: str) -> Ran:
    file.write_text(text)
    return run("apply", str(file), *words, data_dir=served.data_dir)


def kinds(ran: Ran) -> dict[str, str]:
    return {board["board"]: board["kind"] for board in ran.document["boards"]}


def test_the_difference_is_shown_and_applied(served: Served, file: Path):
    new = {"apply/second": "created", "apply/first": "created"}
    assert kinds(apply(served, file, FEEDING, "--dry-run", "--json")) == new
    assert kinds(apply(served, file, FEEDING, "--json")) == new
    assert set(kinds(apply(served, file, FEEDING, "--json")).values()) == {"unchanged"}
    changed = FEEDING.replace("100", "200")
    shown = apply(served, file, changed, "--dry-run").output
    assert "dry run" in shown
    assert '{"max": 100}' in shown
    assert '{"max": 200}' in shown
    document = apply(served, file, changed, "--json").document
    assert document["applied"] is True
    fields = {board["board"]: [field["field"] for field in board["fields"]] for board in document["boards"]}
    assert fields == {"apply/second": [], "apply/first": ["limits"]}


def test_what_entries_forbid_is_refused_before_anything_changes(served: Served, file: Path):
    apply(served, file, '["apply/held"]\n')
    run("submit", "apply/held", "ada", "1", data_dir=served.data_dir)
    text = '["apply/other"]\n["apply/held"]\naggregate = "sum"\n'
    for words in (["--dry-run"], []):
        complaint = apply(served, file, text, *words).complaint
        assert '["apply/held"] aggregate cannot change, since the board holds entries' in complaint
    assert "there is no board" in run("top", "apply/other", data_dir=served.data_dir).complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a", "boards.toml is not valid TOML"),
        ("", "boards.toml has no boards"),
        (
            "[demo.arcade]",
            'boards.toml: [demo] is not a board: write its table as ["demo/arcade"], with the quotes',
        ),
        ("port = 1", "boards.toml: port: is not a board"),
        ('["a/b c"]', """boards.toml: ["a/b c"]: the board 'b c' must be"""),
        (
            '["a/b"]\nwindow = []',
            'boards.toml: ["a/b"] window: there is no such field; did you mean windows?',
        ),
        (
            '["a/b"]\naggregate = "max"',
            """["a/b"] aggregate: Input should be 'best', 'last', 'first' or 'sum'""",
        ),
        (
            '["a/b"]\nwindows = [{ period = "daily", keep = 0 }]',
            '["a/b"] windows[0].keep: is a number of windows',
        ),
        ('["a/b"]\nfeeds = ["no/where"]', '["a/b"] feeds[0]: there is no board no/where'),
        ('["a/b"]\nfeeds = ["a/c"]\n["a/c"]\nfeeds = ["a/b"]', '["a/b"] feeds[0]: a/c feeds others itself'),
    ],
)
def test_a_bad_file_names_the_board_the_field_and_the_fix(
    served: Served, file: Path, text: str, complaint: str
):
    assert complaint in apply(served, file, text).complaint


def test_a_file_that_is_not_there_is_said(tmp_path: Path):
    assert "cannot be read: No such file" in run("apply", str(tmp_path / "gone.toml")).complaint
