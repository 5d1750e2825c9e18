"""The connection that all calls to a node share: its losses, callers who leave, and a node that is silent."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import shutil
import signal
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from redis import exceptions
from valkey_servers import running, running_valkey
from waiting import eventually

from laurels.errors import OutcomeUnknown, Unavailable
from laurels.valkey import functions, keyspace, strings
from laurels.valkey.client import Valkey
from laurels.valkey.connections import ConnectionLosses, NotSent, Pool
from laurels.valkey.node import Node
from laurels.valkey.shared_connection import (
    RENEW_SECONDS,
    SharedConnection,
    _taken_from,  # pyright: ignore[reportPrivateUsage]  # its end cannot be provoked between two steps
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence

    from valkey_servers import Server

    from laurels.valkey.client import Reply, Value

BLOCKED = ("BLPOP", "nothing-is-ever-here", 60)


async def exchanged(connection: SharedConnection, commands: Sequence[tuple[Value, ...]]) -> list[Reply]:
    return await connection.exchange(commands)


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    with running_valkey() as server:
        yield server


@contextmanager
def frozen(server: Server) -> Generator[None]:
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def pool_of(server: Server) -> Pool:
    return cast("Any", Pool).from_url(server.url).watched(ConnectionLosses())


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[None, None, None]], None]:
    """Runs a coroutine in a loop of each kind. Fails if the loop reports an error that was not awaited."""

    def run(played: Coroutine[None, None, None]) -> None:
        reported: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.get_loop().set_exception_handler(lambda _, told: reported.append(told))
            runner.run(played)
            gc.collect()
        assert reported == []

    return run


def line_of(connection: SharedConnection) -> Any:  # noqa: ANN401  # the tests look inside it
    inside: Any = connection
    assert inside._line
    return inside._line


def is_connecting(connection: SharedConnection) -> bool:
    inside: Any = connection
    return inside._connecting is not None


def clients(server: Server) -> list[dict[str, str]]:
    return [client for client in server.client.client_list() if client["cmd"] != "client|list"]


async def test_the_commands_of_one_turn_travel_in_one_write(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    await connection.exchange([("PING",)])
    reads = server.client.info("stats")["total_reads_processed"]
    await asyncio.gather(*(connection.exchange([("ECHO", number)]) for number in range(100)))
    assert server.client.info("stats")["total_reads_processed"] - reads <= 2  # ours, and that of INFO
    connection.close()


async def test_calls_that_come_together_connect_once(server: Server):
    before = server.client.info("stats")["total_connections_received"]
    connection = SharedConnection(pool_of(server), 30)
    await asyncio.gather(*(connection.exchange([("PING",)]) for _ in range(100)))
    assert server.client.info("stats")["total_connections_received"] - before == 1
    connection.close()


async def test_error_replies_are_returned_beside_the_others(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    first, refused, last = await connection.exchange([("ECHO", 1), ("NOSUCH",), ("ECHO", 2)])
    assert (first, last) == (b"1", b"2")
    assert isinstance(refused, exceptions.ResponseError)
    connection.close()


async def test_a_lost_connection_fails_the_calls_on_it_and_counts_as_a_loss(server: Server):
    pool = pool_of(server)
    connection = SharedConnection(pool, 30)
    waiting = [asyncio.create_task(exchanged(connection, [BLOCKED])) for _ in range(3)]
    await eventually(lambda: any(client["cmd"] == "blpop" for client in clients(server)))
    server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    failed = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in failed] == [exceptions.ConnectionError] * 3
    assert len(set(map(id, failed))) == 3  # each caller raises an error of its own
    assert pool.losses.count == 0
    assert await connection.exchange([("ECHO", "again")]) == [b"again"]
    assert pool.losses.count == 1
    connection.close()


async def test_a_silent_node_fails_the_calls_after_a_while(server: Server):
    connection = SharedConnection(pool_of(server), 0.2)
    await connection.exchange([("PING",)])
    with frozen(server):
        failed = await asyncio.gather(
            *(connection.exchange([("ECHO", 1)]) for _ in range(3)), return_exceptions=True
        )
    assert [str(each) for each in failed] == ["no reply within 0.2 s"] * 3
    assert await connection.exchange([("ECHO", "again")]) == [b"again"]
    connection.close()


@pytest.mark.parametrize("rested", [0.2, 0.6])
async def test_the_silence_begins_with_the_first_call_that_waits(server: Server, rested: float):
    """`rested`: how long after the last reply; the timer for the call before it runs, or has run out."""
    connection = SharedConnection(pool_of(server), 0.4)
    await connection.exchange([("PING",)])
    await asyncio.sleep(rested)
    clock = asyncio.get_running_loop().time
    with frozen(server):
        began = clock()
        with pytest.raises(exceptions.ConnectionError, match="no reply within"):
            async with asyncio.timeout(10):
                await connection.exchange([("PING",)])
        assert clock() - began >= 0.39
    connection.close()


async def test_a_node_that_goes_on_replying_is_not_silent(server: Server):
    connection = SharedConnection(pool_of(server), 0.7)
    slow = [("BLPOP", "nothing-is-ever-here", 0.3)]
    replies = await asyncio.gather(*(connection.exchange(slow) for _ in range(4)))  # one after the other
    assert replies == [[None]] * 4
    connection.close()


async def test_messages_that_answer_no_call_are_passed_over(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    await connection.exchange([("CLIENT", "TRACKING", "ON"), ("GET", "watched")])
    assert await connection.exchange([("SET", "watched", 1), ("ECHO", "mine")]) == [b"OK", b"mine"]
    await connection.exchange([("GET", "watched")])
    server.client.set("watched", 2)
    assert await connection.exchange([("GET", "watched")]) == [b"2"]
    connection.close()


async def test_a_reply_without_a_call_closes_the_connection(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    await connection.exchange([("PING",)])
    line_of(connection)._transport.write(b"PING\r\n")
    await eventually(lambda: not line_of(connection).is_open)
    assert line_of(connection)._why == "Valkey sent a reply that no call waits for"
    assert await connection.exchange([("ECHO", 1)]) == [b"1"]
    connection.close()


async def test_refusals_of_a_connection_are_raised_and_other_errors_are_values(server: Server):
    """Such as LOADING, after which a cluster looks for the primary again; here it is NOAUTH."""
    converse = Valkey._converse  # pyright: ignore[reportPrivateUsage]  # what follows needs a cluster
    node = Node(pool_of(server), 1, 30)
    _, refused = await converse(node, [("PING",), ("NOSUCH",)], 0)
    assert isinstance(refused, exceptions.ResponseError)
    server.client.config_set("requirepass", "secret")
    try:
        await node.exchange([("RESET",)])
        with pytest.raises(exceptions.AuthenticationError):
            await converse(node, [("GET", "k")], 0)
    finally:
        server.client.config_set("requirepass", "")
        await node.close()


async def test_calls_wait_while_the_node_reads_nothing(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    await connection.exchange([("PING",)])
    many = b"x" * 2**20
    with frozen(server):
        calls = [asyncio.create_task(exchanged(connection, [("ECHO", many)])) for _ in range(20)]
        line = line_of(connection)
        await eventually(lambda: line.is_full)
        late = asyncio.create_task(exchanged(connection, [("ECHO", "late")]))
        await asyncio.sleep(0)
        assert len(line._waiting) == len(calls)
    assert [reply for (reply,) in await asyncio.gather(*calls)] == [many] * 20
    assert await late == [b"late"]
    connection.close()


async def test_a_node_that_never_answers_a_connection_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("laurels.valkey.shared_connection.CONNECT_SECONDS", 0.2)
    connection = SharedConnection(pool_of(server), 30)
    with frozen(server):
        failed = await asyncio.gather(
            *(connection.exchange([("PING",)]) for _ in range(3)), return_exceptions=True
        )
        assert [(type(each), str(each)) for each in failed] == [(NotSent, "no connection within 0.2 s")] * 3
    assert await connection.exchange([("ECHO", "again")]) == [b"again"]
    connection.close()


def test_a_connection_that_is_lost_tells_calls_that_were_sent_from_those_that_were_not(
    server: Server, run: Callable[[Coroutine[None, None, None]], None]
):
    async def play() -> None:
        connection = SharedConnection(pool_of(server), 30)
        await connection.exchange([("PING",)])
        sent = [asyncio.create_task(exchanged(connection, [BLOCKED])) for _ in range(2)]
        await eventually(lambda: any(client["cmd"] == "blpop" for client in clients(server)))
        unsent = [asyncio.create_task(exchanged(connection, [("PING",)])) for _ in range(3)]
        await asyncio.sleep(0)
        sent[0].cancel()
        unsent[0].cancel()
        line_of(connection).abort("a test")
        failed = await asyncio.gather(*sent, *unsent, return_exceptions=True)
        assert [type(each) for each in failed] == [
            asyncio.CancelledError, exceptions.ConnectionError, asyncio.CancelledError, NotSent, NotSent
        ]  # fmt: skip
        assert await connection.exchange([("ECHO", "again")]) == [b"again"]
        connection.close()

    run(play())


def test_callers_that_leave_or_lose_the_connection_leave_no_error_that_nobody_awaits(
    server: Server, run: Callable[[Coroutine[None, None, None]], None]
):
    async def play() -> None:
        connection = SharedConnection(pool_of(server), 30)
        for killed in (True, False):
            leaving = [asyncio.create_task(exchanged(connection, [("PING",)])) for _ in range(20)]
            for number, task in enumerate(leaving):
                if number % 4 == 0:
                    await asyncio.sleep(0.001)
                task.cancel()
            waiting = asyncio.create_task(exchanged(connection, [BLOCKED]))
            await eventually(lambda: any(client["cmd"] == "blpop" for client in clients(server)))
            if killed:
                server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            else:
                connection.close()
            waiting.cancel()
            await asyncio.gather(*leaving, waiting, return_exceptions=True)

    run(play())


def test_what_fails_when_its_callers_have_left_is_no_error_that_nobody_awaits(
    server: Server,
    run: Callable[[Coroutine[None, None, None]], None],
    monkeypatch: pytest.MonkeyPatch,
):
    async def play() -> None:
        connection = SharedConnection(pool_of(server), 30)
        with frozen(server):
            connecting = asyncio.create_task(exchanged(connection, [("PING",)]))
            await eventually(lambda: is_connecting(connection))
            connecting.cancel()
            await eventually(lambda: not is_connecting(connection))
        connection.close()
        node = Node(pool_of(server), 1, 30)
        await node.exchange([("PING",)])
        loading = asyncio.create_task(node.load_functions("#!lua name=tests"))
        await asyncio.sleep(0)
        loading.cancel()
        await node.close()
        await asyncio.gather(connecting, loading, return_exceptions=True)

    monkeypatch.setattr("laurels.valkey.shared_connection.CONNECT_SECONDS", 0.2)
    run(play())


async def test_who_leaves_while_it_connects_takes_nobody_along(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    first, other = (asyncio.create_task(exchanged(connection, [("ECHO", number)])) for number in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await other == [b"1"]
    connection.close()


def test_what_closes_while_it_connects_fails_what_waits(
    server: Server, run: Callable[[Coroutine[None, None, None]], None]
):
    async def play() -> None:
        connection = SharedConnection(pool_of(server), 30)
        with frozen(server):
            waiting = [asyncio.create_task(exchanged(connection, [("PING",)])) for _ in range(2)]
            await eventually(lambda: is_connecting(connection))
            connection.close()
            failed = await asyncio.gather(*waiting, return_exceptions=True)
        assert [(type(each), str(each)) for each in failed] == [(NotSent, "the connection was closed")] * 2
        await eventually(lambda: not clients(server))
        with pytest.raises(NotSent, match="closed"):
            await connection.exchange([("PING",)])

    run(play())


async def test_a_connection_that_ends_while_it_is_taken_over_is_not_used(server: Server):
    """Its end was told to redis-py, and is not told again."""
    pool: Any = pool_of(server)
    opened = pool.connection_class(**pool.connection_kwargs)
    await opened.connect()
    server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await eventually(opened._reader.at_eof)
    with pytest.raises(exceptions.ConnectionError, match="lost"):
        _taken_from(opened)
    await opened.disconnect(nowait=True)


async def test_a_renewed_connection_answers_the_calls_on_it(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    await connection.exchange([("PING",)])
    await asyncio.sleep(RENEW_SECONDS)
    old = line_of(connection)
    slow = asyncio.create_task(exchanged(connection, [("BLPOP", "nothing-is-ever-here", 0.2)]))
    late = asyncio.create_task(exchanged(connection, [("ECHO", "late")]))
    await asyncio.sleep(0)
    connection.renew()
    assert await connection.exchange([("ECHO", "new")]) == [b"new"]
    assert line_of(connection) is not old
    assert not slow.done()
    assert (await slow, await late) == ([None], [b"late"])
    await eventually(old._transport.is_closing)
    connection.close()


async def test_a_new_connection_is_not_renewed_at_once(server: Server):
    """Or a node that refuses all calls would be connected to for each of them."""
    connection = SharedConnection(pool_of(server), 30)
    await connection.exchange([("PING",)])
    before = server.client.info("stats")["total_connections_received"]
    clock = asyncio.get_running_loop().time
    began = clock()
    while clock() < began + 5 * RENEW_SECONDS:
        await connection.exchange([("PING",)])
        connection.renew()
    renewing = line_of(connection)._renewing
    connection.renew()
    assert line_of(connection)._renewing is renewing  # one timer for all
    assert 2 <= server.client.info("stats")["total_connections_received"] - before <= 5
    connection.close()


async def test_who_waits_for_a_full_connection_uses_the_next_one_if_it_is_lost(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    await connection.exchange([("PING",)])
    with frozen(server):
        line = line_of(connection)
        filling = asyncio.create_task(exchanged(connection, [("ECHO", b"x" * 2**24)]))
        await eventually(lambda: line.is_full)
        late = asyncio.create_task(exchanged(connection, [("ECHO", "late")]))
        await asyncio.sleep(0)
        line.abort("a test")
        with pytest.raises(exceptions.ConnectionError, match="a test"):
            await filling
    assert await late == [b"late"]
    connection.close()


async def test_what_closes_fails_what_waits(server: Server):
    connection = SharedConnection(pool_of(server), 30)
    waiting = asyncio.create_task(exchanged(connection, [BLOCKED]))
    await eventually(lambda: any(client["cmd"] == "blpop" for client in clients(server)))
    connection.close()
    with pytest.raises(exceptions.ConnectionError, match="closed"):
        await waiting
    await eventually(lambda: not clients(server))


async def test_a_write_on_a_lost_connection_may_have_run(server: Server):
    """A read is only unavailable: it can be asked again."""
    valkey = Valkey(server.url)
    await valkey.load_functions()
    await valkey.run(strings.get("k"))
    inside: Any = valkey
    line = line_of(inside._node._shared)
    with frozen(server):
        writing = asyncio.create_task(functions.begin_session(valkey, "k", b"1", 60))
        reading = asyncio.create_task(valkey.run(strings.get("k")))
        await eventually(lambda: len(line._waiting) == 2)
        line.abort("the connection was lost")
        with pytest.raises(OutcomeUnknown):
            await writing
        with pytest.raises(Unavailable):
            await reading
    assert await valkey.run(keyspace.exists("other")) is False
    await valkey.close()


def certificate(folder: Path) -> None:
    """A certificate of this machine that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "laurels")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key").write_bytes(private)


@pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="Valkey's wheel has no TLS; Redis is missing"
)
async def test_it_speaks_tls_with_a_password_and_a_database(tmp_path: Path, unused_tcp_port: int):
    certificate(tmp_path)
    port, trusted = unused_tcp_port, tmp_path / "certificate"
    options = {
        "tls-port": str(port),
        "tls-cert-file": str(trusted),
        "tls-key-file": str(tmp_path / "key"),
        "tls-auth-clients": "no",
        "bind": "127.0.0.1",
    }
    with running(Path(shutil.which("redis-server") or ""), None, **options) as server:
        server.client.execute_command("ACL", "SETUSER", "ada", "on", ">secret", "~*", "&*", "+@all")
        server.client.execute_command("CONFIG", "SET", "requirepass", "other")
        valkey = Valkey(f"rediss://ada:secret@127.0.0.1:{port}/3?ssl_ca_certs={trusted}")
        large = "x" * 2**20
        await asyncio.gather(*(valkey.run(strings.put(f"k{number}", large)) for number in range(9)))
        assert await valkey.run(strings.get_texts([f"k{number}" for number in range(9)])) == [large] * 9
        assert b"db=3" in (await valkey.command("CLIENT", "LIST", "TYPE", "normal"))
        await valkey.close()
        refused = Valkey(f"rediss://ada:wrong@127.0.0.1:{port}?ssl_ca_certs={trusted}")
        with pytest.raises(Unavailable, match="refuses the user or password"):
            await refused.run(strings.get("k"))
        await refused.close()
        stranger = Valkey(f"rediss://ada:secret@127.0.0.1:{port}")
        with pytest.raises(Unavailable, match="certificate"):
            await stranger.run(strings.get("k"))
        await stranger.close()
