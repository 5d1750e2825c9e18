"""Connections that break, before and after the server did what it was asked: everything counts once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laurels.client import AsyncClient, Client, Retries, Submission, Unreachable
from laurels.client import lines as lines_module
from laurels.errors import OutcomeUnknown

if TYPE_CHECKING:
    from loopback_proxy import Fault, Proxy

    from .conftest import Served

GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<h1>502</h1>\n"
LIMITED = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 3\r\n\r\n"
)

FAULTS: list[list[Fault]] = [
    ["before"], ["after"], ["halfway"], [GATEWAY], ["before", "after", "halfway", GATEWAY, LIMITED]
]  # fmt: skip


@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: "-".join(str(each)[:12] for each in faults))
def test_a_submission_counts_once(
    client: Client, unsteady: Client, proxy: Proxy, board: str, pauses: list[float], faults: list[Fault]
):
    proxy.faults.extend(faults)
    submitted = unsteady.submit(board, "ada", 5)
    assert submitted.score == 5
    assert client.standing(board, "ada").score == 5
    assert len(proxy.requests) == len(pauses) + 1 == len(faults) + 1


@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: "-".join(str(each)[:12] for each in faults))
async def test_a_submission_that_is_awaited_counts_once(
    served: Served, client: Client, project: str, proxy: Proxy, board: str, faults: list[Fault]
):
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    proxy.faults.extend(faults)
    async with AsyncClient(proxy.address, key=served.key, project=project, sleep=sleep) as unsteady:
        assert (await unsteady.submit(board, "ada", 5)).score == 5
    assert client.standing(board, "ada").score == 5
    assert len(pauses) == len(faults)


def test_an_answer_that_does_not_come_in_time_is_asked_for_again(
    served: Served, client: Client, project: str, proxy: Proxy, board: str, pauses: list[float]
):
    proxy.faults.append("silent")
    with Client(
        proxy.address, key=served.key, project=project, timeout=0.5, sleep=pauses.append
    ) as impatient:
        assert impatient.submit(board, "ada", 5).score == 5
    assert client.standing(board, "ada").score == 5
    assert len(pauses) == 1


def test_retry_after_is_honoured(unsteady: Client, proxy: Proxy, board: str, pauses: list[float]):
    proxy.faults.append(LIMITED)
    unsteady.submit(board, "ada", 5)
    assert 3.0 <= pauses[0] <= 3.1


def test_a_submission_whose_answers_are_all_lost_can_be_repeated_by_its_id(
    served: Served, client: Client, project: str, proxy: Proxy, board: str
):
    proxy.faults.extend(["after", "after"])
    with (
        Client(
            proxy.address, key=served.key, project=project, retries=Retries(attempts=2, first_pause=0)
        ) as unsteady,
        pytest.raises(Unreachable) as lost,
    ):
        unsteady.submit(board, "ada", 5)
    assert isinstance(lost.value, OutcomeUnknown)
    assert client.submit(board, "ada", 5, id=lost.value.retry_with).applied is False
    assert client.standing(board, "ada").score == 5


def test_what_is_lost_while_it_is_dropped_is_dropped(unsteady: Client, proxy: Proxy, board: str):
    unsteady.submit(board, "ada", 5)
    proxy.faults.append("after")
    assert unsteady.remove(board, "ada") is True
    proxy.faults.append("after")
    unsteady.drop(board, allow_drop="all")
    assert unsteady.boards() == []


def test_a_definition_whose_answer_is_lost_is_defined(unsteady: Client, proxy: Proxy):
    proxy.faults.extend(["after", "halfway"])
    assert unsteady.define("new", {"order": "asc"}).definition.order == "asc"


@pytest.mark.parametrize("fault", ["before", "after", "halfway", GATEWAY])
def test_a_batch_that_breaks_midway_counts_once(
    client: Client,
    unsteady: Client,
    proxy: Proxy,
    board: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
):
    monkeypatch.setattr(lines_module, "SUBMISSIONS", 100)
    proxy.faults.extend([None, fault, fault])
    heard: list[int] = []
    given = (Submission(f"m{number % 40}", 1) for number in range(350))
    result = unsteady.submit_many(board, given, heard.append)
    assert (result.accepted, result.rejected) == (350, [])
    assert heard == [100, 200, 300, 350]
    assert len(proxy.requests) == 4 + 2
    assert sum(entry.score for entry in client.entries(board)) == 350


def test_a_batch_that_is_given_up_can_be_repeated_as_a_whole(
    served: Served, client: Client, project: str, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines_module, "SUBMISSIONS", 100)
    given = [Submission(f"m{number % 40}", 1) for number in range(250)]
    with Client(proxy.address, key=served.key, project=project, retries=Retries(attempts=1)) as unsteady:
        proxy.faults.extend([None, "after"])
        with pytest.raises(Unreachable) as lost:
            unsteady.submit_many(board, given)
    again = client.submit_many(board, given, id=lost.value.retry_with)
    assert again.accepted == 250
    assert sum(entry.score for entry in client.entries(board)) == 250
    assert "nothing counts twice" in lost.value.__notes__[0]


def test_iteration_goes_on_over_a_broken_connection(
    client: Client, unsteady: Client, proxy: Proxy, board: str
):
    client.submit_many(board, (Submission(f"m{number:02}", 100 - number) for number in range(30)))
    found: list[str] = []
    for entry in unsteady.entries(board, limit=10):
        if not len(found) % 10:
            proxy.faults.append("halfway")
        found.append(entry.member)
    assert found == [f"m{number:02}" for number in range(30)]
