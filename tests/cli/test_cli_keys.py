from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from cli_processes import run

if TYPE_CHECKING:
    from cli_processes import Served


def status_with(key: str, served: Served) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.get(f"{served.url}/v1/projects/demo/boards", headers=headers).status_code


def test_a_key_is_made_listed_and_revoked(served: Served):
    made = run(
        "keys", "create", "demo", "--scope", "read", "--label", "test", "--json", data_dir=served.data_dir
    ).document
    listed = run("keys", "list", "--project", "demo", "--json", data_dir=served.data_dir).document
    assert [(key["label"], key["scopes"]) for key in listed if key["id"] == made["id"]] == [
        ("test", ["read"])
    ]
    table = run("keys", "list", data_dir=served.data_dir).output
    assert made["prefix"] in table
    assert made["key"] not in table
    assert run("keys", "revoke", made["key"], "--json", data_dir=served.data_dir).document == {
        "revoked": made["prefix"]
    }
    assert status_with(made["key"], served) == 401
    assert "no key" in run("keys", "revoke", made["prefix"], data_dir=served.data_dir).complaint


def test_people_see_the_key_on_a_line_of_its_own(served: Served):
    secret = run("keys", "create", "*", "--scope", "read", data_dir=served.data_dir).output.splitlines()[0]
    assert status_with(secret, served) == 200


def test_a_key_for_no_project_or_scope_is_refused(served: Served):
    assert "project: 1 to 64 of" in run("keys", "create", "a b").complaint
    complaint = run("keys", "create", "demo", "--scope", "write", data_dir=served.data_dir).complaint
    assert complaint == "scopes: must be one or more of read, submit, admin"
