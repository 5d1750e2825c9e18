"""How many connections the limit of open files allows."""

from __future__ import annotations

import resource
from typing import Final

from laurels.logs import get_logger

# Left for the stores' connections, logs, libraries, and connections that Laurels is refusing.
RESERVED: Final = 256

log = get_logger("laurels.serve")


def connections_within(wanted: int) -> int:
    """How many of the wanted connections the limit allows. Raises this process's soft limit if it can."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted + RESERVED:
        return wanted
    raised = wanted + RESERVED if hard == resource.RLIM_INFINITY else min(wanted + RESERVED, hard)
    if raised > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        except (OSError, ValueError):  # macOS has another, hidden limit
            raised = soft
    fitting = max(1, min(wanted, raised - RESERVED))
    if fitting < wanted:
        log.warning(
            "the limit of open files allows fewer connections than max_connections",
            connections=fitting,
            max_connections=wanted,
            todo=f"raise the limit of open files (ulimit -n) to {wanted + RESERVED}",
        )
    return fitting
