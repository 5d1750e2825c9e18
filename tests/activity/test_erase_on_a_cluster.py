"""An erased user whose keys lie on several nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from accrual_stage import message

from laurels.activity import valkey_keys

if TYPE_CHECKING:
    from accrual_stage import AccrualStage

READS = {
    b"zset": ("ZRANGE", "0", "-1"),
    b"hash": ("HGETALL",),
    b"set": ("SMEMBERS",),
    b"stream": ("XRANGE", "-", "+"),
    b"string": ("GET",),
    b"list": ("LRANGE", "0", "-1"),
}


async def naming(stage: AccrualStage, user: str) -> list[str]:
    """Every key of every node that is named after the user, or holds the name."""
    found: list[str] = []
    for node in await stage.primaries():
        for key in await node.execute_command("KEYS", "*"):
            command, *rest = READS[await node.execute_command("TYPE", key)]
            held = await node.execute_command(command, key, *rest)
            if user in f"{key} {held}":
                found.append(key.decode())
    return found


async def test_every_key_gets_the_random_name(accruing: AccrualStage):
    ada, *others = await accruing.users(20)
    stranger = str(uuid4())
    for other in others:
        await accruing.add(valkey_keys.CHAT, message(ada, other))
        await accruing.add(valkey_keys.CHAT, message(other, ada))
    await accruing.add(valkey_keys.CHAT, message(ada, stranger))
    await accruing.add(valkey_keys.CHAT, message(ada, "no id"))
    await accruing.accrual.run_once()
    before = [await accruing.day(other) for other in others]
    peers = [len(await accruing.members(accruing.keys.senders(20251024, other))) for other in others]
    assert len(await naming(accruing, ada)) > 20
    await accruing.laurels.erase("campus", ada)
    assert await naming(accruing, ada) == []
    assert [await accruing.day(other) for other in others] == before
    assert [len(await accruing.members(accruing.keys.senders(20251024, other))) for other in others] == peers
    assert await accruing.lag(valkey_keys.CHAT) == 0
    assert await accruing.accrual.parked() == 1
