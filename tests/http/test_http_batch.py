from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from laurels.http import body
from laurels.http.routes import scores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from httpx import AsyncClient

    from laurels.engine import Laurels

LINES = {"Content-Type": "application/x-ndjson"}


async def test_an_array_of_scores_is_submitted(client: AsyncClient, board: str):
    submissions = [{"member": "ada", "score": 3}, {"member": "bob", "score": 2}]
    answer = await client.post(f"{board}/scores/batch", json=submissions)
    assert answer.status_code == 200
    assert answer.json() == {"accepted": 2, "rejected": []}
    page = (await client.get(f"{board}/entries")).json()
    assert [(entry["member"], entry["score"]) for entry in page["entries"]] == [("ada", 3), ("bob", 2)]


async def test_a_bad_element_harms_no_other(client: AsyncClient, board: str):
    submissions = [
        {"member": "ada", "score": 3},
        {"member": "bob", "score": "high"},
        7,
        {"member": "eve", "score": 1, "level": 9},
        {"member": "joe", "score": 2},
    ]
    answer = await client.post(f"{board}/scores/batch", json=submissions)
    assert answer.json() == {
        "accepted": 2,
        "rejected": [
            {"index": 1, "detail": "score: must be a number, not a string"},
            {"index": 2, "detail": "body: must be an object, not a whole number"},
            {
                "index": 3,
                "detail": "level: there is no such field; it has: "
                "member, score, at, groups, id, op, metadata",
            },
        ],
    }


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"{}", 422), (b'[{"member":"ada","score":1}', 400), (b"", 400), (b"[1,]", 400), (b"[" * 100_000, 400)],
)
async def test_what_is_not_an_array_is_refused_as_a_whole(
    client: AsyncClient, board: str, sent: bytes, status: int
):
    answer = await client.post(
        f"{board}/scores/batch", content=sent, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == status
    assert (await client.get(f"{board}/entries")).json()["total"] == 0


async def test_an_empty_batch_is_no_error(client: AsyncClient, board: str):
    assert (await client.post(f"{board}/scores/batch", json=[])).json() == {"accepted": 0, "rejected": []}
    answer = await client.post(f"{board}/scores/batch", content=b"", headers=LINES)
    assert answer.json() == {"accepted": 0, "rejected": []}


async def test_lines_are_submitted_and_bad_ones_named_by_their_index(client: AsyncClient, board: str):
    lines = (
        b'{"member":"ada","score":3}\n'
        b"not json\n"
        b"\n"
        b'{"member":"bob","score":NaN}\n'
        b'{"member":"\xff","score":1}\r\n'
        b'{"member":"eve","score":2}\r\n'
        b'{"member":"joe"}\n'
        b'{"member":"zoe","score":1,"groups":{"city":"Rio"}}\n'
        b'{"member":"last","score":1}'
    )
    answer = await client.post(f"{board}/scores/batch", content=lines, headers=LINES)
    assert answer.status_code == 200
    found = answer.json()
    assert found["accepted"] == 3
    assert [rejected["index"] for rejected in found["rejected"]] == [1, 3, 4, 6, 7]
    assert [rejected["detail"].split(":")[0] for rejected in found["rejected"]] == [
        "JSON is malformed",
        "JSON is malformed",
        "not UTF-8",
        "score",
        "groups.city",
    ]
    page = (await client.get(f"{board}/entries")).json()
    assert [entry["member"] for entry in page["entries"]] == ["ada", "eve", "last"]


async def test_lines_may_come_in_any_pieces(client: AsyncClient, board: str):
    sent = b"".join(b'{"member":"m%d","score":%d}\n' % (index, index) for index in range(300))

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(sent), 7):
            yield sent[start : start + 7]

    answer = await client.post(f"{board}/scores/batch", content=pieces(), headers=LINES)
    assert answer.json() == {"accepted": 300, "rejected": []}
    assert (await client.get(f"{board}/entries?limit=1")).json()["entries"][0]["member"] == "m299"


async def test_a_batch_is_sent_on_in_chunks(client: AsyncClient, board: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scores, "CHUNK_SUBMISSIONS", 3)
    lines = [json.dumps({"member": f"m{index}", "score": index % 4 or "none"}) for index in range(10)]
    answer = await client.post(f"{board}/scores/batch", content="\n".join(lines), headers=LINES)
    detail = "score: must be a number, not a string"
    assert answer.json() == {
        "accepted": 7,
        "rejected": [{"index": index, "detail": detail} for index in (0, 4, 8)],
    }


async def test_a_line_that_is_too_long_is_rejected_and_not_kept(client: AsyncClient, board: str):
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"member":"ada","score":1}\n{"member":"'
        for _ in range(20):
            yield b"x" * 100_000
        yield b'"}\n{"member":"bob","score":2}\n'

    answer = await client.post(f"{board}/scores/batch", content=pieces(), headers=LINES)
    assert answer.json() == {
        "accepted": 2,
        "rejected": [{"index": 1, "detail": "a line has at most 1048576 bytes"}],
    }


async def test_only_so_many_rejections_are_listed(
    client: AsyncClient, board: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scores, "MOST_LISTED", 2)
    answer = await client.post(f"{board}/scores/batch", content=b"x\n" * 5, headers=LINES)
    found = answer.json()
    assert [rejected["index"] for rejected in found["rejected"]] == [0, 1]
    assert (found["accepted"], found["rejected_total"]) == (0, 5)


@pytest.mark.parametrize("media_type", ["application/json", "application/x-ndjson"])
async def test_a_batch_beyond_64_mib_is_too_large(client: AsyncClient, board: str, media_type: str):
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(65):
            yield b" " * 2**20

    answer = await client.post(
        f"{board}/scores/batch", content=pieces(), headers={"Content-Type": media_type}
    )
    assert answer.status_code == 413
    assert answer.json()["detail"] == f"the body has more than {body.BATCH_BYTES} bytes"


async def test_a_batch_may_be_larger_than_another_body(client: AsyncClient, board: str):
    submissions = [
        {"member": f"m{index}", "score": 1, "metadata": {"x": "y" * 1000}} for index in range(1500)
    ]
    assert len(json.dumps(submissions)) > body.BODY_BYTES
    answer = await client.post(f"{board}/scores/batch", json=submissions)
    assert answer.json() == {"accepted": 1500, "rejected": []}


async def test_a_repeated_batch_with_an_idempotency_key_counts_once(client: AsyncClient, boards: str):
    await client.put(f"{boards}/sum", json={"aggregate": "sum"})
    submissions = [{"member": "ada", "score": 1}, {"member": "ada", "score": 2, "id": "own"}]
    for _ in range(2):
        answer = await client.post(
            f"{boards}/sum/scores/batch", json=submissions, headers={"Idempotency-Key": "b"}
        )
        assert answer.json() == {"accepted": 2, "rejected": []}
    assert (await client.get(f"{boards}/sum/entries/ada")).json()["score"] == 3


async def test_a_batch_for_a_board_that_is_not_there_is_refused_before_it_is_read(
    client: AsyncClient, boards: str
):
    async def pieces() -> AsyncIterator[bytes]:
        yield b""
        pytest.fail("the body was read")

    answer = await client.post(f"{boards}/nothing/scores/batch", content=pieces(), headers=LINES)
    assert answer.status_code == 404


async def test_a_stream_that_valkey_has_no_memory_for_says_how_many_counted(
    client: AsyncClient, laurels: Laurels, board: str
):
    async def total() -> int:
        return (await client.get(f"{board}/entries")).json()["total"]

    async def lines() -> AsyncIterator[bytes]:
        yield b"".join(b'{"member":"m%d","score":1,"id":"i%d"}\n' % (each, each) for each in range(2_000))
        while await total() < scores.CHUNK_SUBMISSIONS:
            pass
        await laurels.valkey.command("CONFIG", "SET", "maxmemory", 1)
        yield b"".join(b'{"member":"n%d","score":1,"id":"j%d"}\n' % (each, each) for each in range(2_000))

    try:
        answer = await client.post(f"{board}/scores/batch", content=lines(), headers=LINES)
    finally:
        await laurels.valkey.command("CONFIG", "SET", "maxmemory", 0)
    assert answer.status_code == 503
    assert answer.json()["type"] == "/problems/outcome-unknown"
    assert answer.json()["accepted"] == await total() == scores.CHUNK_SUBMISSIONS
