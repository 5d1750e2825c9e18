"""Boards that a flow owns.

Indexes mark theirs when they are next opened; the boards of campuses are known by their names.
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


def downgrade() -> None:
    op.drop_column("boards", "owner")
