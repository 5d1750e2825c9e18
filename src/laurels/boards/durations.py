"""Lengths of time in a definition: ISO durations, and a window's `keep`. Pure."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, TypeAdapter, ValidationError


def _parse_keep(keep: object) -> object:
    """A whole number of windows, or an ISO duration; one message for everything else."""
    if isinstance(keep, str):
        try:
            keep = _DURATION.validate_python(keep)
        except ValidationError:
            keep = None
    if isinstance(keep, timedelta) and keep > timedelta(0):
        return keep
    if isinstance(keep, int) and not isinstance(keep, bool) and keep >= 1:
        return keep
    raise ValueError("is a number of windows from 1, or an ISO duration such as 'P30D'")


def _parse_duration(duration: object) -> object:
    """An ISO duration. A bare number is refused, because it has no unit."""
    if isinstance(duration, timedelta):
        return duration
    if isinstance(duration, str) and duration.startswith("P"):
        with suppress(ValidationError):
            return _DURATION.validate_python(duration)
    raise ValueError("is an ISO duration such as 'P1D'")


def duration_text(duration: timedelta) -> str:
    """The ISO text in days and smaller units, as in RFC 3339: years and months vary in length.

    >>> duration_text(timedelta(days=400, hours=2, seconds=0.5))
    'P400DT2H0.5S'
    """
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{duration.microseconds:06}".rstrip("0").rstrip(".")
    parts = ((f"{hours}H", hours), (f"{minutes}M", minutes), (f"{seconds}{fraction}S", seconds or fraction))
    clock = "".join(text for text, value in parts if value)
    days = f"{duration.days}D" if duration.days or not clock else ""
    return f"P{days}{'T' if clock else ''}{clock}"


def _written(value: object) -> object:
    return duration_text(value) if isinstance(value, timedelta) else value


_DURATION: TypeAdapter[timedelta] = TypeAdapter(timedelta)
Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration, json_schema_input_type=timedelta),
    PlainSerializer(_written, when_used="json"),
]
Keep = Annotated[
    int | timedelta,
    BeforeValidator(_parse_keep, json_schema_input_type=Annotated[int, Field(ge=1)] | timedelta),
    PlainSerializer(_written, when_used="json"),
]
