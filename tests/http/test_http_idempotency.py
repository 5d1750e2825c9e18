from __future__ import annotations

import asyncio
import gzip
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from laurels.boards.keys import BoardRef
from laurels.engine import Laurels
from laurels.errors import InFlight, OutcomeUnknown
from laurels.http.app import create_app
from laurels.http.routes import scores
from laurels.moments import SECOND
from laurels.scores import idempotency
from laurels.valkey import functions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from httpx import AsyncClient

    from laurels.clock import FixedClock
    from laurels.embedded import Endpoints

LINES = {"Content-Type": "application/x-ndjson"}
KEY = {"Idempotency-Key": "k-1"}
ADA = {"member": "ada", "score": 5}


@pytest.fixture(params=[1, 2])
async def shards(request: pytest.FixtureRequest) -> int:
    """A single score is one call on a board with one shard; with several, its key is claimed first."""
    return request.param


@pytest.fixture
async def summed(client: AsyncClient, boards: str, shards: int) -> str:
    """A board on which whatever counts twice is seen."""
    await client.put(f"{boards}/sum", json={"aggregate": "sum", "shards": shards})
    return f"{boards}/sum"


@pytest.fixture
async def elsewhere(
    endpoints: Endpoints, clock: FixedClock, admin_key: str
) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of another process's app: another engine on the same stores."""
    async with Laurels(
        valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url, clock=clock
    ) as laurels:
        transport = httpx.ASGITransport(create_app(laurels), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {admin_key}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://other.test", headers=headers
        ) as client:
            yield client


async def score_of(client: AsyncClient, board: str, member: str = "ada") -> Any:  # noqa: ANN401  # JSON
    answer = await client.get(f"{board}/entries/{member}")
    return answer.json()["score"] if answer.status_code == 200 else None


class Held:
    """Lines of a batch that is under way until it is let go."""

    def __init__(self, *lines: bytes) -> None:
        self._lines = lines
        self.started, self.may_end = asyncio.Event(), asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            yield line
        self.started.set()
        await self.may_end.wait()


async def test_a_repeated_score_gets_the_first_answer(
    client: AsyncClient, elsewhere: AsyncClient, summed: str
):
    first = await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    assert first.json()["applied"] is True
    assert "idempotency-replayed" not in first.headers
    await client.post(f"{summed}/scores", json=ADA)
    for sender in (client, elsewhere):
        again = await sender.post(f"{summed}/scores", json=ADA, headers=KEY)
        assert again.headers["idempotency-replayed"] == "true"
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["content-type"] == first.headers["content-type"]
    assert await score_of(client, summed) == 10


@pytest.mark.parametrize("path", ["/scores", "/scores/batch"])
async def test_another_body_under_the_same_key_is_refused_and_changes_nothing(
    client: AsyncClient, elsewhere: AsyncClient, summed: str, path: str
):
    def sent(score: int) -> Any:  # noqa: ANN401  # JSON
        return {**ADA, "score": score} if path == "/scores" else [{**ADA, "score": score}]

    assert (await client.post(f"{summed}{path}", json=sent(5), headers=KEY)).status_code == 200
    for sender in (client, elsewhere):
        other = await sender.post(f"{summed}{path}", json=sent(6), headers=KEY)
        assert (other.status_code, other.json()["type"]) == (422, "/problems/idempotency-key-reused")
        assert other.json()["errors"][0]["field"] == "Idempotency-Key"
    assert await score_of(client, summed) == 5


async def test_a_key_belongs_to_one_route_and_one_board(client: AsyncClient, summed: str, boards: str):
    await client.put(f"{boards}/other", json={"aggregate": "sum"})
    sent = b'[{"member":"ada","score":5}]'
    assert (await client.post(f"{summed}/scores/batch", content=sent, headers=KEY)).status_code == 200
    assert (await client.post(f"{summed}/scores", content=sent, headers=KEY)).status_code == 422
    assert (await client.post(f"{boards}/other/scores/batch", content=sent, headers=KEY)).status_code == 200
    assert await score_of(client, f"{boards}/other") == 5


@pytest.mark.parametrize("path", ["/scores", "/scores/batch"])
async def test_a_request_that_is_under_way_anywhere_is_to_be_waited_for(
    client: AsyncClient, elsewhere: AsyncClient, summed: str, path: str
):
    held = Held(b'{"member":"ada","score":5}\n')
    first = asyncio.create_task(client.post(f"{summed}/scores/batch", content=held, headers={**KEY, **LINES}))
    await held.started.wait()
    for sender in (client, elsewhere):
        meanwhile = await sender.post(f"{summed}{path}", json=ADA, headers=KEY)
        assert (meanwhile.status_code, meanwhile.json()["type"]) == (409, "/problems/in-flight")
        assert meanwhile.headers["retry-after"] == "1"
    held.may_end.set()
    assert (await first).json() == {"accepted": 1, "rejected": []}
    again = await elsewhere.post(
        f"{summed}/scores/batch", content=b'{"member":"ada","score":5}\n', headers={**KEY, **LINES}
    )
    assert (again.json(), again.headers["idempotency-replayed"]) == ({"accepted": 1, "rejected": []}, "true")
    assert await score_of(client, summed) == 5


async def test_of_many_at_once_one_counts(client: AsyncClient, elsewhere: AsyncClient, summed: str):
    senders = (client, elsewhere) * 10
    answers = await asyncio.gather(
        *(sender.post(f"{summed}/scores", json=ADA, headers=KEY) for sender in senders)
    )
    assert {answer.status_code for answer in answers} <= {200, 409}
    bodies = {answer.content for answer in answers if answer.status_code == 200}
    assert len(bodies) == 1
    assert await score_of(client, summed) == 5


async def test_a_claim_of_a_process_that_died_runs_out(
    client: AsyncClient, laurels: Laurels, summed: str, monkeypatch: pytest.MonkeyPatch
):
    assert idempotency.CLAIM_SECONDS <= 60
    monkeypatch.setattr(idempotency, "CLAIM_SECONDS", 0)
    ref = BoardRef.parse(summed.removeprefix("/v1/projects/").replace("/boards/", "/"))
    dying = laurels.idempotency_keys.claim(ref, "k-1")
    await dying.__aenter__()
    answer = await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    assert (answer.status_code, answer.json()["applied"]) == (200, True)
    # The request that lost the key does not take it back.
    await dying.__aexit__(None, None, None)
    again = await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    assert again.headers["idempotency-replayed"] == "true"


async def test_a_claim_is_renewed_while_it_is_worked_on(
    client: AsyncClient, laurels: Laurels, summed: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(idempotency, "CLAIM_SECONDS", 0)
    monkeypatch.setattr(idempotency, "RENEWAL_SECONDS", 0.01)
    held = Held()
    first = asyncio.create_task(client.post(f"{summed}/scores/batch", content=held, headers={**KEY, **LINES}))
    await held.started.wait()
    ref = BoardRef.parse(summed.removeprefix("/v1/projects/").replace("/boards/", "/"))
    renewed = asyncio.Event()
    settle = functions.settle

    async def seen(*args: Any) -> bool:  # noqa: ANN401  # as it is
        was_ours = await settle(*args)
        if was_ours and args[2].how == "renew":
            renewed.set()
        return was_ours

    monkeypatch.setattr(functions, "settle", seen)
    monkeypatch.setattr(idempotency, "CLAIM_SECONDS", 30)
    async with asyncio.timeout(10):
        await renewed.wait()
    with pytest.raises(InFlight):
        async with laurels.idempotency_keys.claim(ref, "k-1"):
            pass
    held.may_end.set()
    assert (await first).status_code == 200


async def test_a_refused_request_leaves_its_key_free(client: AsyncClient, summed: str):
    refused = await client.post(f"{summed}/scores", json={**ADA, "score": "much"}, headers=KEY)
    assert refused.status_code == 422
    mended = await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    assert (mended.status_code, mended.json()["applied"]) == (200, True)


async def test_after_an_unknown_outcome_the_same_request_may_come_again_and_no_other(
    client: AsyncClient, laurels: Laurels, summed: str, shards: int, monkeypatch: pytest.MonkeyPatch
):
    submit = functions.submit

    async def counts_without_an_answer(*given: Any) -> Any:  # noqa: ANN401  # as it is
        await submit(*given)
        raise OutcomeUnknown("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(functions, "submit", counts_without_an_answer)
        unknown = await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    assert (unknown.status_code, unknown.json()["retry_with"]) == (503, "k-1")
    other = await client.post(f"{summed}/scores", json={**ADA, "score": 6}, headers=KEY)
    assert other.json()["type"] == "/problems/idempotency-key-reused"
    again = await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    assert (again.status_code, again.json()["score"]) == (200, 5)
    first_answer = again.headers.get("idempotency-replayed"), again.json()["applied"]
    assert first_answer == (("true", True) if shards == 1 else (None, False))


async def test_a_batch_that_breaks_off_may_come_again_and_counts_once(
    client: AsyncClient, summed: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scores, "CHUNK_SUBMISSIONS", 1)
    headers = {**KEY, **LINES, "Content-Encoding": "gzip"}
    sent = gzip.compress(b'{"member":"ada","score":5}\n{"member":"ada","score":6}\n')
    broken = await client.post(f"{summed}/scores/batch", content=sent[:-8], headers=headers)
    assert (broken.status_code, broken.json()["accepted"]) == (400, 2)
    for _ in range(2):
        whole = await client.post(f"{summed}/scores/batch", content=sent, headers=headers)
        assert whole.json() == {"accepted": 2, "rejected": []}
    assert await score_of(client, summed) == 11


@pytest.mark.parametrize("kind", [{}, {"aggregate": "last"}, {"ties": "earliest"}, {"score": "int64"}])
async def test_a_repeated_score_gets_the_first_answer_on_any_kind_of_board(
    client: AsyncClient, boards: str, kind: dict[str, str]
):
    await client.put(f"{boards}/kind", json=kind)
    score = str(2**63 - 1) if "score" in kind else 7.25
    sent = {**ADA, "score": score, "metadata": {"level": 7}}
    await client.post(f"{boards}/kind/scores", json={**ADA, "member": "bob"})
    first = await client.post(f"{boards}/kind/scores", json=sent, headers=KEY)
    await client.post(f"{boards}/kind/scores", json={**ADA, "score": 9})
    again = await client.post(f"{boards}/kind/scores", json=sent, headers=KEY)
    assert first.json()["score"] == score
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")


async def test_a_key_whose_id_was_used_without_it_answers_the_same_each_time(
    client: AsyncClient, summed: str
):
    await client.post(f"{summed}/scores", json={**ADA, "id": "k-1"})
    answers = [await client.post(f"{summed}/scores", json=ADA, headers=KEY) for _ in range(2)]
    assert [answer.json()["applied"] for answer in answers] == [False, False]
    assert answers[0].content == answers[1].content
    assert ["idempotency-replayed" in answer.headers for answer in answers] == [False, True]


async def test_an_answer_of_another_form_of_scores_is_not_read(client: AsyncClient, boards: str):
    await client.put(f"{boards}/formed", json={})
    await client.post(f"{boards}/formed/scores", json=ADA, headers=KEY)
    await client.delete(f"{boards}/formed/entries/ada")
    assert (await client.put(f"{boards}/formed", json={"ties": "earliest"})).status_code == 200
    again = await client.post(f"{boards}/formed/scores", json=ADA, headers=KEY)
    assert (again.status_code, again.json()["applied"], again.json()["score"]) == (200, False, None)


async def test_records_of_keys_expire_even_if_the_last_one_was_given_back(
    client: AsyncClient, laurels: Laurels, boards: str
):
    await client.put(f"{boards}/kept", json={})
    ref = BoardRef.parse(f"{boards}/kept".removeprefix("/v1/projects/").replace("/boards/", "/"))
    async with laurels.idempotency_keys.claim(ref, "given-back"):
        pass
    assert (await client.post(f"{boards}/kept/scores", json=ADA, headers=KEY)).status_code == 200
    (key,) = await laurels.valkey.command("KEYS", f"*{ref}*once:*")
    assert await laurels.valkey.command("TTL", key) > 0


async def test_one_key_for_two_members_at_once_counts_for_one(client: AsyncClient, summed: str):
    answers = await asyncio.gather(
        *(client.post(f"{summed}/scores", json={**ADA, "member": f"m{n}"}, headers=KEY) for n in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 7
    assert (await client.get(f"{summed}/entries")).json()["total"] == 1


async def test_a_key_is_remembered_for_a_day(client: AsyncClient, summed: str, clock: FixedClock):
    await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    clock.now += timedelta(hours=24) // timedelta(microseconds=1) - SECOND
    again = await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    assert again.headers["idempotency-replayed"] == "true"


async def test_a_board_that_is_made_again_knows_no_old_keys(client: AsyncClient, summed: str):
    await client.post(f"{summed}/scores", json=ADA, headers=KEY)
    assert (await client.delete(summed, params={"allow_drop": "all"})).status_code == 204
    await client.put(summed, json={"aggregate": "sum"})
    answer = await client.post(f"{summed}/scores", json={**ADA, "score": 7}, headers=KEY)
    assert (answer.status_code, answer.json()["score"]) == (200, 7)


async def test_of_many_rejections_some_are_kept_and_all_are_counted(
    client: AsyncClient, summed: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scores, "MOST_KEPT", 2)
    sent = b'{"member":"ada","score":5}\n' + b"x\n" * 5
    first = await client.post(f"{summed}/scores/batch", content=sent, headers={**KEY, **LINES})
    assert len(first.json()["rejected"]) == 5
    again = (await client.post(f"{summed}/scores/batch", content=sent, headers={**KEY, **LINES})).json()
    assert (again["accepted"], again["rejected_total"]) == (1, 5)
    assert again["rejected"] == first.json()["rejected"][:2]


@pytest.mark.parametrize("key", ["", "k" * 201, "ctrl\x7f", "\x01", "é"])
async def test_a_key_is_some_ascii_characters(client: AsyncClient, summed: str, key: str):
    headers = {b"Idempotency-Key": key.encode("latin-1")}
    for path, sent in (("/scores", ADA), ("/scores/batch", [ADA])):
        answer = await client.post(f"{summed}{path}", json=sent, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["errors"] == [
            {"field": "Idempotency-Key", "detail": "must be one value of 1 to 200 ASCII characters"}
        ]
    assert await score_of(client, summed) is None


async def test_one_request_has_one_key(client: AsyncClient, summed: str):
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = await client.post(f"{summed}/scores", json=ADA, headers=headers)
    assert answer.json()["errors"][0]["field"] == "Idempotency-Key"
