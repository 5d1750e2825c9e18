"""The journal of what was placed, by the window that it was placed in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index(
        "ix_journal_placed", "journal", ["board_id", "op"], postgresql_where=sa.text("kind = 'place'")
    )


def downgrade() -> None:
    op.drop_index("ix_journal_placed", "journal")
