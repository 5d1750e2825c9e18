"""One table says what every error of a store means: each row of it, as the real servers answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis import exceptions
from sqlalchemy import exc, text
from sqlalchemy.engine import make_url
from supported_servers import debian_s_redis, valkey_server
from valkey_servers import running, running_valkey

from laurels.errors import OutcomeUnknown, Unavailable
from laurels.outcomes import POSTGRES, VALKEY, VALKEY_TEXTS, Outcome
from laurels.postgres.engine import Postgres
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from laurels.embedded import Endpoints

# A function that fails as it is told to, when it is called or after it has written.
LIBRARY = """#!lua name=failing
redis.register_function('fail', function(keys, args) return redis.error_reply(args[1]) end)
redis.register_function{
  function_name = 'fail_reading', flags = { 'no-writes' },
  callback = function(keys, args) return redis.error_reply(args[1]) end,
}
"""
HALF_WAY = """#!lua name=half
redis.register_function('half_way', function(keys)
  redis.call('SET', keys[1], 1)
  redis.call('ZADD', keys[1] .. ':board', 1, 'ada')
end)
"""
REPLIES = {
    **{f"{code} 1 127.0.0.1:1": VALKEY[code] for code in ("MOVED", "ASK")},
    **{f"{code} told so": meaning for code, meaning in VALKEY.items() if code not in {"MOVED", "ASK"}},
    **{f"ERR {known}": meaning for known, meaning in VALKEY_TEXTS.items()},
}
WITHIN_A_FUNCTION = [
    reply for reply, meaning in REPLIES.items() if meaning.advice and reply.endswith("told so")
]


@pytest.fixture(scope="module")
async def failing() -> AsyncGenerator[Valkey]:
    with running_valkey() as server:
        server.client.execute_command("FUNCTION", "LOAD", LIBRARY)
        valkey = Valkey(server.url)
        yield valkey
        await valkey.close()


@pytest.mark.parametrize("reply", REPLIES)
async def test_every_error_of_valkey_has_the_outcome_of_the_table(failing: Valkey, reply: str):
    meaning = REPLIES[reply]
    with pytest.raises((Unavailable, exceptions.RedisError)) as refused:
        await failing.write("fail", (), (reply,))
    assert isinstance(refused.value, OutcomeUnknown) is (meaning.outcome is Outcome.UNKNOWN)
    assert isinstance(refused.value, exceptions.RedisError) is (meaning.outcome is Outcome.DEFECT)
    if isinstance(refused.value, Unavailable):
        assert meaning.advice in refused.value.detail
        assert reply.partition(" ")[0] in refused.value.detail


@pytest.mark.parametrize("place", ["script: fail, on @user_function:1.", "script: on @user_function:1."])
@pytest.mark.parametrize("reply", WITHIN_A_FUNCTION)
async def test_an_error_of_a_function_that_had_begun_leaves_the_outcome_unknown(
    failing: Valkey, reply: str, place: str
):
    within = f"{reply} {place}"
    with pytest.raises(OutcomeUnknown):
        await failing.write("fail", (), (within,))


async def test_so_does_an_error_of_a_function_on_the_real_server(endpoints: Endpoints):
    valkey = Valkey(endpoints.valkey_url)
    try:
        await valkey.load_functions()
        await valkey.command("SET", "lb:{tests/outcomes}:board", "text")
        with pytest.raises(OutcomeUnknown, match="WRONGTYPE"):
            await valkey.write("laurels_retire", ("lb:{tests/outcomes}:board",), (1,))
    finally:
        await valkey.command("DEL", "lb:{tests/outcomes}:board")
        await valkey.close()


@pytest.mark.parametrize("find", [debian_s_redis, valkey_server], ids=["redis", "own"])
async def test_a_command_that_is_denied_half_way_leaves_the_outcome_unknown(find: Callable[[], Path]):
    with running(find()) as server:
        server.client.execute_command("FUNCTION", "LOAD", HALF_WAY)
        server.client.execute_command("ACL", "SETUSER", "laurels", "on", ">secret", "~*", "+@all", "-zadd")
        valkey = Valkey(f"unix://laurels:secret@{server.socket}")
        with pytest.raises(OutcomeUnknown, match="its ACL denies a command"):
            await valkey.write("half_way", ("key",), ())
        assert server.client.exists("key")
        await valkey.close()


async def test_a_read_has_no_outcome_that_could_be_unknown(failing: Valkey):
    with pytest.raises(Unavailable) as refused:
        await failing.read("fail_reading", (), ("UNBLOCKED told so",))
    assert not isinstance(refused.value, OutcomeUnknown)


async def test_a_write_that_found_no_connection_changed_nothing():
    with running_valkey() as server:
        valkey = Valkey(server.url)
    with pytest.raises(Unavailable) as refused:
        await valkey.write("fail", (), ("told so",))
    assert not isinstance(refused.value, OutcomeUnknown)
    await valkey.close()


def _states() -> list[str]:
    """A state of each class that the table names."""
    return [state.ljust(5, "0") if state != "40" else "40001" for state in POSTGRES]


@pytest.mark.parametrize("state", _states())
async def test_every_error_of_postgres_has_the_outcome_of_the_table(endpoints: Endpoints, state: str):
    meaning = next(POSTGRES[state[:size]] for size in (5, 3, 2) if state[:size] in POSTGRES)
    with pytest.raises(Unavailable) as refused:
        await _raise_in_postgres(endpoints, state)
    assert meaning.advice in refused.value.detail


async def test_an_error_that_the_table_does_not_name_is_a_defect(endpoints: Endpoints):
    with pytest.raises(exc.ProgrammingError):
        await _raise_in_postgres(endpoints, "42601")


async def _raise_in_postgres(endpoints: Endpoints, state: str) -> None:
    async with Postgres(endpoints.postgres_url) as postgres, postgres.writing() as connection:
        await connection.execute(text(f"DO $$ BEGIN RAISE 'told so' USING ERRCODE = '{state}'; END $$"))


async def test_a_postgres_that_only_reads_is_no_primary(endpoints: Endpoints):
    url = f"{endpoints.postgres_url}&options=-c%20default_transaction_read_only%3Don"
    async with Postgres(url) as postgres:
        await postgres.ping()
        with pytest.raises(Unavailable, match="it is read-only: name the primary"):
            await postgres.require_writes()


async def test_a_refused_connection_to_postgres_says_what_to_do(endpoints: Endpoints):
    url = make_url(endpoints.postgres_url).set(password="wrong").render_as_string(hide_password=False)
    async with Postgres(url) as postgres:
        with pytest.raises(Unavailable) as refused:
            await postgres.ping()
    assert refused.value.advice.startswith("PostgreSQL ")
