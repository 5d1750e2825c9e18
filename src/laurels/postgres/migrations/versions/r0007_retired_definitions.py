"""Definitions that are no longer in force, but whose keys may still exist in Valkey."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from laurels.postgres.tables import SCHEMA

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "retired_definitions",
        sa.Column("number", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("board", sa.Text, nullable=False),
        sa.Column("id", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("definition", JSONB, nullable=False),
        sa.Column("whole", sa.Boolean, nullable=False, comment="everything goes, not only what is left over"),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("number", name="pk_retired_definitions"),
        schema=SCHEMA,
    )
