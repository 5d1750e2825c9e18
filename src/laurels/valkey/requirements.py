"""Checks at the start what Laurels needs of Valkey or Redis: version, functions, permissions.

A command that is refused later would leave a call half done, since functions do not roll back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from redis import exceptions

from laurels.errors import StartupError, Unavailable
from laurels.outcomes import Outcome, of_valkey
from laurels.valkey.client import LIBRARY, library_code
from laurels.valkey.refusals import error_reply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laurels.valkey.client import Reply, Valkey, Value
    from laurels.valkey.messages import Durability

OLDEST_REDIS: Final = (7, 0)
"""The first with functions. Every Valkey reports a `redis_version` of 7.2 or above."""

KEY: Final = "lb:{requirements}"
"""An example of a board's key, for permission checks; it is never written."""
CHANNEL: Final = "laurels:requirements"

# Each with enough words for Valkey to find the key or channel. A test compares them with the code's calls.
COMMANDS: Final = (
    "ASKING", "CLUSTER SLOTS", "DEL {key}", "EXISTS {key}", "EXPIRE {key} 1",
    "FCALL name 1 {key}", "FCALL_RO name 1 {key}", "FUNCTION LIST", "FUNCTION LOAD code",
    "GET {key}", "HDEL {key} f", "HGET {key} f", "HGETALL {key}", "HINCRBY {key} f 1", "HLEN {key}",
    "HMGET {key} f", "HSCAN {key} 0", "HSET {key} f v", "HSETNX {key} f v", "INFO", "LINDEX {key} 0",
    "LLEN {key}", "LRANGE {key} 0 1", "LREM {key} 0 v", "LTRIM {key} 0 1",
    "MEMORY USAGE {key}", "MGET {key}", "PERSIST {key}", "PING",
    "PUBLISH {channel} m", "RENAME {key} {key}", "RENAMENX {key} {key}", "RPUSH {key} v",
    "SADD {key} m", "SCAN 0", "SCARD {key}", "SET {key} v", "SINTERCARD 1 {key}", "SMEMBERS {key}",
    "SMISMEMBER {key} m", "SPOP {key}", "SRANDMEMBER {key}", "SREM {key} m", "SSCAN {key} 0",
    "SUBSCRIBE {channel}", "TIME", "TTL {key}",
    "TYPE {key}", "UNLINK {key}", "XADD {key} * f v", "XDEL {key} 0-1",
    "XGROUP CREATE {key} g 0", "XGROUP DESTROY {key} g", "XGROUP SETID {key} g 0",
    "XINFO GROUPS {key}", "XINFO STREAM {key}", "XLEN {key}", "XRANGE {key} - +",
    "XREAD STREAMS {key} 0", "XREVRANGE {key} + -", "XSETID {key} 0-1", "XTRIM {key} MAXLEN 1",
    "ZADD {key} 1 m", "ZCARD {key}", "ZCOUNT {key} 0 1", "ZMSCORE {key} m",
    "ZRANGE {key} 0 1", "ZRANK {key} m", "ZREM {key} m", "ZREMRANGEBYRANK {key} 0 1",
    "ZREMRANGEBYSCORE {key} 0 1", "ZREVRANGE {key} 0 1", "ZREVRANK {key} m", "ZSCAN {key} 0",
)  # fmt: skip
WAITING: Final[dict[Durability, tuple[str, ...]]] = {
    "fast": (),
    "fsync": ("WAITAOF 1 0 1",),
    "replicated": ("WAITAOF 1 0 1", "WAIT 1 1"),
}


async def require(valkey: Valkey, durability: Durability) -> None:
    """Loads the functions. Raises `StartupError` with what the server lacks and how to fix it."""
    for server in await _ask(valkey, "INFO", "server"):
        if lack := too_old(server):
            raise StartupError(lack)
        if "cluster" in {server.get("server_mode"), server.get("redis_mode")} and not valkey.is_cluster:
            raise StartupError(
                "Valkey is a cluster: begin its URL with redis+cluster:// or rediss+cluster://"
            )
    await _ask(valkey, "FUNCTION", "LIST", "LIBRARYNAME", LIBRARY)
    if not await valkey.functions_are_current():
        await _ask(valkey, "FUNCTION", "LOAD", "REPLACE", library_code())
    if lack := await lacking(valkey, durability):
        raise StartupError(lack)


async def takes_writes(valkey: Valkey) -> bool:
    """False if memory is full; raises `Unavailable` if a primary refuses writes for another reason."""
    lacks_memory = False
    for reply in await valkey.ask_primaries("FCALL", "laurels_writable", 0):
        text = error_reply(reply) if isinstance(reply, Exception) else None
        meaning = of_valkey(text or "", writing=False)
        if text and meaning.outcome is Outcome.DEFECT:
            raise reply
        if text and not text.startswith("OOM "):
            raise Unavailable(text, advice=f"Valkey refuses: {meaning.advice}")
        lacks_memory |= bool(text)
    return not lacks_memory


async def lacking(valkey: Valkey, durability: Durability) -> str | None:
    """The commands that a primary does not know or denies; None when none. Needs the functions loaded."""
    asked = [command.format(key=KEY, channel=CHANNEL) for command in (*COMMANDS, *WAITING[durability])]
    for reply in await _ask(valkey, "FCALL_RO", "laurels_missing", 0, *asked):
        found = {reply[i].decode(): reply[i + 1] for i in range(0, len(reply), 2)}
        if unknown := [command for command, why in found.items() if why == b"unknown"]:
            return _unknown(unknown[0])
        if denied := list(found):
            return _denied(denied)
    return None


def too_old(server: Mapping[str, str]) -> str | None:
    version = str(server.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) >= OLDEST_REDIS:
        return None
    return f"Redis {version} is too old: upgrade it to Redis 7.0 or newer, or to Valkey 8 or newer"


async def _ask(valkey: Valkey, *words: Value) -> list[Reply]:
    replies = await valkey.ask_primaries(*words)
    for reply in replies:
        if isinstance(reply, exceptions.NoPermissionError):
            raise StartupError(_denied([" ".join(map(str, words[:2]))]))
        if isinstance(reply, exceptions.ResponseError) and "unknown" in str(reply).lower():
            raise StartupError(_unknown(str(words[0])))
        if isinstance(reply, Exception):
            raise StartupError(f"Valkey refused {words[0]}: {str(reply).splitlines()[0]}") from reply
    return replies


def _unknown(command: str) -> str:
    name = command.split(maxsplit=1)[0]
    if name == "WAITAOF":
        return (
            "durability `fsync` and `replicated` need WAITAOF, which this server does not know: "
            "upgrade it to Redis 7.2 or Valkey 8, or set LAURELS_DURABILITY=fast"
        )
    return (
        f"the server does not know the command {name}: Laurels needs Redis 7.0 or newer, or Valkey 8 or newer"
    )


def _denied(commands: Sequence[str]) -> str:
    others = f" and {len(commands) - 1} more commands" if commands[1:] else ""
    return (
        f"Valkey's ACL denies its user `{commands[0]}`{others}: allow the commands, the keys lb:* and "
        "laurels:* and the channels laurels:* with ACL SETUSER, as docs/reference/settings.md shows"
    )
