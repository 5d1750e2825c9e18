"""Checks at the start whether Valkey can be as durable as configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laurels.valkey.client import Valkey
    from laurels.valkey.messages import Durability


async def lacking(valkey: Valkey, durability: Durability, replicas: int) -> str | None:
    """What the primaries lack for this durability, and how to fix it; None when nothing."""
    if durability == "fast":
        return None
    for persistence in await valkey.infos("persistence"):
        if lack := no_file(persistence):
            return lack
    if durability == "replicated":
        for replication in await valkey.infos("replication"):
            if lack := too_few(replication, replicas):
                return lack
    return None


def no_file(persistence: Mapping[str, str]) -> str | None:
    if persistence.get("aof_enabled") == "1":
        return None
    return "Valkey keeps no append-only file: set `appendonly yes` there"


def too_few(replication: Mapping[str, str], replicas: int) -> str | None:
    connected = int(replication.get("connected_slaves", 0))
    if connected >= replicas:
        return None
    return f"a primary of Valkey has {connected} replicas connected, not {replicas}: start more there"


async def require(valkey: Valkey, durability: Durability, replicas: int) -> None:
    """Raises `StartupError` if Valkey lacks something for this durability."""
    if lack := await lacking(valkey, durability, replicas):
        raise StartupError(f"durability is {durability!r}, but {lack}, or choose another durability")


async def sync_always(valkey: Valkey) -> None:
    """Sets `appendfsync always`. With the default, waiting for the disk takes up to a second."""
    await valkey.command("CONFIG", "SET", "appendfsync", "always")
