"""Bodies that could cost far more than they are long."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.errors import InvalidInput
from laurels.http import body
from laurels.http.problems import Malformed
from laurels.http.routes.scores import LONGEST_DETAIL, PAUSE_SUBMISSIONS

if TYPE_CHECKING:
    from httpx import AsyncClient

JSON = {"Content-Type": "application/json"}
MIB = 2**20


def test_the_elements_of_an_array_are_not_held_at_once():
    elements = 2**16
    whole = b"[" + b"0," * (elements - 1) + b"0]"
    tracemalloc.start()
    try:
        count = sum(1 for _ in body.elements(whole))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == elements
    assert most < 3 * len(whole)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.lists(anything), st.sampled_from([None, 0, 1]), st.booleans())
def test_the_elements_are_those_of_the_array(values: list[Any], indent: int | None, ascii_only: object):
    values = [value for value in values if is_utf8(value)]
    whole = json.dumps(values, indent=indent, ensure_ascii=bool(ascii_only)).encode()
    found = list(body.elements(b" \n" + whole + b"\t"))
    assert [json.loads(each) for each in found] == values
    assert all(each == each.strip() for each in found)


def is_utf8(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("whole", "error"),
    [
        (b"", Malformed), (b"  ", Malformed), (b"[", Malformed), (b"[1,]", Malformed), (b"[1 2]", Malformed),
        (b"[1] 2", Malformed), (b"[NaN]", Malformed), (b'["\\x"]', Malformed), (b"[" * 10_000, Malformed),
        (b"{}", InvalidInput), (b"1", InvalidInput), (b'"["', InvalidInput), (b"null", InvalidInput),
    ],
)  # fmt: skip
def test_what_is_no_array_is_refused_before_its_first_element(whole: bytes, error: type[Exception]):
    with pytest.raises(error):
        next(body.elements(whole))


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
async def test_a_batch_that_is_all_refused_lets_others_go_on(client: AsyncClient, board: str, kind: str):
    count = 20_000
    is_lines = kind == "application/x-ndjson"
    sent = b"0\n" * count if is_lines else b"[" + b"0," * (count - 1) + b"0]"
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(take_turns())
    answer = await client.post(f"{board}/scores/batch", content=sent, headers={"Content-Type": kind})
    others.cancel()
    assert answer.json()["rejected_total"] == count
    assert turns > count // PAUSE_SUBMISSIONS


async def test_a_refused_line_is_not_repeated_at_length(client: AsyncClient, board: str):
    sent = [{"member": "ada", "score": 1, "x" * 100_000: 1}]
    answer = await client.post(f"{board}/scores/batch", json=sent)
    assert len(answer.json()["rejected"][0]["detail"]) == LONGEST_DETAIL


async def test_a_query_or_a_form_of_very_many_parameters_is_refused(
    client: AsyncClient, board: str, project: str
):
    pairs = "&".join(f"a{number}=1" for number in range(101))
    query = await client.get(f"{board}/entries?{pairs}")
    form = await client.post(
        f"/leaders/{project}/highscore/d/ada",
        content=pairs,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    for answer in (query, form):
        assert answer.status_code == 422
        assert "more than 100 parameters" in answer.json()["detail"]


MANY_VALUES: dict[str, dict[str, Any]] = {
    "windows": {"windows": [1] * 100_000},
    "unknown fields": {f"field{number}": 1 for number in range(20_000)},
    "groups": {"groups": [[]] * 100_000},
    "keys": {"keys": {f"w{number}": "x" for number in range(20_000)}},
}


@pytest.mark.parametrize("definition", MANY_VALUES.values(), ids=MANY_VALUES)
@pytest.mark.parametrize("path", ["", "/preview"])
async def test_a_definition_of_very_many_values_is_refused_as_a_whole(
    client: AsyncClient, boards: str, definition: dict[str, Any], path: str
):
    method = "POST" if path else "PUT"
    answer = await client.request(method, f"{boards}/new{path}", json=definition)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "definition", "detail": "has more than 5000 values"}]


LONG = "1" * (MIB - 200)


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        ('{"member":"ada","score":' + LONG + "}", {422}),
        ('{"member":"ada","score":"' + LONG + '"}', {422}),
        ('{"member":"ada","score":0.' + LONG + "}", {200}),
        ('{"member":"ada","score":1e' + LONG + "}", {422}),
        ('{"member":"ada","score":1,"metadata":{"x":' + LONG + "}}", {422}),
        ('{"member":"ada","score":1,"metadata":{"x":' + "[" * (MIB - 200), {400}),
        ('{"member":"ada","score":1,"metadata":' + '{"a":' * (MIB // 6), {400}),
        ('{"member":"ada",' + '"score":1,' * (MIB // 12) + '"score":2}', {200}),
        ('{"member":"ada","score":1,"at":"' + LONG + '"}', {422}),
        ('{"member":"ada","score":1,"at":"2025-10-24T12:00:00.' + LONG + 'Z"}', {200, 422}),
        ('{"member":"' + LONG + '","score":1}', {422}),
        ('{"member":"ada","score":1,"groups":{' + ",".join(f'"{n}":""' for n in range(80_000)) + "}}", {422}),
    ],
    ids=[
        "whole score",
        "text",
        "fraction",
        "exponent",
        "whole number in metadata",
        "deep arrays",
        "deep objects",
        "one field again and again",
        "at",
        "fraction of a second",
        "member",
        "groups",
    ],
)
async def test_a_body_of_one_huge_or_deep_value_is_judged(
    client: AsyncClient, int64_board: str, board: str, sent: str, statuses: set[int]
):
    for path in (board, int64_board):
        answer = await client.post(f"{path}/scores", content=sent, headers=JSON)
        allowed = statuses | ({422} if path == int64_board else set[int]())
        assert answer.status_code in allowed, answer.text[:200]
