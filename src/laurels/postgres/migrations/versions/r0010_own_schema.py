"""Laurels' tables are in a schema of their own.

The revisions before this one create them there. `postgres/move.py` has moved those that an older version
created in the default schema.
"""

from __future__ import annotations

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Nothing is left to do. The number tells the databases apart."""
