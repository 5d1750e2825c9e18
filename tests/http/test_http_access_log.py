"""Which answers get a line in the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from laurels.http.access_log import AccessLog
from laurels.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Generator

    from .conftest import ClientWith, Logged

ROUTE = "/v1/projects/{project}/boards"
ACCESS = logging.getLogger("laurels.access")


@pytest.fixture(autouse=True)
def _every_level() -> Generator[None]:
    ACCESS.setLevel(logging.DEBUG)
    yield
    ACCESS.setLevel(logging.NOTSET)


def test_errors_are_the_default():
    settings = load_settings()
    assert (settings.access_log, settings.slow_request_seconds) == ("errors", 1.0)


@pytest.mark.parametrize(
    ("mode", "status", "seconds", "is_logged"),
    [
        ("errors", 200, 0.01, False),
        ("errors", 200, 1.0, True),
        ("errors", 404, 0.01, False),
        ("errors", 422, 0.01, False),
        ("errors", 429, 0.01, False),
        ("errors", 499, 0.01, False),
        ("errors", 401, 0.01, True),
        ("errors", 403, 0.01, True),
        ("errors", 500, 0.01, True),
        ("errors", 503, 0.01, True),
        ("all", 200, 0.01, True),
        ("all", 404, 0.01, True),
        ("off", 500, 9.0, False),
        ("off", 401, 0.01, False),
    ],
)
def test_a_mode_says_which_answers_are_logged(mode: str, status: int, seconds: float, is_logged: bool):  # noqa: FBT001  # a parameter of the test
    access_log = AccessLog(mode, 1.0)  # pyright: ignore[reportArgumentType]  # one of the modes
    assert access_log.wants(ROUTE, status, seconds) is is_logged


def test_the_level_of_the_log_holds_too():
    ACCESS.setLevel(logging.WARNING)
    access_log = AccessLog("all", 1.0)
    assert [status for status in (200, 401, 503) if access_log.wants(ROUTE, status, 0.01)] == [401, 503]


async def test_the_service_logs_refused_credentials_and_no_ordinary_answers(
    client_with: ClientWith, boards: str, logged: Logged
):
    client = await client_with()
    assert (await client.get(boards)).status_code == 200
    assert (await client.get(f"{boards}/none")).status_code == 404
    assert (await client.get(boards, headers={"Authorization": "Bearer wrong"})).status_code == 401
    lines = [line for line in logged if line["event"] == "request"]
    assert [(line["status"], line["log_level"]) for line in lines] == [(401, "warning")]


async def test_a_slow_answer_is_logged(client_with: ClientWith, boards: str, logged: Logged):
    client = await client_with(slow_request_seconds="0.000001")
    assert (await client.get(boards)).status_code == 200
    assert [line["status"] for line in logged if line["event"] == "request"] == [200]
