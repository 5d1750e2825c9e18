"""The flow that owns a board.

The boards of campuses are recognized by their names. An index marks its board when it is next opened.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("boards", sa.Column("owner", sa.Text))
    op.execute(
        "UPDATE boards SET owner = 'campus' WHERE project = 'campus' "
        r"AND board ~ '^(social|popularity|engagement|overall)\.'"
    )
