from __future__ import annotations

from dataclasses import dataclass
from itertools import count
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


def test_change_that_entries_forbid_is_refused_before_anything_changes(served: Served, file: Path):
    apply(served, file, '["apply/held"]\n')
    run("submit", "apply/held", "ada", "1", data_dir=served.data_dir)
    text = '["apply/other"]\n["apply/held"]\naggregate = "sum"\n'
    for words in (["--dry-run"], []):
        complaint = apply(served, file, text, *words).complaint
        assert '["apply/held"] aggregate cannot change, since the board holds entries' in complaint
    assert "there is no board" in run("top", "apply/other", data_dir=served.data_dir).complaint


WEEKLY, MONTHLY = ', { period = "weekly" }', ', { period = "monthly" }'
_numbers = count(1)


@dataclass(frozen=True)
class Held:
    """Two boards in a project of their own, with two members in each window."""

    project: str

    def text(self, *without: str) -> str:
        """The file that defines them; or one without these windows."""
        text = f"""
["{self.project}/arcade"]
windows = [{{ period = "all_time" }}{WEEKLY}]
["{self.project}/puzzle"]
windows = [{{ period = "all_time" }}{WEEKLY}{MONTHLY}]
"""
        for window in without:
            text = text.replace(window, "")
        return text


@pytest.fixture
def held(served: Served, file: Path) -> Held:
    held = Held(f"drops-{next(_numbers)}")
    assert apply(served, file, held.text()).code == 0
    for board in ("arcade", "puzzle"):
        for member in ("ada", "bob"):
            assert run("submit", f"{held.project}/{board}", member, "1", data_dir=served.data_dir).code == 0
    return held


def total(served: Served, board: str, period: str) -> int:
    return run("top", board, "--period", period, "--json", data_dir=served.data_dir).document["total"]


class TestDrops:
    def test_are_shown_by_a_dry_run_in_red_with_what_would_allow_them(
        self, served: Served, file: Path, held: Held
    ):
        file.write_text(held.text(WEEKLY))
        colours = {"FORCE_COLOR": "1", "NO_COLOR": "", "TERM": "xterm-256color"}
        shown = run("apply", str(file), "--dry-run", data_dir=served.data_dir, settings=colours)
        assert shown.code == 0
        assert shown.output.count("\x1b[1;31mweekly: 2 entries") == 2
        hint = f"--allow-drop {held.project}/arcade:weekly --allow-drop {held.project}/puzzle:weekly"
        assert f"laurels apply {file} {hint}" in shown.output
        document = apply(served, file, held.text(WEEKLY), "--dry-run", "--json").document
        gone = [{"window": "weekly", "entries": 2, "snapshots": 0}]
        assert [board["drops"] for board in document["boards"]] == [gone, gone]
        assert total(served, f"{held.project}/arcade", "weekly") == 2

    def test_nothing_of_the_file_is_applied_before_they_are_allowed(
        self, served: Served, file: Path, held: Held
    ):
        complaint = apply(served, file, f'["{held.project}/new"]\n' + held.text(WEEKLY)).complaint
        arcade, puzzle = f"{held.project}/arcade", f"{held.project}/puzzle"
        assert complaint == (
            f'{file}: ["{arcade}"] would drop weekly (2 entries); '
            f'["{puzzle}"] would drop weekly (2 entries); '
            f"nothing was applied. To allow it: laurels apply {file} "
            f"--allow-drop {arcade}:weekly --allow-drop {puzzle}:weekly"
        )
        one = apply(
            served,
            file,
            f'["{held.project}/new"]\n' + held.text(WEEKLY),
            "--allow-drop",
            f"{held.project}/arcade:weekly",
        )
        assert "nothing was applied" in one.complaint
        assert "there is no board" in run("top", f"{held.project}/new", data_dir=served.data_dir).complaint
        assert total(served, f"{held.project}/arcade", "weekly") == 2
        hint = complaint.partition(f"laurels apply {file} ")[2].split()
        for _ in range(2):  # again, nothing changes
            assert apply(served, file, held.text(WEEKLY), *hint).code == 0
        assert (
            "has no window"
            in run("top", f"{held.project}/arcade", "--period", "weekly", data_dir=served.data_dir).complaint
        )

    def test_a_window_alone_means_the_one_board_that_drops_it(self, served: Served, file: Path, held: Held):
        complaint = apply(served, file, held.text(WEEKLY), "--allow-drop", "weekly").complaint
        assert (
            f"{held.project}/arcade and {held.project}/puzzle would drop weekly; name the boards" in complaint
        )
        shorter = held.text(MONTHLY)
        shown = apply(served, file, shorter, "--dry-run", "--allow-drop", "monthly").output
        assert "monthly: 2 entries" in shown
        assert "To allow" not in shown
        applied = apply(served, file, shorter, "--allow-drop", "monthly").output
        assert "monthly: 2 entries" in applied
        assert total(served, f"{held.project}/puzzle", "weekly") == 2

    @pytest.mark.parametrize(
        ("word", "complaint"),
        [
            ("wekly", "no board that changes has a window 'wekly'; there are: all_time, weekly"),
            ("OURS/arcade:monthly", "OURS/arcade has no window 'monthly'; there are: all_time, weekly"),
            ("OURS/other:weekly", "the file has no board OURS/other"),
            ("arcade:weekly", "write it as WINDOW or PROJECT/BOARD:WINDOW, not 'arcade:weekly'"),
            ("weekly,", "write it as WINDOW or PROJECT/BOARD:WINDOW, not ''"),
        ],
    )
    def test_a_name_that_allows_nothing_is_refused(
        self, served: Served, file: Path, held: Held, word: str, complaint: str
    ):
        word, complaint = (text.replace("OURS/", f"{held.project}/") for text in (word, complaint))
        assert complaint in apply(served, file, held.text(WEEKLY), "--allow-drop", word).complaint


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
            """["a/b"] aggregate: must be best, last, first or sum, not 'max'""",
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


def test_missing_file_is_reported(tmp_path: Path):
    assert "cannot be read: No such file" in run("apply", str(tmp_path / "gone.toml")).complaint
