from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from pydantic import SecretStr

from laurels.logs import configure_logs, get_logger
from laurels.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.embedded import Endpoints

LOGGERS = ("", "uvicorn", "uvicorn.error", "uvicorn.access", "alembic", "sqlalchemy", "py.warnings")
PASSWORD = "hunter2"
SECRET = "lk_ab12cd34_" + "x" * 43


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]  # pytest calls it
    before = {name: (logging.getLogger(name).handlers[:], logging.getLogger(name).level) for name in LOGGERS}
    yield
    logging.captureWarnings(False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    for name, (handlers, level) in before.items():
        logging.getLogger(name).handlers[:] = handlers
        logging.getLogger(name).setLevel(level)


def become_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not a fixture: the stream of a test's body is another than the one of its set-up.
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_outside_a_terminal_a_line_is_json_at_utc(capsys: pytest.CaptureFixture[str]):
    configure_logs(Settings())
    structlog.get_logger("laurels.boards").info("board made", project="acme", shards=4)
    (line,) = lines(capsys)
    written = datetime.fromisoformat(line.pop("timestamp"))
    assert written.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - written) < timedelta(minutes=1)
    assert line == {
        "event": "board made",
        "level": "info",
        "logger": "laurels.boards",
        "project": "acme",
        "shards": 4,
    }


def test_in_a_terminal_a_line_is_coloured_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    become_terminal(monkeypatch)
    configure_logs(Settings())
    structlog.get_logger().info("board made", project="acme")
    text = capsys.readouterr().err
    assert "board made" in text
    assert "\x1b[" in text
    assert "{" not in text


def test_no_color_is_respected(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    become_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    configure_logs(Settings())
    structlog.get_logger().info("board made", project="acme")
    text = capsys.readouterr().err
    assert "board made" in text
    assert not text.startswith("{")
    assert "\x1b[" not in text


def test_text_may_be_chosen_outside_a_terminal(capsys: pytest.CaptureFixture[str]):
    configure_logs(Settings(log_format="console"))
    structlog.get_logger().info("for people")
    text = capsys.readouterr().err
    assert "for people" in text
    assert not text.startswith("{")
    assert "\x1b[" not in text


def test_json_may_be_chosen_in_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    become_terminal(monkeypatch)
    configure_logs(Settings(log_format="json"))
    structlog.get_logger().info("for programs")
    assert lines(capsys)[0]["event"] == "for programs"


@pytest.mark.parametrize(
    "name", ["uvicorn.error", "uvicorn.access", "alembic.runtime.migration", "sqlalchemy.engine"]
)
def test_lines_of_libraries_take_the_same_way(capsys: pytest.CaptureFixture[str], name: str):
    logging.getLogger(name.partition(".")[0]).addHandler(logging.StreamHandler(sys.stderr))
    configure_logs(Settings())
    logging.getLogger(name).warning("%s happened", "something")
    (line,) = lines(capsys)
    assert (line["event"], line["level"], line["logger"]) == ("something happened", "warning", name)


def test_warnings_take_the_same_way(capsys: pytest.CaptureFixture[str]):
    configure_logs(Settings())
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("old way", DeprecationWarning, stacklevel=1)
    (line,) = lines(capsys)
    assert "DeprecationWarning: old way" in line["event"]


def test_values_bound_to_a_request_are_in_every_line(capsys: pytest.CaptureFixture[str]):
    configure_logs(Settings())
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        structlog.get_logger().info("ours")
        logging.getLogger("uvicorn.error").info("theirs")
    structlog.get_logger().info("after")
    assert [line.get("request_id") for line in lines(capsys)] == ["r-1", "r-1", None]


def test_below_the_level_nothing_is_logged(capsys: pytest.CaptureFixture[str]):
    configure_logs(Settings(log_level="warning"))
    structlog.get_logger().info("quiet")
    logging.getLogger("alembic").info("quiet")
    structlog.get_logger().warning("loud")
    assert [line["event"] for line in lines(capsys)] == ["loud"]


def test_the_last_configuration_holds_and_lines_are_not_doubled(capsys: pytest.CaptureFixture[str]):
    logger = structlog.get_logger()
    configure_logs(Settings(log_level="error"))
    logger.info("quiet")
    configure_logs(Settings(log_level="info"))
    logger.info("once")
    assert [line["event"] for line in lines(capsys)] == ["once"]


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_secrets_are_in_no_line(capsys: pytest.CaptureFixture[str], log_format: str):
    bootstrap = 'correct"horse\\battery'
    configure_logs(Settings(log_format=log_format, bootstrap_key=SecretStr(bootstrap)))  # pyright: ignore[reportArgumentType]
    logger = structlog.get_logger()
    made = f"key {SECRET} made"
    logger.info(made)
    logger.info(
        "connecting", url=f"postgresql://ada:{PASSWORD}@db/laurels", authorization=PASSWORD, password=PASSWORD
    )
    logger.info(
        "asked",
        header=f"Bearer {bootstrap}",
        nested={"key": bootstrap, "urls": [f"redis://:{PASSWORD}@cache"]},
    )
    logging.getLogger("uvicorn.access").info('"GET /live?token=%s HTTP/1.1" %d', PASSWORD, 200)
    try:
        raise_with(f"no such key: {SECRET} at redis://a:{PASSWORD}@b with {bootstrap}")
    except ValueError:
        logger.exception("failed")
    text = capsys.readouterr().err
    assert "Traceback" in text
    for secret in ("x" * 43, PASSWORD, bootstrap, json.dumps(bootstrap)[1:-1], "battery"):
        assert secret not in text
    assert "lk_ab12cd34_***" in text
    assert "postgresql://ada:***@db/laurels" in text


def raise_with(message: str) -> None:
    raise ValueError(message)


PROGRAM = """
import asyncio, sys
import laurels.client
from laurels import Laurels
from laurels.sync import Laurels as Blocking

async def use():
    async with Laurels() as engine:
        await engine.define("quiet/board", {})
        await engine.submit("quiet/board", "ada", 5)

asyncio.run(use())
with Blocking() as engine:
    engine.submit("quiet/board", "bob", 6)
"""


def test_a_program_that_uses_the_library_prints_nothing(endpoints: Endpoints):
    environment = {
        **os.environ,
        "LAURELS_VALKEY_URL": endpoints.valkey_url,
        "LAURELS_POSTGRES_URL": endpoints.postgres_url,
    }
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_the_library_is_silent_until_its_application_configures_logging(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    structlog.reset_defaults()
    get_logger("laurels.jobs").warning("background work begins", jobs=3)
    assert capsys.readouterr() == ("", "")
    assert "background work begins" in caplog.records[-1].getMessage()
    assert caplog.records[-1].name == "laurels.jobs"
