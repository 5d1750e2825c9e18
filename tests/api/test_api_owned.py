"""Boards that a flow owns, and templates, from outside: read by everybody, written by their owners alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from laurels.boards.definition import BoardDefinition
from laurels.boards.keys import BoardRef
from laurels.boards.submission import Submission

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.laurels import Laurels

    from .conftest import MakeKey


@pytest.fixture
async def owned(laurels: Laurels, project: str, boards: str) -> str:
    """A board of the index flow, with one entry."""
    ref = BoardRef(project, "owned")
    await laurels.index_definer.define(ref, BoardDefinition())
    flow = laurels._submitter.acting_for("index")  # pyright: ignore[reportPrivateUsage]  # as the flow writes
    await flow.submit(ref, Submission("ada", 1))
    return f"{boards}/owned"


WRITES: list[tuple[str, str, Any]] = [
    ("POST", "/scores", {"member": "bob", "score": 1}),
    ("POST", "/scores/batch", [{"member": "bob", "score": 1}]),
    ("PATCH", "/entries/ada", {"metadata": {}}),
    ("DELETE", "/entries/ada", None),
    ("PUT", "", {"lateness": "P2D"}),
    ("DELETE", "", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_a_write_from_outside_is_refused_with_the_reason(
    client: AsyncClient, owned: str, method: str, path: str, body: object
):
    answer = await client.request(method, f"{owned}{path}", json=body)
    assert answer.status_code == 409, answer.text
    assert "an index declared on a model" in answer.json()["detail"]
    entries = (await client.get(f"{owned}/entries")).json()["entries"]
    assert [each["member"] for each in entries] == ["ada"]


async def test_a_board_tells_who_owns_it_and_its_preview_what_forbids_a_change(
    client: AsyncClient, owned: str
):
    assert (await client.get(owned)).json()["owner"] == "index"
    told = (await client.post(f"{owned}/preview", json={"lateness": "P2D"})).json()
    assert "an index declared on a model" in told["conflict"]


async def test_nothing_is_fed_into_an_owned_board(client: AsyncClient, boards: str, owned: str, project: str):
    del owned
    answer = await client.put(f"{boards}/feeder", json={"feeds": [f"{project}/owned"]})
    assert answer.status_code == 409


async def test_an_owner_cannot_be_given(client: AsyncClient, boards: str):
    assert (await client.put(f"{boards}/mine", json={"owner": "campus"})).status_code == 422


TEMPLATED = {"keys": {"all_time": "ranks:{project}:{board}"}}


@pytest.mark.parametrize("path", ["", "/preview"])
async def test_templates_take_a_key_for_every_project(
    anybody: AsyncClient, boards: str, project: str, make_key: MakeKey, path: str
):
    headers = {"Authorization": f"Bearer {await make_key(project, 'admin')}"}
    method = "POST" if path else "PUT"
    answer = await anybody.request(method, f"{boards}/mine{path}", json=TEMPLATED, headers=headers)
    assert answer.status_code == 403
    assert "a key for *" in answer.json()["detail"]


async def test_templates_that_a_board_has_stay_when_its_project_edits_it(
    client: AsyncClient, boards: str, project: str, make_key: MakeKey
):
    assert (await client.put(f"{boards}/mine", json=TEMPLATED)).status_code == 201
    client.headers["Authorization"] = f"Bearer {await make_key(project, 'admin')}"
    edited = {**TEMPLATED, "lateness": "P2D"}
    assert (await client.put(f"{boards}/mine", json=edited)).status_code == 200
    grouped = {**TEMPLATED, "groups": [["country"]]}
    assert (await client.put(f"{boards}/mine", json=grouped)).status_code == 403


async def test_errors_name_no_board_of_another_project(client: AsyncClient, boards: str, project: str):
    elsewhere = f"/v1/projects/{project}-secret/boards/hidden"
    taken = {"keys": {"all_time": f"shared:{project}"}}
    assert (await client.put(elsewhere, json=taken)).status_code == 201
    answer = await client.put(f"{boards}/mine", json=taken)
    assert answer.status_code == 422
    assert "hidden" not in answer.text
