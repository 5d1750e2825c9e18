"""What operators see: figures that count, findings that name what is wrong, letters that can be mended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from laurels.activity import valkey_keys
from laurels.boards.keys import BoardRef
from laurels.history import operator_status
from laurels.history.operator_status import CAMPUS_LETTERS, OperatorStatus
from laurels.valkey import functions, streams
from laurels.valkey.names import DEAD_LETTERS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from httpx import AsyncClient

    from laurels.engine import Laurels
    from laurels.journal.store.rows import Stream


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_status, "FRESH_SECONDS", 0.0)


async def figures(client: AsyncClient, project: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """All of them, and those of the test's board."""
    answer = await client.get("/v1/overview")
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return told, next(each for each in told["boards"] if each["project"] == project)


async def test_the_overview_counts_what_comes_in_and_what_is_archived(
    client: AsyncClient, board: str, laurels: Laurels, project: str
):
    await laurels.drain.finish()  # or boards of other tests, of which more waits, might fill the list
    scores = f"{board}/scores"
    for member in ("ada", "bob", "eve", "joe"):
        await client.post(scores, json={"member": member, "score": 1})
    before, own = await figures(client, project)
    assert (own["board"], own["recorded"], own["waiting"]) == ("arcade", 4, 4)
    assert before["journal"]["waiting"] >= 4
    assert own["watermark"] < before["at"]
    await laurels.archived(f"{project}/arcade")
    await client.post(scores, json={"member": "zoe", "score": 1})
    after, own = await figures(client, project)
    assert (own["recorded"], own["waiting"]) == (5, 1)
    assert after["journal"]["recorded"] > before["journal"]["recorded"]
    assert after["valkey"]["commands"] > before["valkey"]["commands"]
    assert after["valkey"]["memory_bytes"] > 0
    assert after["valkey"]["version"].startswith("9.")
    assert after["postgres"]["bytes"] > 0


async def test_figures_are_the_same_for_a_moment(
    client: AsyncClient, laurels: Laurels, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(operator_status, "FRESH_SECONDS", 3600.0)
    own = OperatorStatus(laurels.valkey, laurels.postgres, laurels.store, laurels.drain.journal_streams)
    assert await own.figures() is await own.figures()


async def test_the_doctor_tells_what_is_wrong(client: AsyncClient, laurels: Laurels):
    async def findings() -> dict[str, dict[str, str]]:
        answer = await client.get("/v1/doctor")
        assert answer.status_code == 200, answer.text
        return {each["name"]: each for each in answer.json()["findings"]}

    well = await findings()
    assert {"Python", "Valkey", "PostgreSQL", "memory", "schema", "journal"} <= well.keys()
    assert well["memory"]["status"] == "ok"
    await laurels.valkey.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        found = (await findings())["memory"]
    finally:
        await laurels.valkey.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert found["status"] == "wrong"
    assert "noeviction" in found["fix"]


async def bury(laurels: Laurels, stream: Stream, name: str, fields: tuple[str | bytes, ...]) -> None:
    """Adds a dead letter, as a drain does."""
    await functions.bury(laurels.valkey, stream.dead_letters, name, fields)
    await functions.announce(laurels.valkey, DEAD_LETTERS, [stream.dead_letters])


@pytest.mark.usefixtures("scored")
class TestDeadLetters:
    @pytest.fixture
    async def stream(self, laurels: Laurels, project: str) -> AsyncGenerator[Stream]:
        """The journal of a board, all archived; what is buried goes with the test."""
        await laurels.archived(f"{project}/arcade")
        (stream,) = await laurels.drain.journal_streams.of_board(BoardRef(project, "arcade"))
        yield stream
        await laurels.valkey.command("DEL", stream.dead_letters)

    async def letters(self, client: AsyncClient, board: str | None) -> list[dict[str, Any]]:
        answer = await client.get("/v1/dead-letters?limit=1000")
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert told["total"] == len(told["letters"])
        return [each for each in told["letters"] if each["board"] == board]

    async def test_are_listed_with_why(
        self, client: AsyncClient, laurels: Laurels, stream: Stream, project: str
    ):
        await bury(laurels, stream, "7-1", ("body", b"\xc1\x00", "why", "it is torn"))
        (letter,) = await self.letters(client, f"{project}/arcade")
        assert letter == {
            "id": f"{stream.board_id}.0.7-1",
            "source": "journal",
            "board": f"{project}/arcade",
            "recorded_at": "1970-01-01T00:00:00.007000Z",
            "why": "it is torn",
            "summary": "2 bytes: c1 00",
        }

    async def test_that_are_tried_again_get_into_the_archive(
        self, client: AsyncClient, laurels: Laurels, scored: str, stream: Stream, project: str
    ):
        await client.post(f"{scored}/scores", json={"member": "zoe", "score": 9})
        ((_, recorded),) = await laurels.valkey.run(streams.entries(stream.key))
        body = recorded[b"body"]
        await bury(laurels, stream, "8-0", ("body", body, "why", "too new"))
        await laurels.valkey.command("XTRIM", stream.key, "MAXLEN", 0)
        (letter,) = await self.letters(client, f"{project}/arcade")
        assert letter["summary"] == "submit of zoe"
        retried = await client.post(f"/v1/dead-letters/{letter['id']}/retry")
        assert retried.status_code == 204
        assert await self.letters(client, f"{project}/arcade") == []
        ((_, fields),) = await laurels.valkey.run(streams.entries(stream.key))
        assert fields == {b"body": body}
        await laurels.archived(f"{project}/arcade")
        assert await laurels.valkey.run(streams.entries(stream.dead_letters)) == []
        history = await laurels.verify(f"{project}/arcade")
        assert history.differences == []
        again = await client.post(f"/v1/dead-letters/{letter['id']}/retry")
        assert again.status_code == 404

    async def test_that_are_discarded_are_gone(
        self, client: AsyncClient, laurels: Laurels, stream: Stream, project: str
    ):
        await bury(laurels, stream, "9-0", ("body", b"\xc1", "why", "torn"))
        (letter,) = await self.letters(client, f"{project}/arcade")
        path = f"/v1/dead-letters/{letter['id']}"
        assert (await client.delete(path)).status_code == 204
        assert await self.letters(client, f"{project}/arcade") == []
        assert (await client.delete(path)).status_code == 404

    async def test_of_a_campus_are_listed_and_discarded_and_sent_again_where_they_came_from(
        self, client: AsyncClient, laurels: Laurels
    ):
        assert CAMPUS_LETTERS == valkey_keys.DEAD
        name = (
            await laurels.valkey.command("XADD", CAMPUS_LETTERS, "*", "stream", "x:posts", "reason", "no id")
        ).decode()
        letter = next(each for each in await self.letters(client, None) if each["id"].endswith(name))
        assert (letter["source"], letter["why"], letter["summary"]) == ("campus", "no id", "stream x:posts")
        assert (await client.post(f"/v1/dead-letters/{letter['id']}/retry")).status_code == 404
        assert (await client.delete(f"/v1/dead-letters/{letter['id']}")).status_code == 204

    @pytest.mark.parametrize("letter", ["x", "1.0.7-1", "campus.x", "campus.-", "campus.1-1x", "campus.²-1"])
    async def test_that_are_not_there_are_not_found(self, client: AsyncClient, letter: str):
        assert (await client.delete(f"/v1/dead-letters/{letter}")).status_code == 404
        assert (await client.post(f"/v1/dead-letters/{letter}/retry")).status_code == 404
