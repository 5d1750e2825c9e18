"""An index of placed entries in the journal, by their window."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from laurels.postgres.tables import SCHEMA

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index(
        "ix_journal_placed",
        "journal",
        ["board_id", "op"],
        schema=SCHEMA,
        postgresql_where=sa.text("kind = 'place'"),
    )
