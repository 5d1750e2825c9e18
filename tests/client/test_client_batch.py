"""Many submissions: from any iterable, of any length, in requests of bounded size."""

from __future__ import annotations

import gzip
import tracemalloc
from typing import TYPE_CHECKING

import pytest
import zstandard

from laurels.client import AsyncClient, Client, Submission
from laurels.client import lines as lines_module
from laurels.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from loopback_proxy import Proxy

    from laurels.arguments import Compression


def ones(count: int) -> Iterator[Submission]:
    return (Submission(f"m{number}", 1) for number in range(count))


def bodies(proxy: Proxy) -> list[bytes]:
    return [request.partition(b"\r\n\r\n")[2] for request in proxy.requests]


def test_more_than_fit_into_one_request_go_in(client: Client, board: str):
    heard: list[int] = []
    result = client.submit_many(board, ones(12_000), heard.append)
    assert (result.accepted, result.rejected) == (12_000, [])
    assert heard == [5000, 10_000, 12_000]
    assert client.page(board, limit=1).total == 12_000


def test_none_at_all_is_no_error(unsteady: Client, proxy: Proxy, board: str):
    heard: list[int] = []
    assert unsteady.submit_many(board, [], heard.append).accepted == 0
    assert heard == [0]
    assert proxy.requests == []


def test_what_is_rejected_is_counted_from_the_first(
    client: Client, board: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines_module, "SUBMISSIONS", 3)
    given = [
        Submission("a", 1),
        Submission("", 1),
        Submission("b", 1, metadata={"when": object()}),
        Submission("c", 1),
        Submission("d", 1),
        InvalidInput.at("line 6", "is not a score"),
        Submission("e", "high"),
        Submission("\ud800", 1),
        Submission("f", float("nan")),
        Submission("g", 1),
    ]
    result = client.submit_many(board, given)
    assert result.accepted == 4
    assert [each.index for each in result.rejected] == [1, 2, 5, 6, 7, 8]
    details = [each.detail for each in result.rejected]
    assert details[0].startswith("member: ")
    assert "JSON" in details[1]
    assert details[2] == "line 6: is not a score"
    assert {entry.member for entry in client.entries(board)} == {"a", "c", "d", "g"}


def test_each_has_an_id_of_its_own(unsteady: Client, proxy: Proxy, board: str):
    unsteady.submit_many(board, [Submission("a", 1), Submission("b", 1, id="game-1")], id="import-7")
    (body,) = bodies(proxy)
    assert body == b'{"member":"a","score":1,"id":"import-7.0"}\n{"member":"b","score":1,"id":"game-1"}\n'


def test_the_callers_submissions_are_left_as_they_are(client: Client, board: str):
    given = Submission("a", 1)
    client.submit_many(board, [given])
    assert given.id is None


def test_a_batch_under_the_same_id_counts_once(client: Client, board: str):
    for _ in range(2):
        assert client.submit_many(board, ones(50), id="import-7").accepted == 50
    assert {entry.score for entry in client.entries(board)} == {1}


@pytest.mark.parametrize("compress", ["gzip", "zstd"])
def test_lines_travel_compressed(unsteady: Client, proxy: Proxy, board: str, compress: Compression):
    assert unsteady.submit_many(board, ones(3000), compress=compress).accepted == 3000
    (request,) = proxy.requests
    head, _, body = request.partition(b"\r\n\r\n")
    assert f"content-encoding: {compress}".encode() in head.lower()
    plain = gzip.decompress(body) if compress == "gzip" else zstandard.ZstdDecompressor().decompress(body)
    assert plain.count(b"\n") == 3000
    assert len(body) < len(plain) / 4
    assert unsteady.page(board, limit=1).total == 3000


def test_durability_is_asked_of_every_request(
    unsteady: Client, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines_module, "SUBMISSIONS", 2)
    assert unsteady.submit_many(board, ones(5), durability="fsync").accepted == 5
    assert unsteady.submit(board, "ada", 1, durability="fsync").applied
    assert unsteady.remove(board, "ada", durability="fsync")
    assert [b"laurels-durability: fsync" in each.lower() for each in proxy.requests] == [True] * 5
    with pytest.raises(InvalidInput, match="urability"):
        unsteady.submit(board, "ada", 1, durability="safe")  # pyright: ignore[reportArgumentType]  # the point


def test_long_lines_are_cut_by_size(
    unsteady: Client, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines_module, "BYTES", 10_000)
    given = [Submission(f"m{number}", 1, metadata={"x": "y" * 3000}) for number in range(9)]
    assert unsteady.submit_many(board, given).accepted == 9
    assert [body.count(b"\n") for body in bodies(proxy)] == [4, 4, 1]


def test_no_more_is_held_than_a_requests_worth(client: Client, board: str):
    metadata = {"x": "y" * 1000}
    given = (Submission(f"m{number % 100}", 1, metadata=metadata) for number in range(30_000))
    tracemalloc.start()
    try:
        assert client.submit_many(board, given).accepted == 30_000  # 33 MB of lines
        assert tracemalloc.get_traced_memory()[1] < 5 * lines_module.BYTES
    finally:
        tracemalloc.stop()


def test_what_the_iterable_raises_comes_out(client: Client, board: str):
    def broken() -> Iterator[Submission]:
        yield Submission("a", 1)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        client.submit_many(board, broken())


def test_a_board_that_is_not_there_is_an_error(client: Client):
    with pytest.raises(NotFound):
        client.submit_many("nowhere", ones(1))


async def test_an_async_iterable_goes_in(async_client: AsyncClient, board: str):
    async def scores() -> AsyncIterator[Submission]:
        for each in ones(250):
            yield each

    heard: list[int] = []
    assert (await async_client.submit_many(board, scores(), heard.append)).accepted == 250
    assert (await async_client.submit_many(board, ones(250), id="again")).accepted == 250
    assert heard == [250]
    assert {entry.score async for entry in async_client.entries(board)} == {2}
