"""The routes of people and places, and `people=true` on reads."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from laurels.scores.results import Standing
from laurels.scores.view_diff import Change, Snapshot

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.engine import Laurels

    from .conftest import MakeKey

ADA = {"id": "ada", "name": "Ada", "avatar_url": "https://x.org/a.png", "place": "oslo", "timezone": None}
NOTHING = {"name": None, "avatar_url": None, "place": None, "timezone": None}


@pytest.fixture
def people(project: str) -> str:
    return f"/v1/projects/{project}/people"


@pytest.fixture
def places(project: str) -> str:
    return f"/v1/projects/{project}/places"


async def test_a_person_is_put_read_listed_and_deleted(client: AsyncClient, people: str):
    about = {name: value for name, value in ADA.items() if name not in {"id", "timezone"}}
    answer = await client.put(f"{people}/ada", json=about)
    assert (answer.status_code, answer.json()) == (200, ADA)
    assert (await client.get(f"{people}/ada")).json() == ADA
    assert (await client.get(people, params={"prefix": "AD"})).json() == {"people": [ADA], "next": None}
    assert (await client.delete(f"{people}/ada")).status_code == 204
    for method in ("GET", "DELETE"):
        answer = await client.request(method, f"{people}/ada")
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")


async def test_a_place_is_put_read_listed_and_deleted(client: AsyncClient, places: str):
    oslo = {"id": "oslo", "name": "Oslo", "timezone": "Europe/Oslo"}
    answer = await client.put(f"{places}/oslo", json={"name": "Oslo", "timezone": "Europe/Oslo"})
    assert (answer.status_code, answer.json()) == (200, oslo)
    assert (await client.get(f"{places}/oslo")).json() == oslo
    assert (await client.get(places)).json() == {"places": [oslo], "next": None}
    assert (await client.delete(f"{places}/oslo")).status_code == 204
    assert (await client.delete(f"{places}/oslo")).status_code == 404


async def test_ids_have_any_characters(client: AsyncClient, people: str):
    for written, meant in (("a%2Fb", "a/b"), ("batch", "batch"), ("%C3%A5%20%3F", "å ?"), ("%2E%2E", "..")):
        assert (await client.put(f"{people}/{written}", json={})).json()["id"] == meant
        assert (await client.get(f"{people}/{written}")).json() == {"id": meant, **NOTHING}


@pytest.mark.parametrize(
    ("about", "field"),
    [
        ({"timezone": "Europe/Osloo"}, "timezone"),
        ({"avatar_url": "ftp://x.org/a.png"}, "avatar_url"),
        ({"name": ""}, "name"),
        ({"name": 7}, "name"),
        ({"place": "x" * 257}, "place"),
        ({"nmae": "Ada"}, "nmae"),
    ],
)
async def test_a_bad_person_is_refused_with_the_field(
    client: AsyncClient, people: str, about: dict[str, Any], field: str
):
    answer = await client.put(f"{people}/ada", json=about)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


BATCHES = {
    "application/json": json.dumps([ADA, {"id": "", "name": "x"}, {"id": "bob"}, 7]),
    "application/x-ndjson": f'{json.dumps(ADA)}\n{{"id":""}}\n{{"id":"bob"}}\n{{"id"\n',
    "text/csv": "id,name,avatar_url,place\nada,Ada,https://x.org/a.png,oslo\n,x,,\nbob,,,\nbob\n",
}


@pytest.mark.parametrize("media_type", BATCHES)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_a_batch_takes_the_good_and_lists_the_bad(
    client: AsyncClient, people: str, media_type: str, coding: str
):
    body = BATCHES[media_type].encode()
    headers = {"Content-Type": media_type}
    if coding == "gzip":
        body, headers = gzip.compress(body), {**headers, "Content-Encoding": "gzip"}
    answer = await client.post(f"{people}/batch", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["accepted"] == 2
    assert [each["index"] for each in answer.json()["rejected"]] == [1, 3]
    assert (await client.get(people)).json()["people"] == [ADA, {"id": "bob", **NOTHING}]


async def test_a_batch_of_another_type_is_refused(client: AsyncClient, people: str):
    answer = await client.post(f"{people}/batch", content=b"x", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415
    assert "text/csv" in answer.json()["detail"]


async def test_csv_without_ids_is_refused(client: AsyncClient, people: str):
    answer = await client.post(
        f"{people}/batch", content=b"name\nAda\n", headers={"Content-Type": "text/csv"}
    )
    assert answer.status_code == 422
    assert "the first line must name the columns, id among them" in answer.json()["detail"]


async def test_many_lines_that_are_bad_get_an_answer_of_bounded_size(client: AsyncClient, places: str):
    body = b"{}\n" * 10_001
    answer = await client.post(
        f"{places}/batch", content=body, headers={"Content-Type": "application/x-ndjson"}
    )
    assert (len(answer.json()["rejected"]), answer.json()["rejected_total"]) == (10_000, 10_001)


async def test_reads_need_read_and_changes_need_admin(
    anybody: AsyncClient, make_key: MakeKey, people: str, places: str, project: str
):
    read = {"Authorization": f"Bearer {await make_key(project, 'read', 'submit')}"}
    admin = {"Authorization": f"Bearer {await make_key(project, 'admin')}"}
    changes = [("PUT", "/x", b"{}"), ("POST", "/batch", b'[{"id": "x"}]'), ("DELETE", "/x", b"")]
    for path in (people, places):
        for method, below, body in changes:
            for headers, allowed in (({}, 401), (read, 403), (admin, 200)):
                answer = await anybody.request(method, path + below, content=body, headers=headers)
                assert answer.status_code == (204 if allowed == 200 and method == "DELETE" else allowed)
        assert (await anybody.get(path, headers=read)).status_code == 200


async def test_every_read_of_entries_takes_people(client: AsyncClient, scored: str, people: str):
    ada = {"name": "Ada", "avatar_url": "https://x.org/a.png"}
    await client.put(f"{people}/ada", json=ada)
    await client.put(f"{people}/bob", json={"name": "Bob"})
    bob = {"name": "Bob", "avatar_url": None}
    for asked in ("entries", "entries/ada/around"):
        entries = (await client.get(f"{scored}/{asked}", params={"people": "true"})).json()["entries"]
        assert [each.get("person") for each in entries] == [ada, None, bob, None]
        plain = (await client.get(f"{scored}/{asked}")).json()["entries"]
        assert not any("person" in each for each in plain)
    standing = (await client.get(f"{scored}/entries/ada", params={"people": "true"})).json()
    assert standing["person"] == ada
    among = await client.post(
        f"{scored}/entries/among", json={"members": ["bob", "joe"]}, params={"people": "true"}
    )
    assert [each.get("person") for each in among.json()["entries"]] == [bob, None]


async def test_an_etag_changes_with_a_name(client: AsyncClient, scored: str, people: str):
    asked = {"people": "true"}
    tag = (await client.get(f"{scored}/entries", params=asked)).headers["etag"]
    seen = {"If-None-Match": tag}
    assert (await client.get(f"{scored}/entries", params=asked, headers=seen)).status_code == 304
    await client.put(f"{people}/ada", json={"name": "Ada"})
    assert (await client.get(f"{scored}/entries", params=asked, headers=seen)).status_code == 200


async def test_a_live_view_has_people_in_snapshots_and_changes(
    laurels: Laurels, client: AsyncClient, scored: str, people: str, project: str
):
    await client.put(f"{people}/ada", json={"name": "Ada"})
    board = f"{project}/arcade"
    updates = laurels.watch(board, people=True, member="ada")
    first = (await anext(updates)).value
    assert isinstance(first, Snapshot)
    assert isinstance(first.member, Standing)
    assert [bool(entry.person) for entry in first.entries] == [True, False, False, False]
    assert first.member.person
    assert first.member.person.name == "Ada"
    await client.put(f"{people}/joe", json={"name": "Joe"})
    await laurels.submit(board, "joe", 500)
    async with asyncio.timeout(20):
        change = (await anext(updates)).value
    assert isinstance(change, Change)
    assert {entry.member: entry.person.name for entry in change.entries if entry.person} == {
        "ada": "Ada",
        "joe": "Joe",
    }
    await updates.aclose()
