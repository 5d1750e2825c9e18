from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli_processes import environment, run

from laurels.cli.load import LINE_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from cli_processes import Served


@pytest.fixture(autouse=True)
def board(served: Served, tmp_path: Path) -> None:
    boards = tmp_path / "boards.toml"
    boards.write_text('["loads/scores"]\ngroups = [["country"]]\n')
    assert run("apply", str(boards), data_dir=served.data_dir).code == 0


def test_a_csv_file_is_loaded_with_its_groups_and_ids(served: Served, tmp_path: Path):
    scores = tmp_path / "scores.csv"
    scores.write_text(
        "member,score,country,id\n"
        "load-ada,2000001,GB,load-1\n"
        "load-bob,2000000,,load-2\n"
        "load-ada,many,GB,load-3\n"
        "load-eve,2000002\n"
        '"load, ""eve""",2000002,BR,load-4\n'
    )
    ended = run("load", "loads/scores", str(scores), "--json", data_dir=served.data_dir)
    loaded = json.loads(ended.output)
    assert (ended.code, loaded["accepted"]) == (1, 3)
    assert [(refusal["index"], refusal["line"]) for refusal in loaded["rejected"]] == [(2, 4), (3, 5)]
    assert "score: must be a number, not 'many'" in loaded["rejected"][0]["detail"]
    top = run("top", "loads/scores", "--limit", "3", "--json", data_dir=served.data_dir).document
    assert [entry["member"] for entry in top["entries"]] == ['load, "eve"', "load-ada", "load-bob"]
    british = run(
        "top", "loads/scores", "--group", "country=GB", "--limit", "1", "--json", data_dir=served.data_dir
    )
    assert british.document["entries"][0]["member"] == "load-ada"
    again = run("load", "loads/scores", str(scores), data_dir=served.data_dir)
    assert "3 accepted, 2 refused" in again.output


def test_lines_of_json_are_loaded_and_bad_ones_harm_no_other(served: Served, tmp_path: Path):
    scores = tmp_path / "scores.ndjson"
    scores.write_bytes(
        b'{"member": "load-joe", "score": 3000000}\n\n{"member": "load-joe"}\nnonsense\n\xff\n'
        b'{"member": "load-kim", "score": 3000001, "metadata": {"level": 3}}\n'
    )
    ended = run("load", "loads/scores", str(scores), "--json", data_dir=served.data_dir)
    loaded = json.loads(ended.output)
    assert (ended.code, loaded["accepted"]) == (1, 2)
    assert [refusal["line"] for refusal in loaded["rejected"]] == [3, 4, 5]
    standing = run("rank", "loads/scores", "load-kim", "--json", data_dir=served.data_dir).document
    assert standing["metadata"] == {"level": 3}


def test_a_file_that_cannot_be_read_is_one_clear_line(served: Served, tmp_path: Path):
    missing = run("load", "loads/scores", str(tmp_path / "none.csv"), data_dir=served.data_dir)
    assert "cannot be read: No such file or directory" in missing.complaint
    headless = tmp_path / "headless.csv"
    headless.write_text("ada,5\n")
    refused = run("load", "loads/scores", str(headless), data_dir=served.data_dir)
    assert "the first line must name the columns" in refused.complaint


MARK = b"\xef\xbb\xbf"


def test_lines_end_and_begin_as_programs_write_them(served: Served, tmp_path: Path):
    """With a byte order mark, CRLF, blank lines, and no end of the last line."""
    scores = tmp_path / "marked.ndjson"
    scores.write_bytes(
        MARK + b'{"member": "load-max", "score": 1}\r\n\r\n \t\r\n{"member": "load-mia", "score": 2}'
    )
    assert run("load", "loads/scores", str(scores), data_dir=served.data_dir).code == 0
    table = tmp_path / "marked.csv"
    table.write_bytes(MARK + b"member,score\r\n\r\nload-max,3\r\nload-mia,4")
    ended = run("load", "loads/scores", str(table), data_dir=served.data_dir)
    assert (ended.code, "2 accepted, 0 refused" in ended.output) == (0, True)


def test_each_bad_line_is_named_with_what_is_wrong(served: Served, tmp_path: Path):
    good = b'{"member": "load-nia", "score": 1}\n'
    huge = b'{"member": "load-nia", "score": 1, "metadata": {"x": "' + b"y" * LINE_BYTES + b'"}}\n'
    scores = tmp_path / "bad.ndjson"
    scores.write_bytes(
        good + b'{"member":"load-nia","scor":1}\n' + huge + b'{"member":"\xff","score":1}\n[]\n' + good
    )
    ended = run("load", "loads/scores", str(scores), "--json", data_dir=served.data_dir)
    assert (ended.code, json.loads(ended.output)["accepted"]) == (1, 2)
    assert [(each["line"], each["detail"]) for each in json.loads(ended.output)["rejected"]] == [
        (2, "scor: there is no such field; did you mean score?"),
        (3, "a line has at most 1048576 bytes"),
        (4, "not UTF-8"),
        (5, "body: must be an object, not an array"),
    ]
    table = tmp_path / "bad.csv"
    table.write_bytes(
        b"member,score\nload-nia,1,2\n\xff,1\n" + b"x" * (LINE_BYTES + 5) + b",1\nload-nia\nload-nia,5\n"
    )
    ended = run("load", "loads/scores", str(table), "--json", data_dir=served.data_dir)
    assert (ended.code, json.loads(ended.output)["accepted"]) == (1, 1)
    assert [(each["line"], each["detail"]) for each in json.loads(ended.output)["rejected"]] == [
        (2, "has 3 values, but there are 2 columns"),
        (3, "member: must be valid Unicode, without lone surrogates"),
        (4, "field larger than field limit (131072)"),
        (5, "has 1 values, but there are 2 columns"),
    ]


@pytest.mark.parametrize(("sent", "code"), [(b'{"member": "load-oda", "score": 1}\n', 0), (b"nonsense\n", 1)])
def test_lines_are_read_from_stdin(served: Served, sent: bytes, code: int):
    words = [
        sys.executable,
        "-m",
        "laurels.cli",
        "load",
        "loads/scores",
        "-",
        "--data-dir",
        str(served.data_dir),
    ]
    ended = subprocess.run(words, input=sent, capture_output=True, check=False, env=environment(None))
    assert ended.returncode == code, ended.stderr


def test_a_refusal_by_the_engine_names_its_line_and_a_good_file_exits_with_0(served: Served, tmp_path: Path):
    scores = tmp_path / "lines.csv"
    scores.write_text("member,score,at\nload-lea,1,\n\nload-lea,2,1999-01-01T00:00:00Z\n")
    refused = run("load", "loads/scores", str(scores), "--json", data_dir=served.data_dir)
    assert refused.code == 1
    rejected = json.loads(refused.output)["rejected"]
    assert [(each["index"], each["line"]) for each in rejected] == [(1, 4)]
    scores.write_text("member,score\nload-lea,1\n")
    assert run("load", "loads/scores", str(scores), data_dir=served.data_dir).code == 0
