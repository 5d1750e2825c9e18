from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cli_processes import run

if TYPE_CHECKING:
    from pathlib import Path

    from cli_processes import Ran, Served

CSV = """user_id,handle,campus_id,email,nick
cli-ada,Ada,oslo,a@x.org,Addie
cli-bob,Bob,oslo,b@x.org,
cli-eve,"Eve
cli-joe,Joe,oslo,j@x.org,Jo
"""


@pytest.fixture
def users(tmp_path: Path) -> str:
    path = tmp_path / "users.csv"
    path.write_text(CSV)
    return str(path)


def people(served: Served, *words: str) -> Ran:
    return run("people", *words, data_dir=served.data_dir)


def test_a_table_of_users_is_imported_listed_changed_and_removed(served: Served, users: str):
    ended = people(served, "import", users, "--project", "cli", "--json")
    imported = json.loads(ended.output)
    assert (ended.code, imported["accepted"], imported["ignored"]) == (1, 3, ["email", "nick"])
    assert [(each["line"], each["detail"]) for each in imported["rejected"]] == [(4, "a quote is not closed")]
    listed = people(served, "list", "--project", "cli", "--prefix", "CLI-", "--json").document
    assert [(each["id"], each["name"], each["place"]) for each in listed["people"]] == [
        ("cli-ada", "Ada", "oslo"),
        ("cli-bob", "Bob", "oslo"),
        ("cli-joe", "Joe", "oslo"),
    ]
    told = people(served, "set", "cli-ada", "--project", "cli", "--timezone", "Europe/Oslo", "--place", "")
    assert told.output.strip() == "cli-ada: Ada, timezone Europe/Oslo"
    assert people(served, "show", "cli-ada", "--project", "cli").output == told.output
    assert "cli-ada is forgotten" in people(served, "remove", "cli-ada", "--project", "cli").output
    ended = people(served, "show", "cli-ada", "--project", "cli")
    assert ended.complaint == "cli: there is no person 'cli-ada'"


def test_a_dry_run_writes_nothing_and_finds_the_same(served: Served, users: str):
    ended = people(served, "import", users, "--project", "dry", "--dry-run")
    assert ended.code == 1
    assert "3 would be accepted, 1 refused; ignored columns: email, nick" in ended.output
    assert "a quote is not closed" in ended.output
    assert "There are no such people." in people(served, "list", "--project", "dry").output


def test_columns_and_lines_of_json_are_imported(served: Served, users: str, tmp_path: Path):
    people(served, "import", users, "--project", "columns", "--column", "name=nick")
    lines = tmp_path / "more.ndjson"
    lines.write_text('{"id": "cli-zoe", "name": "Zoe"}\n\n{"id": 7}\n')
    ended = people(served, "import", str(lines), "--project", "columns", "--json")
    assert [(each["index"], each["line"]) for each in json.loads(ended.output)["rejected"]] == [(1, 3)]
    found = people(served, "list", "--project", "columns", "--json").document["people"]
    assert [each["name"] for each in found] == ["Addie", None, "Jo", "Zoe"]
    ended = people(served, "import", users, "--column", "nick")
    assert ended.complaint == "--column: write it as FIELD=COLUMN, not 'nick'"


def test_places_are_imported_listed_changed_and_removed(served: Served, tmp_path: Path):
    file = tmp_path / "places.csv"
    file.write_text("id,name,timezone\noslo,Oslo,Europe/Oslo\nlima,Lima,America/Limaa\n")

    def places(*words: str) -> Ran:
        return run("places", *words, "--project", "cli", data_dir=served.data_dir)

    ended = places("import", str(file))
    assert (ended.code, "1 accepted, 1 refused" in ended.output) == (1, True)
    assert "did you mean America/Lima?" in " ".join(ended.output.split())
    assert places("set", "lima", "--name", "Lima").output.strip() == "lima: Lima, the default timezone"
    assert [each["id"] for each in places("list", "--json").document["places"]] == ["lima", "oslo"]
    assert places("show", "oslo").output.strip() == "oslo: Oslo, Europe/Oslo"
    assert places("remove", "oslo").code == 0
    assert places("remove", "oslo").complaint == "cli: there is no place 'oslo'"


def test_what_is_kept_about_a_member_is_printed(served: Served):
    run("submit", "demo/arcade", "cli-export", "5", data_dir=served.data_dir)
    people(served, "set", "cli-export", "--project", "demo", "--name", "Exported")
    found = people(served, "export", "cli-export", "--project", "demo").document
    assert (found["person"]["name"], found["next"]) == ("Exported", None)
    assert {each["board"] for each in found["entries"]} == {"arcade"}
    assert [each["score"] for each in found["journal"]] == [5]
