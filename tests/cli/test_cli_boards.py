from __future__ import annotations

import os
import pty
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cli_processes import COMMAND, DEADLINE, environment, run

if TYPE_CHECKING:
    from pathlib import Path

    from cli_processes import Past, Served


def test_submitted_score_is_ranked(served: Served):
    submitted = run(
        "submit", "demo/arcade", "ada", "999990", "--group", "country=BR", "--json", data_dir=served.data_dir
    ).document
    assert (submitted["rank"], submitted["applied"]) == (1, True)
    assert "ada" in run("top", "demo/arcade", "--limit", "1", data_dir=served.data_dir).output
    page = run(
        "top",
        "demo/arcade",
        "--group",
        "country=BR",
        "--period",
        "weekly",
        "--json",
        data_dir=served.data_dir,
    ).document
    assert page["entries"][0] == {"rank": 1, "member": "ada", "score": 999_990}
    standing = run("rank", "demo/arcade", "ada", "--json", data_dir=served.data_dir).document
    assert (standing["rank"], standing["percentile"]) == (1, 1.0)
    assert "ada is 1 of" in run("rank", "demo/arcade", "ada", data_dir=served.data_dir).output


def test_a_window_that_is_over_can_be_asked_for(served: Served):
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    page = run("top", "demo/arcade", "--slot", yesterday, "--json", data_dir=served.data_dir).document
    assert page["slot"] == yesterday
    assert page["entries"][0]["rank"] == 1


def test_scores_may_be_negative_and_ids_count_once(served: Served):
    once = ("submit", "demo/arcade", "grace", "-5", "--id", "once", "--json")
    first, again = (run(*once, data_dir=served.data_dir).document for _ in range(2))
    assert (first["score"], first["applied"]) == (-5, True)
    assert (again["score"], again["applied"]) == (-5, False)


def test_a_match_moves_both_players(served: Served, tmp_path: Path):
    (tmp_path / "boards.toml").write_text('["cli/duels"]\nrating = { system = "elo" }\n')
    run("apply", str(tmp_path / "boards.toml"), data_dir=served.data_dir)
    won = ("match", "cli/duels", "ada", "bob", "--winner", "ada", "--id", "once")
    matched = run(*won, "--json", data_dir=served.data_dir).document
    assert [(each["member"], each["rating"], each["rank"]) for each in matched["players"]] == [
        ("ada", 1016, 1),
        ("bob", 984, 2),
    ]
    assert "nothing changed" in run(*won, data_dir=served.data_dir).output
    drawn = run("match", "cli/duels", "ada", "bob", "--draw", data_dir=served.data_dir).output
    assert "1,014.5" in drawn
    assert "+1.5" in drawn
    for wrong in ((), ("--draw", "--winner", "ada")):
        failed = run("match", "cli/duels", "ada", "bob", *wrong, data_dir=served.data_dir)
        assert (failed.code, "--winner" in failed.errors) == (1, True)


def test_int64_scores_are_text_in_json_as_in_the_api(served: Served, tmp_path: Path):
    (tmp_path / "boards.toml").write_text('["cli/exact"]\nscore = "int64"\n')
    run("apply", str(tmp_path / "boards.toml"), data_dir=served.data_dir)
    big = "9007199254740993"
    submitted = run("submit", "cli/exact", "ada", big, "--json", data_dir=served.data_dir).document
    assert submitted["score"] == big
    page = run("top", "cli/exact", "--json", data_dir=served.data_dir).document
    assert page["entries"] == [{"rank": 1, "member": "ada", "score": big}]


def test_a_member_cannot_command_the_terminal(served: Served, tmp_path: Path):
    (tmp_path / "boards.toml").write_text('["cli/names"]\n')
    run("apply", str(tmp_path / "boards.toml"), data_dir=served.data_dir)
    run("submit", "cli/names", "\x1b[31m[red]eve\n", "1", data_dir=served.data_dir)
    assert r"\x1b[31m[red]eve\n" in run("top", "cli/names", data_dir=served.data_dir).output


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["top", "demo"], "board: write it as PROJECT/BOARD, not 'demo'"),
        (["top", "no/board"], "there is no board no/board"),
        (["top", "demo/arcade", "--period", "hourly"], "the board has no window 'hourly'"),
        (["top", "demo/arcade", "--group", "planet=mars"], "the board is not ranked by planet"),
        (["rank", "demo/arcade", "nobody"], "'nobody' has no entry"),
        (["submit", "demo/arcade", "ada", "many"], "score: must be a number, not 'many'"),
        (["submit", "demo/arcade", "ada", "nan"], "score: must be a number, not 'nan'"),
        (["submit", "demo/arcade", "ada", "1", "--at", "noon"], "--at: write it like 2025-10-24T12:00:00Z"),
        (["submit", "demo/arcade", "ada", "1", "--group", "BR"], "--group: write it as NAME=VALUE"),
        (["top", "demo/arcade", "--watch"], "--watch needs a terminal"),
    ],
)
def test_mistakes_are_reported_in_one_line(served: Served, words: list[str], complaint: str):
    ran = run(*words, data_dir=served.data_dir)
    assert complaint in ran.complaint
    assert ran.code == 1


@pytest.mark.parametrize("words", [["top"], ["top", "a/b", "--no-such"], ["nonsense"], ["keys"]])
def test_misused_command_is_reported_in_one_line(words: list[str]):
    ran = run(*words)
    assert "--help" in ran.complaint
    assert ran.code == 2


def test_without_words_it_explains_itself():
    ran = run()
    assert ran.code == 0
    assert "Usage: laurels" in ran.output


def test_without_a_server_running_it_starts_them_for_the_moment(past: Past):
    assert run("demo", "--json", data_dir=past.data_dir).document["submitted"] == 0
    assert run("demo", "--reset", "--json", data_dir=past.data_dir).document["submitted"] > 5000
    assert not (past.data_dir / "runtime.json").exists()


def test_watching_goes_on_until_interrupted(served: Served):
    controller, terminal = pty.openpty()
    command = [*COMMAND, "top", "demo/arcade", "--watch", "--data-dir", str(served.data_dir)]
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment()
    ) as watching:
        os.close(terminal)
        seen = b""
        while seen.count(b"demo/arcade") < 2:  # drawn, and drawn again
            seen += os.read(controller, 65536)
        watching.send_signal(signal.SIGINT)
        rest = b""
        try:
            while more := os.read(controller, 65536):
                rest += more
        except OSError:  # how Linux says that the other end is closed
            pass
        assert watching.wait(DEADLINE) == 130
        assert b"Traceback" not in seen + rest
    os.close(controller)
