"""Consent to drops: which windows a change puts at risk, and whether the caller named them. Pure.

Consent names windows, not numbers: it covers everything that a window holds at the moment of the change.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from laurels.boards.names import NAME_PATTERN
from laurels.errors import DropNotAllowed, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from laurels.boards.definition import BoardDefinition, Window
    from laurels.boards.keys import BoardRef
    from laurels.errors import Drop

EVERYTHING: Final = "all"
"""Consent to drop a board with everything that it holds."""
RATINGS: Final = "ratings"
"""Names the ratings of a board's players among its windows. No window can have this name."""


def parse_consent(given: str | Iterable[str]) -> frozenset[str]:
    """The named windows, given as `weekly,monthly` or one by one."""
    if given == "":
        raise InvalidInput.at("allow_drop", "name the windows that may be dropped: weekly,monthly")
    names = [
        name.strip() for text in ([given] if isinstance(given, str) else given) for name in text.split(",")
    ]
    for name in names:
        if not re.fullmatch(NAME_PATTERN, name):
            raise InvalidInput.at(
                "allow_drop", f"write it as weekly,monthly: {name[:40]!r} is not a window's name"
            )
    return frozenset(names)


def windows_at_risk(was: BoardDefinition, will_be: BoardDefinition) -> frozenset[str]:
    """The windows that may lose entries or snapshots by the change, even if they have none now."""
    windows = {window.label: window for window in will_be.windows}
    changes_cuts = not set(was.groups) <= set(will_be.groups) or (
        (was.timezone, was.timezones) != (will_be.timezone, will_be.timezones)
    )
    return frozenset(
        window.label
        for window in was.windows
        if changes_cuts or window.label not in windows or _keeps_less(windows[window.label], window)
    )


def check_names(ref: BoardRef, windows: Iterable[Window], allowed: Iterable[str]) -> None:
    """Raises `InvalidInput` for a name that no window has."""
    known = list(dict.fromkeys(window.label for window in windows))
    for name in sorted(allowed):
        if name not in known:
            raise InvalidInput.at("allow_drop", f"{ref} has no window {name!r}; it has: {', '.join(known)}")


def check_change(ref: BoardRef, drops: tuple[Drop, ...], allowed: Collection[str]) -> None:
    """Raises `DropNotAllowed` unless every window that loses something is named."""
    if any(drop.window not in allowed for drop in drops):
        names = ",".join(drop.window for drop in drops)
        raise DropNotAllowed(
            f"the new definition of {ref} would drop {in_words(drops)}; to allow it, pass allow_drop={names}",
            drops,
        )


def check_drop(ref: BoardRef, drops: tuple[Drop, ...], allowed: Collection[str]) -> None:
    """As `check_change`, for dropping the board. `all` names every window."""
    if EVERYTHING not in allowed and any(drop.window not in allowed for drop in drops):
        raise DropNotAllowed(
            f"{ref} holds {in_words(drops)}; to drop it with all of that, pass allow_drop={EVERYTHING}", drops
        )


def in_words(drops: Iterable[Drop]) -> str:
    """`weekly (150,002 entries) and daily (1 entry, 12 snapshots)`."""
    parts = [f"{drop.window} ({counts_of(drop)})" for drop in drops]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def counts_of(drop: Drop) -> str:
    """`150,002 entries, 12 snapshots`."""
    counted = [
        f"{count:,} {singular if count == 1 else plural}"
        for count, singular, plural in (
            (drop.entries, "entry", "entries"),
            (drop.snapshots, "snapshot", "snapshots"),
        )
        if count
    ]
    return ", ".join(counted)


def _keeps_less(new: Window, old: Window) -> bool:
    """Whether the window may be kept for less time. A count and a duration are not compared: True."""
    if new.keep is None or new.keep == old.keep:
        return False
    if isinstance(new.keep, timedelta):
        return not isinstance(old.keep, timedelta) or new.keep < old.keep
    return not isinstance(old.keep, int) or new.keep < old.keep
