"""Scores and times as people write them."""

from __future__ import annotations

import re
from datetime import datetime

from laurels.errors import InvalidInput


def parse_score(text: str) -> int | float:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else float(text)
    except ValueError:
        raise InvalidInput.at("score", f"must be a number, not {text!r}") from None


def parse_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput.at("--at", f"write it like 2025-10-24T12:00:00Z, not {text!r}") from None
