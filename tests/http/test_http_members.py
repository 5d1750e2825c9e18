"""Members are any characters; the path that names one must never lead to another."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from httpx import AsyncClient

ODD = [
    "a/b",
    "x/around",
    "around",
    "among",
    "/",
    "//",
    "/around",
    "a/around/around",
    "100%",
    "%2F",
    "a%2Fb",
    "a b+c",
    "a?b#c&d=e",
    "line\nbreak\ttab\0nul",
    "İstanbul 東京 🏆",
    "..",
    ".",
    "a/../b",
    ";,:@&=",
    '"quoted" \\ back',
    "x" * 256,
]


def encoded(member: str) -> str:
    # Dots too: clients fold a segment of only dots into the one before it.
    return quote(member, safe="").replace(".", "%2E")


@pytest.mark.parametrize("member", ODD)
async def test_a_member_of_any_characters_comes_back_as_it_was(client: AsyncClient, board: str, member: str):
    decoys = [{"member": decoy, "score": 1} for decoy in ("x", "a", "a/around", "other") if decoy != member]
    await client.post(f"{board}/scores/batch", json=[*decoys, {"member": member, "score": 7}])
    path = f"{board}/entries/{encoded(member)}"
    standing = await client.get(path)
    assert (standing.json()["member"], standing.json()["score"]) == (member, 7)
    around = (await client.get(f"{path}/around?above=0&below=0")).json()
    assert [entry["member"] for entry in around["entries"]] == [member]
    among = (await client.post(f"{board}/entries/among", json={"members": [member]})).json()
    assert among["entries"][0]["member"] == member
    assert (await client.delete(path)).status_code == 204
    left = (await client.get(f"{board}/entries")).json()["entries"]
    assert {entry["member"] for entry in left} == {decoy["member"] for decoy in decoys}


async def test_slashes_that_were_not_encoded_are_understood(client: AsyncClient, board: str):
    await client.post(f"{board}/scores", json={"member": "team/ada", "score": 7})
    assert (await client.get(f"{board}/entries/team/ada")).json()["member"] == "team/ada"
    around = (await client.get(f"{board}/entries/team/ada/around")).json()
    assert [entry["member"] for entry in around["entries"]] == ["team/ada"]


async def test_a_member_in_a_path_that_is_not_utf8_is_refused(client: AsyncClient, board: str):
    answer = await client.get(f"{board}/entries/%FF")
    assert answer.status_code == 422
    assert answer.json()["detail"] == "the path is not percent-encoded UTF-8"


async def test_a_member_that_is_too_long_is_refused(client: AsyncClient, board: str):
    answer = await client.get(f"{board}/entries/{'x' * 257}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "member"


@pytest.mark.parametrize("value", ["São Paulo", "a,b", "a=b", "100%", "a:b|c", "日本"])
async def test_a_group_of_any_characters_can_be_asked_for(client: AsyncClient, board: str, value: str):
    await client.post(f"{board}/scores", json={"member": "ada", "score": 1, "groups": {"country": value}})
    page = await client.get(f"{board}/entries", params={"group": f"country={quote(value)}"})
    assert page.json()["total"] == 1
