from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from sqlalchemy import create_engine, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from laurels.errors import Conflict, InvalidInput, OutcomeUnknown, Unavailable
from laurels.postgres import engine, tables
from laurels.postgres.engine import Postgres

ROW: dict[str, Any] = {"project": "acme", "board": "score", "definition": {}, "id": 1}


async def boards_in(postgres: Postgres) -> int:
    async with postgres.reading() as connection:
        return len((await connection.execute(select(tables.boards))).all())


async def test_a_running_server_answers_a_ping(postgres: Postgres):
    await postgres.ping()


async def test_a_block_that_ends_is_committed(postgres: Postgres):
    async with postgres.writing() as connection:
        await connection.execute(insert(tables.boards).values(ROW))
    assert await boards_in(postgres) == 1


async def test_a_block_that_fails_is_rolled_back(postgres: Postgres):
    async def fail() -> None:
        async with postgres.writing() as connection:
            await connection.execute(insert(tables.boards).values(ROW))
            raise Conflict("no")

    with pytest.raises(Conflict):
        await fail()
    assert await boards_in(postgres) == 0


async def test_a_server_that_is_gone_is_unavailable_and_its_password_unsaid():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"postgresql+psycopg://ada:hunter2@127.0.0.1:{unused.getsockname()[1]}/laurels"
        async with Postgres(url) as postgres:
            with pytest.raises(
                Unavailable, match=r"does not answer at .*//ada:\*\*\*@127\.0\.0\.1"
            ) as caught:
                await postgres.ping()
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_server_that_accepts_but_never_answers_is_unavailable():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql+psycopg://ada@127.0.0.1:{silent.getsockname()[1]}/laurels"
        async with Postgres(url) as postgres:
            with pytest.raises(Unavailable, match=r"waited 0\.1 s"):
                async with postgres.reading(seconds=0.1):
                    pass


async def test_a_statement_that_takes_too_long_is_unavailable(postgres: Postgres):
    with pytest.raises(Unavailable, match=r"waited 0\.1 s"):
        async with postgres.reading(seconds=0.1) as connection:
            await connection.execute(text("SELECT pg_sleep(60)"))
    await postgres.ping()


async def test_the_server_itself_ends_a_statement_that_takes_too_long(postgres: Postgres):
    async with postgres.reading() as connection:
        timeout = (await connection.execute(text("SHOW statement_timeout"))).scalar_one()
    assert timeout == f"{engine.ANSWER_SECONDS}s"


async def test_a_timeout_of_the_callers_own_stays_its_own(postgres: Postgres):
    async def wait() -> None:
        async with postgres.reading(), asyncio.timeout(0):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await wait()


async def test_a_connection_lost_before_the_commit_changed_nothing(
    postgres: Postgres, migrated_postgres_url: str
):
    async def write() -> None:
        async with postgres.writing() as connection:
            await connection.execute(insert(tables.boards).values(ROW))
            end_sessions(migrated_postgres_url)
            await connection.execute(text("SELECT 1"))

    with pytest.raises(Unavailable) as caught:
        await write()
    assert type(caught.value) is Unavailable
    assert await boards_in(postgres) == 0


async def test_a_commit_that_goes_unanswered_has_an_unknown_outcome(
    postgres: Postgres, migrated_postgres_url: str
):
    async def write() -> None:
        async with postgres.writing() as connection:
            await connection.execute(insert(tables.boards).values(ROW))
            end_sessions(migrated_postgres_url)

    with pytest.raises(OutcomeUnknown):
        await write()


async def test_a_commit_past_the_deadline_has_an_unknown_outcome(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
):
    committing = asyncio.Event()

    async def stuck(_: AsyncConnection) -> None:
        committing.set()
        await asyncio.Event().wait()

    async def write(seconds: float) -> None:
        async with postgres.writing(seconds=seconds):
            pass

    monkeypatch.setattr(AsyncConnection, "commit", stuck)
    for seconds in (0.1, 1, 10):  # a busy machine may connect too late to commit
        with pytest.raises(Unavailable) as raised:
            await write(seconds)
        if committing.is_set():
            break
    assert raised.type is OutcomeUnknown


async def test_after_the_server_ended_every_connection_the_next_call_succeeds(
    postgres: Postgres, migrated_postgres_url: str
):
    await postgres.ping()
    end_sessions(migrated_postgres_url)
    await postgres.ping()


async def test_a_value_that_postgresql_cannot_hold_is_invalid_input(postgres: Postgres):
    with pytest.raises(InvalidInput, match="PostgreSQL cannot hold this value"):
        async with postgres.writing() as connection:
            await connection.execute(
                insert(tables.boards).values(ROW | {"definition": {"max": float("inf")}})
            )


def end_sessions(url: str) -> None:
    """Ends all sessions, as a restart or a failover does."""
    server = create_engine(url)
    with server.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE application_name = 'laurels' AND pid <> pg_backend_pid()"
            )
        )
    server.dispose()
