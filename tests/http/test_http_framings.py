"""The fast way and the ordinary one give the same answers, however a request is framed and split.

Nothing is smuggled: a canary behind each request is answered as itself, or the connection closes.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from framings import END, KINDS, Corpus, Framing
from ways import Way, known, listening, serving, without_fast_submit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fastapi import FastAPI
    from httpx import AsyncClient

KIND_OF = {framing.name: kind for kind in KINDS for framing in Corpus("", "", "").of_kind(kind)}
# What no two answers have in common.
OWN = ("id", "request_id")
DEADLINE_SECONDS = 60
# Longer ones are sent in larger pieces.
SHORT_BYTES = 2000


@dataclass(frozen=True)
class Answer:
    status: int
    id: str
    closes: bool
    told: dict[str, Any]


@dataclass(frozen=True)
class Ways:
    fast: Way
    ordinary: int
    """The port of the server without a fast way."""


@pytest.fixture(scope="module")
async def servers(app: FastAPI, admin_key: str) -> AsyncGenerator[Ways]:
    async with serving(app, admin_key) as fast, listening(without_fast_submit(app)) as (ordinary, _):
        yield Ways(fast, ordinary)


@pytest.fixture
async def ways(servers: Ways, client: AsyncClient, boards: str) -> Ways:
    for name in ("fast", "ordinary"):
        assert (await client.put(f"{boards}/{name}", json={})).status_code == 201
        servers.fast.taken.clear()
        await known(servers.fast, f"{boards}/{name}")
    return servers


def whole(sent: bytes, canary: bytes) -> list[bytes]:
    return [sent + canary]


def head_and_body(sent: bytes, canary: bytes) -> list[bytes]:
    head, end, body = sent.partition(END)
    return [head + end, body, canary]


def in_pieces(sent: bytes, canary: bytes, length: int = 97) -> list[bytes]:
    both = sent + canary
    length = length if len(sent) <= SHORT_BYTES else 1009
    return [both[start : start + length] for start in range(0, len(both), length)]


def byte_by_byte(sent: bytes, canary: bytes) -> list[bytes]:
    return in_pieces(sent, canary, 1)


def behind_another(sent: bytes, canary: bytes) -> list[bytes]:
    """Like whole, on a connection that has seen a request with the plain one's head."""
    return whole(sent, canary)


SPLITS = {"a": behind_another, "w": whole, "h": head_and_body, "p": in_pieces, "b": byte_by_byte}


async def exchange(
    port: int, pieces: list[bytes], framing: Framing, before: bytes | None = None
) -> list[Answer]:
    """Everything that is answered until the server closes; where it waits for more, until we do."""
    reading, writing = await asyncio.open_connection("127.0.0.1", port)
    try:
        if before is not None:
            writing.write(before)
            assert (await next_answer(reading)).status == 200
        for piece in pieces:
            if piece:
                writing.write(piece)
                await asyncio.sleep(0)  # so that it goes by itself
        if framing.after == "waits":
            answers = [await next_answer(reading) for _ in framing.statuses]
            writing.write_eof()
        else:
            answers = []
        while not reading.at_eof():
            try:
                answers.append(await next_answer(reading))
            except asyncio.IncompleteReadError as error:
                if error.partial:
                    raise
        return answers
    finally:
        writing.close()


async def next_answer(reading: asyncio.StreamReader) -> Answer:
    head = (await reading.readuntil(END)).decode("latin-1").lower()
    line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    named = dict(each.split(": ", 1) for each in lines)
    content = await reading.readexactly(int(named.get("content-length", "0")))
    told: dict[str, Any] = json.loads(content) if content else {}
    kept = {name: value for name, value in told.items() if name not in OWN}
    request_id = named.get("x-request-id", "")
    return Answer(
        int(line.split(" ")[1]),
        request_id if request_id in {"first", "second", "smuggled", "canary"} else "",
        named.get("connection") == "close",
        kept,
    )


def named(name: str, corpus: Corpus) -> Framing:
    return next(framing for framing in corpus.of_kind(KIND_OF[name]) if framing.name == name)


async def members_of(client: AsyncClient, board: str) -> set[str]:
    page = (await client.get(f"{board}/entries", params={"limit": 1000})).json()
    return {entry["member"] for entry in page["entries"]} - {"first"}


def test_there_are_hundreds_of_framings():
    corpus = Corpus("b", "k", "t")
    all_of_them = [framing for kind in KINDS for framing in corpus.of_kind(kind)]
    assert len(all_of_them) == len(KIND_OF)
    assert len({framing.sent for framing in all_of_them}) >= 200


@pytest.mark.parametrize("framing_name", KIND_OF)
async def test_both_ways_answer_alike_and_nothing_is_smuggled(
    framing_name: str, ways: Ways, client: AsyncClient, boards: str, admin_key: str
):
    counted: set[str] = set()
    told: dict[str, list[list[Answer]]] = {}
    for name, port in (("fast", ways.fast.port), ("ordinary", ways.ordinary)):
        told[name] = []
        for tag, split in SPLITS.items():
            corpus = Corpus(f"{boards}/{name}", admin_key, tag)
            framing = named(framing_name, corpus)
            async with asyncio.timeout(DEADLINE_SECONDS):
                before = corpus.before() if split is behind_another else None
                answers = await exchange(port, split(framing.sent, corpus.canary()), framing, before)
            statuses = tuple(answer.status for answer in answers)
            goes_on = framing.after == "goes on"
            assert statuses == framing.statuses + (200,) * goes_on, (name, tag, answers)
            assert [answer.id for answer in answers].count("canary") == goes_on, (name, tag, answers)
            assert "smuggled" not in {answer.id for answer in answers}
            assert all(answer.status < 400 or answer.told["type"] for answer in answers)
            if framing.after == "closes" and statuses:
                assert answers[-1].closes, (name, tag, answers)
            told[name].append([_without(answer, name, boards) for answer in answers])
            if before is not None:
                counted.add(corpus.member("prior"))
            counted |= {*framing.counted, *((corpus.member("canary"),) if goes_on else ())}
        assert await members_of(client, f"{boards}/{name}") == counted, name
    assert told["fast"] == told["ordinary"]


def _without(answer: Answer, name: str, boards: str) -> Answer:
    """Without what differs because the boards do."""
    told = json.dumps(answer.told).replace(f"{boards}/{name}", "").replace(f'"{name}"', '""')
    return replace(answer, told=json.loads(told))


async def test_plain_framings_take_the_express_way(ways: Ways, boards: str, admin_key: str):
    corpus = Corpus(f"{boards}/fast", admin_key, "w")
    plain = ("plain", "chunked", "upgrade: h2c", "absolute form", "host with a port", "trailer")
    for name in plain:
        framing = named(name, corpus)
        ways.fast.taken.clear()
        await exchange(ways.fast.port, [framing.sent, corpus.canary()], framing)
        assert ways.fast.taken[0], name
