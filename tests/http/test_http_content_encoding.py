from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from laurels.http import body, content_encoding
from laurels.http.problems import Malformed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from httpx import AsyncClient

LINES = {"Content-Type": "application/x-ndjson"}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": partial(gzip.compress, mtime=0),  # or the names of tests would tell the time
    "zstd": zstandard.ZstdCompressor(level=3, write_checksum=True).compress,
}


zlib_decompressobj = zlib.decompressobj


def lines_of(count: int) -> bytes:
    return b"".join(b'{"member":"m%d","score":%d}\n' % (index, index) for index in range(count))


@pytest.mark.parametrize("coding", ["gzip", "zstd", "GZip", "x-gzip", " zstd ", "identity", ""])
async def test_a_compressed_score_is_submitted(client: AsyncClient, board: str, coding: str):
    compress = COMPRESS.get(coding.strip().lower().removeprefix("x-"), bytes)
    sent = compress(json.dumps({"member": "ada", "score": 5}).encode())
    answer = await client.post(f"{board}/scores", content=sent, headers={"Content-Encoding": coding})
    assert (answer.status_code, answer.json()["score"]) == (200, 5)


@pytest.mark.parametrize("coding", COMPRESS)
async def test_every_body_may_be_compressed(client: AsyncClient, boards: str, coding: str):
    headers = {"Content-Encoding": coding, "Content-Type": "application/json"}
    compress = COMPRESS[coding]
    defined = await client.put(f"{boards}/small", content=compress(b'{"order":"asc"}'), headers=headers)
    assert defined.json()["definition"]["order"] == "asc"
    sent = compress(b'[{"member":"ada","score":3},{"member":"bob"}]')
    batch = await client.post(f"{boards}/small/scores/batch", content=sent, headers=headers)
    assert (batch.json()["accepted"], len(batch.json()["rejected"])) == (1, 1)
    sent = compress(b'{"members":["ada","bob"]}')
    among = await client.post(f"{boards}/small/entries/among", content=sent, headers=headers)
    assert among.json()["absent"] == ["bob"]


@pytest.mark.parametrize("coding", COMPRESS)
@pytest.mark.parametrize("size", [1, 7, 1000, 10**6])
async def test_compressed_lines_may_come_in_any_pieces_and_parts(
    client: AsyncClient, board: str, coding: str, size: int
):
    lines = lines_of(3000)
    # Two members of gzip, or two frames of zstd, are one body.
    sent = COMPRESS[coding](lines[:7000]) + COMPRESS[coding](lines[7000:])

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(sent), size):
            yield sent[start : start + size]

    answer = await client.post(
        f"{board}/scores/batch", content=pieces(), headers={**LINES, "Content-Encoding": coding}
    )
    assert answer.json() == {"accepted": 3000, "rejected": []}
    assert (await client.get(f"{board}/entries?limit=1")).json()["entries"][0]["member"] == "m2999"


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, zstd", "compress", "*", "gzip;q=1"])
@pytest.mark.parametrize("path", ["PUT ", "POST /scores", "POST /scores/batch", "POST /entries/among"])
async def test_another_encoding_is_refused_with_those_that_are_accepted(
    client: AsyncClient, board: str, path: str, coding: str
):
    method, _, rest = path.partition(" ")
    answer = await client.request(
        method, f"{board}{rest}", content=b"{}", headers={"Content-Encoding": coding}
    )
    assert answer.status_code == 415
    assert answer.headers["accept-encoding"] == "gzip, zstd, identity"
    assert answer.json()["type"] == "/problems/unsupported-encoding"
    assert answer.json()["detail"] == f"send Content-Encoding: gzip or zstd or identity, not {coding.lower()}"


def damaged(coding: str) -> Iterator[tuple[str, bytes]]:
    sent = COMPRESS[coding](b'{"member":"ada","score":5}')
    yield "nothing", b""
    for length in (1, 3, 9, len(sent) // 2, len(sent) - 1):
        yield f"the first {length} bytes", sent[:length]
    yield "another format", b'{"member":"ada","score":5}'
    yield "more behind it", sent + b"more"
    yield "one bit turned", sent[:-3] + bytes([sent[-3] ^ 1]) + sent[-2:]


@pytest.mark.parametrize(
    ("coding", "sent"), [(coding, sent) for coding in COMPRESS for _, sent in damaged(coding)]
)
async def test_a_damaged_body_is_malformed_and_changes_nothing(
    client: AsyncClient, board: str, coding: str, sent: bytes
):
    answer = await client.post(f"{board}/scores", content=sent, headers={"Content-Encoding": coding})
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed")
    assert (await client.get(f"{board}/entries")).json()["total"] == 0


@pytest.mark.parametrize("coding", COMPRESS)
async def test_a_batch_that_is_cut_short_says_how_many_counted(
    client: AsyncClient, board: str, coding: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("laurels.http.routes.scores.CHUNK_SUBMISSIONS", 100)
    sent = COMPRESS[coding](lines_of(20_000))
    answer = await client.post(
        f"{board}/scores/batch", content=sent[:-20], headers={**LINES, "Content-Encoding": coding}
    )
    assert answer.status_code == 400
    assert answer.json()["detail"] == "the compressed body ends too early"
    total = (await client.get(f"{board}/entries")).json()["total"]
    assert answer.json()["accepted"] == total > 0


@pytest.mark.parametrize("coding", COMPRESS)
@pytest.mark.parametrize("path", ["/scores", "/scores/batch"])
async def test_a_bomb_is_refused_early(client: AsyncClient, board: str, coding: str, path: str):
    blank = COMPRESS[coding](b"\n" * 2**22)
    read = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1000):  # four gigabytes
            read += 1
            yield blank

    headers = {
        "Content-Encoding": coding,
        "Content-Type": "application/json" if path == "/scores" else LINES["Content-Type"],
    }
    answer = await client.post(f"{board}{path}", content=pieces(), headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")
    # A single score is read whole before it is unpacked, and what is read has a limit of its own.
    assert read <= 2 or path == "/scores"


@pytest.mark.parametrize("coding", COMPRESS)
def test_a_decoder_gives_bounded_pieces_however_far_a_body_expands(coding: str):
    decoder = content_encoding.decoder_for(coding)
    assert decoder is not None
    sizes = [len(piece) for piece in decoder.decode(COMPRESS[coding](bytes(2**26)))]
    assert sum(sizes) == 2**26
    assert decoder.is_complete
    assert max(sizes) <= 2**22 + content_encoding.PIECE_BYTES


@pytest.mark.parametrize("coding", COMPRESS)
async def test_a_body_within_its_limit_may_not_become_larger_than_it(
    client: AsyncClient, board: str, coding: str
):
    value = {"member": "ada", "score": 5, "metadata": {"x": "y" * 100}}
    padded = json.dumps(value).encode() + b" \n\t \t" * (body.BODY_BYTES // 5)
    sent = COMPRESS[coding](padded)
    assert len(sent) < body.BODY_BYTES < len(padded)
    answer = await client.post(f"{board}/scores", content=sent, headers={"Content-Encoding": coding})
    assert answer.status_code == 413
    assert answer.json()["detail"] == "the decompressed body has more than 1048576 bytes"


def test_a_window_that_takes_too_much_memory_is_refused():
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    decoder = content_encoding.decoder_for("zstd")
    assert decoder is not None
    with pytest.raises(Malformed, match="8 MiB"):
        list(decoder.decode(compressor.compress(b"x" * 100) + compressor.flush()))


def test_gzip_gives_all_that_it_holds_back_for_a_full_piece():
    content = zlib.compress(bytes(content_encoding.PIECE_BYTES * 3 + 1), wbits=31)
    decoder = content_encoding.Gzip()
    assert sum(map(len, decoder.decode(content))) == content_encoding.PIECE_BYTES * 3 + 1
    assert decoder.is_complete


class Counting:
    """Decompresses as zlib does, and counts the bytes that it is handed."""

    handed = 0

    def __init__(self, wbits: int) -> None:
        self._real = zlib_decompressobj(wbits)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # of zlib
        return getattr(self._real, name)

    def decompress(self, data: bytes, most: int) -> bytes:
        type(self).handed += len(data)
        return self._real.decompress(data, most)


@pytest.mark.parametrize("content", [b"", b"1", b"\n" * 5000], ids=["empty", "small", "bomb"])
def test_the_work_for_many_members_of_gzip_is_in_proportion_to_their_length(
    content: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(zlib, "decompressobj", Counting)
    member = gzip.compress(content, mtime=0)
    for count in (1000, 9000):
        Counting.handed = 0
        sent = member * count
        assert b"".join(content_encoding.Gzip().decode(sent)) == content * count
        assert Counting.handed <= 40 * len(sent)


EMPTY_FRAMES = {
    "gzip": gzip.compress(b"", mtime=0),
    "zstd": zstandard.ZstdCompressor().compress(b""),
    "zstd, skippable": b"\x50\x2a\x4d\x18" + bytes(4),
}


@pytest.mark.parametrize("kind", EMPTY_FRAMES)
async def test_a_body_of_countless_members_or_frames_is_refused(client: AsyncClient, board: str, kind: str):
    sent = EMPTY_FRAMES[kind] * (2**20 // len(EMPTY_FRAMES[kind]))
    headers = {"Content-Encoding": kind[:4], "Content-Type": "application/json"}
    for path in ("/scores", "/scores/batch"):
        answer = await client.post(f"{board}{path}", content=sent, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed")
        assert "more than 10000 members or frames" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/scores", "/scores/batch", "/entries/among"])
async def test_a_body_that_stalls_is_given_up(
    client: AsyncClient, board: str, path: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(body, "STALL_SECONDS", 0.01)

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"member":'
        await asyncio.Event().wait()

    answer = await client.post(
        f"{board}{path}", content=pieces(), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["type"]) == (408, "/problems/stalled")
    assert answer.json()["detail"] == "no more of the body arrived within 0.01 seconds"
    assert answer.headers["connection"] == "close"
    assert (await client.get(f"{board}/entries")).json()["total"] == 0
