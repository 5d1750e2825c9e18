"""Snapshots of windows, the states of jobs, and an index of the journal by the submission's time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSON

from laurels.postgres.tables import SCHEMA

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "snapshots",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("board_id", sa.BigInteger, nullable=False),
        sa.Column("period", sa.Text, nullable=False),
        sa.Column("slot", sa.Text, nullable=False),
        sa.Column("cut", sa.Text, nullable=False, comment="'' is everybody"),
        sa.Column(
            "taken_for",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="the moment that it is a picture of",
        ),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False, comment="the moment it was made"),
        sa.Column("starts_at", sa.DateTime(timezone=True)),
        sa.Column("ends_at", sa.DateTime(timezone=True)),
        sa.Column("top", sa.BigInteger, comment="how many entries were asked for; null: all"),
        sa.Column("total", sa.BigInteger, nullable=False, comment="how many entries the window had"),
        sa.Column("entries", sa.BigInteger, nullable=False, comment="how many of them are here"),
        sa.PrimaryKeyConstraint("id", name="pk_snapshots"),
        sa.UniqueConstraint("board_id", "period", "cut", "taken_for", "slot", name="uq_snapshots_identity"),
        schema=SCHEMA,
    )
    op.create_table(
        "snapshot_entries",
        sa.Column("snapshot", sa.Uuid, nullable=False),
        sa.Column("ordinal", sa.BigInteger, nullable=False),
        sa.Column("rank", sa.BigInteger, nullable=False),
        sa.Column("dense_rank", sa.BigInteger, nullable=False),
        sa.Column("member", sa.LargeBinary, nullable=False),
        sa.Column("score", sa.Numeric, nullable=False),
        sa.Column(
            "moment", sa.BigInteger, comment="when the score was reached, where ties go to the earliest"
        ),
        sa.Column("metadata", JSON),
        sa.PrimaryKeyConstraint("snapshot", "ordinal", name="pk_snapshot_entries"),
        sa.UniqueConstraint("snapshot", "member", name="uq_snapshot_entries_member"),
        schema=SCHEMA,
    )
    op.create_table(
        "jobs",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("last_due", sa.DateTime(timezone=True)),
        sa.Column("last_started", sa.DateTime(timezone=True)),
        sa.Column("last_finished", sa.DateTime(timezone=True)),
        sa.Column("last_succeeded", sa.DateTime(timezone=True)),
        sa.Column("last_result", sa.Text, nullable=False, server_default=""),
        sa.Column("progress", sa.Text, nullable=False, server_default=""),
        sa.Column("error", sa.Text, nullable=False, server_default=""),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("retry_at", sa.DateTime(timezone=True)),
        sa.Column("requested_at", sa.DateTime(timezone=True)),
        sa.Column("worker", sa.Text, nullable=False, server_default=""),
        sa.Column("succeeded", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("failed", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("seconds", sa.Float(53), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("name", name="pk_jobs"),
        schema=SCHEMA,
    )
    op.create_index("ix_journal_at", "journal", ["board_id", "at"], schema=SCHEMA)
