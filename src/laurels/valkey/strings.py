"""Commands on strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.valkey.command import Command, as_is, optional_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.valkey.client import Value


def get(key: str) -> Command[bytes | None]:
    return Command(("GET", key), as_is)


def get_texts(keys: Sequence[str]) -> Command[list[str | None]]:
    """The keys lie in one slot."""
    return Command(("MGET", *keys), optional_texts)


def put(key: str, value: Value, *, seconds: int = 0, if_absent: bool = False) -> Command[bool]:
    """Whether the value was set. `seconds`: the expiry; 0 for none."""
    expiry = ("EX", seconds) if seconds else ()
    return Command(("SET", key, value, *expiry, *(("NX",) if if_absent else ())), bool)
