"""Timezones, by the tzdata wheel and never by the machine: so that every machine cuts the same windows."""

from __future__ import annotations

from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo


@cache
def zone_names() -> frozenset[str]:
    """Every IANA name that the wheel knows."""
    return frozenset((resources.files("tzdata") / "zones").read_text(encoding="utf-8").split())


@cache
def zone(name: str) -> ZoneInfo:
    """The zone of that name; raises `LookupError` for a name that is not IANA's."""
    if name not in zone_names():
        raise LookupError(name)
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)
