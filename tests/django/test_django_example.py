"""The example project as a user runs it: commands of `manage.py`, a server, a page."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from sqlalchemy import make_url
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.embedded import Endpoints

EXAMPLE = Path(__file__).parents[2] / "examples" / "django"


class Arcade:
    def __init__(self, database: str, valkey_url: str) -> None:
        url = make_url(database)
        host = url.query.get("host") or url.host
        given = {"PGHOST": host, "PGUSER": url.username, "PGPASSWORD": url.password, "PGPORT": url.port}
        self.environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PGDATABASE": str(url.database),
            "VALKEY_URL": valkey_url,
            **{name: str(value) for name, value in given.items() if value},
        }

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=EXAMPLE, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=EXAMPLE, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip


@pytest.fixture(scope="module")
def arcade(endpoints: Endpoints) -> Generator[Arcade]:
    url = make_url(endpoints.postgres_url)
    with psycopg.connect(endpoints.postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE DATABASE arcade")
        made = Arcade(url.set(database="arcade").render_as_string(hide_password=False), endpoints.valkey_url)
        made.manage("migrate")
        yield made
        connection.execute("DROP DATABASE arcade WITH (FORCE)")


@pytest.fixture
def served(arcade: Arcade) -> Generator[httpx.Client]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = arcade.start("runserver", "--noreload", f"127.0.0.1:{port}")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:

        def answers() -> bool:
            assert server.poll() is None, server.communicate()
            try:
                return client.get("/players/0").status_code == 404
            except httpx.TransportError:
                return False

        until(answers)
        yield client
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=30)


def test_its_migrations_are_what_its_models_declare(arcade: Arcade):
    assert "No changes detected" in arcade.manage("makemigrations", "--check", "--dry-run")
    assert "no issues" in arcade.manage("check", "--database", "default")


def test_its_own_tests_pass(arcade: Arcade):
    assert "Ran 3 tests" in arcade.manage("test")


def test_a_score_that_is_posted_is_on_the_page(served: httpx.Client):
    for player, region, score in [("ada", "asia", 1200), ("bob", "asia", 900), ("eve", "europe", 1500)]:
        posted: dict[str, Any] = {"player": player, "region": region, "score": score}
        assert served.post("/scores", data=posted).status_code == 201
    page = served.get("/").text
    assert page.index("eve") < page.index("ada") < page.index("bob")
    assert "<td>1</td><td>ada</td><td>asia</td><td>1200</td>" in served.get("/?region=asia").text


def test_a_process_of_its_own_maintains_until_it_is_stopped(arcade: Arcade, endpoints: Endpoints):
    url = endpoints.postgres_url.replace("+psycopg", "")
    running = arcade.start("laurels", "run")
    assert running.stdout is not None
    assert running.stdout.readline() == "Maintaining scores_gamescore.score. Ctrl-C stops.\n"
    with psycopg.connect(url, dbname="arcade", autocommit=True) as connection:
        connection.execute("INSERT INTO scores_player (name) VALUES ('zoe')")
        connection.execute(
            "INSERT INTO scores_gamescore (player_id, region, score, played_at) "
            "SELECT id, 'africa', 7, now() FROM scores_player WHERE name = 'zoe'"
        )
        until(lambda: connection.execute("SELECT count(*) FROM laurels_index.outbox").fetchone() == (0,))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=30)
    assert running.returncode == 0
