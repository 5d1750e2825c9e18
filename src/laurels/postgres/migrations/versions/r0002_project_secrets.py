"""Secrets of projects, which verify players' tokens and signatures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from laurels.postgres.tables import SCHEMA

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "project_secrets",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("use", sa.Text, nullable=False),
        sa.Column("algorithm", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False, comment="the secret itself, or a public key as PEM"),
        sa.Column("required", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("label", sa.Text, nullable=False, server_default=""),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_project_secrets"),
        sa.CheckConstraint("use IN ('players', 'signatures')", name="ck_project_secrets_use"),
        schema=SCHEMA,
    )
    op.create_index("ix_project_secrets_project", "project_secrets", ["project"], schema=SCHEMA)
