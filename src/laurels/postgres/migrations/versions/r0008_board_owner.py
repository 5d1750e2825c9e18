"""The flow that owns a board.

The boards of campuses are recognized by their names. An index marks its board when it is next opened.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from laurels.postgres.tables import SCHEMA

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("boards", sa.Column("owner", sa.Text), schema=SCHEMA)
    op.execute(
        f"UPDATE {SCHEMA}.boards SET owner = 'campus' WHERE project = 'campus' "  # noqa: S608  # a constant
        r"AND board ~ '^(social|popularity|engagement|overall)\.'"
    )
