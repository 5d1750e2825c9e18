"""Times as people write them."""

from __future__ import annotations

from datetime import datetime

from laurels.errors import InvalidInput


def parse_time(text: str, field: str = "--at") -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput.at(field, f"write it like 2025-10-24T12:00:00Z, not {text!r}") from None
