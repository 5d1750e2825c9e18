"""Timezones from the tzdata wheel, never from the machine, so that every machine has the same windows."""

from __future__ import annotations

from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo


@cache
def zone_names() -> frozenset[str]:
    """Every IANA name in the wheel."""
    return frozenset((resources.files("tzdata") / "zones").read_text(encoding="utf-8").split())


@cache
def zone(name: str) -> ZoneInfo:
    """Raises `LookupError` for a name that is not an IANA timezone."""
    if name not in zone_names():
        raise LookupError(name)
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)
