"""The start reports in one line what a server lacks."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from supported_servers import lacks_waitaof
from valkey_servers import running_valkey

import laurels.valkey
from laurels import Laurels
from laurels.boards.keys import BoardRef
from laurels.errors import StartupError, Unavailable
from laurels.valkey import requirements
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import Generator

    from valkey_servers import Server

    from laurels.embedded import Endpoints

Client = Any  # redis-py types its client only in part
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
# Words of the code that are also commands, but are not sent, or only by a doctor or an embedded server.
NOT_SENT = {"CONFIG", "OBJECT", "WAIT", "WAITAOF"}


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    with running_valkey(appendonly="yes") as server:
        yield server


@pytest.fixture(autouse=True)
def only_the_default_user(server: Server) -> Generator[None]:
    yield
    server.client.execute_command("ACL", "DELUSER", "laurels")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def documented_rules() -> list[str]:
    """The rules that docs/reference/settings.md gives, for a user `laurels` with the password `secret`."""
    found = re.search(r"^ACL SETUSER laurels (.*)$", DOCS.read_text(), re.MULTILINE)
    assert found
    return found[1].split()


def url_of_user(server: Server, *rules: str) -> str:
    server.client.execute_command("ACL", "SETUSER", "laurels", *rules)
    return f"unix://laurels:secret@{server.socket}"


async def refused(url: str) -> str:
    valkey = Valkey(url)
    try:
        with pytest.raises(StartupError) as caught:
            await requirements.require(valkey, "fast")
    finally:
        await valkey.close()
    assert "\n" not in caught.value.detail
    return caught.value.detail


async def test_the_documented_acl_is_enough(server: Server, endpoints: Endpoints):
    url = url_of_user(server, *documented_rules())
    durability = "fast" if lacks_waitaof() else "fsync"
    async with Laurels(
        valkey_url=url, postgres_url=endpoints.postgres_url, durability=durability, jobs=False
    ) as engine:
        await engine.define("acme/acl", {"windows": [{"period": "daily"}, {"period": "rolling", "days": 3}]})
        assert (await engine.submit("acme/acl", "ada", 5)).rank == 1
        assert (await engine.page("acme/acl")).total == 1
        await engine.revocations.listening()
        await engine.drain.finish(BoardRef.parse("acme/acl"))
        assert await engine.remove("acme/acl", "ada")
        await engine.drop("acme/acl", allow_drop="all")


@pytest.mark.parametrize(
    ("denied", "named"),
    [
        ("-zadd", "`ZADD lb:{requirements} 1 m`"),
        ("-info", "`INFO server`"),
        ("-function", "`FUNCTION LIST`"),
        ("-function|load", "`FUNCTION LOAD`"),
        ("-fcall_ro", "`FCALL_RO laurels_missing`"),
        ("resetkeys", "`DEL lb:{requirements}` and"),
        ("resetchannels", "`PUBLISH laurels:requirements m` and 1 more"),
    ],
)
async def test_what_the_acl_denies_is_named(server: Server, denied: str, named: str):
    server.client.execute_command("FUNCTION", "FLUSH")
    detail = await refused(url_of_user(server, *documented_rules(), denied))
    assert named in detail
    assert "ACL SETUSER" in detail


async def test_a_server_without_functions_is_refused():
    with running_valkey(rename_command="FUNCTION NOFUNCTIONS") as server:
        detail = await refused(server.url)
    assert "does not know the command FUNCTION: Laurels needs Redis 7.0" in detail


async def test_a_server_without_waitaof_is_refused_where_durability_needs_it():
    options = {} if lacks_waitaof() else {"rename_command": "WAITAOF NOWAITAOF"}
    with running_valkey(**options) as server:
        valkey = Valkey(server.url)
        await requirements.require(valkey, "fast")
        with pytest.raises(StartupError, match=r"need WAITAOF.*set LAURELS_DURABILITY=fast"):
            await requirements.require(valkey, "replicated")
        await valkey.close()


async def test_a_cluster_s_node_by_the_url_of_a_single_node_is_refused(own_cluster_url: str):
    detail = await refused(own_cluster_url.replace("+cluster", ""))
    assert "begin its URL with redis+cluster://" in detail


async def test_a_single_node_by_the_url_of_a_cluster_is_refused():
    with running_valkey(port=str(free_port())) as server:
        valkey = Valkey(f"redis+cluster://127.0.0.1:{server.client.config_get('port')['port']}")
        with pytest.raises(Unavailable, match="the URL of a single node begins with redis://"):
            await requirements.require(valkey, "fast")
        await valkey.close()


@pytest.mark.parametrize(
    ("version", "is_refused"), [("6.2.14", True), ("7.0.15", False), ("7.2.4", False), ("8.2.0", False)]
)
def test_old_versions_are_refused(version: str, is_refused: bool):  # noqa: FBT001  # a column
    assert bool(requirements.too_old({"redis_version": version})) == is_refused


def test_every_command_that_the_code_sends_is_required(server: Server):
    known = {name.decode().upper() for name in server.client.command_list()}
    room = Path(laurels.valkey.__file__).parent  # alone: tests/test_architecture.py
    files = [*room.glob("*.py"), *room.glob("lua/*.lua")]
    code = [file.read_text() for file in files if file.name != "requirements.py"]
    sent = {word for text in code for word in re.findall(r"[\"\']([A-Z_]{3,})[\"\']", text)} & known
    required = {command.split()[0] for command in requirements.COMMANDS}
    assert sent - NOT_SENT <= required
