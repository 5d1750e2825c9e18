"""Board definitions and API keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from laurels.postgres.tables import SCHEMA

revision = "0001"
down_revision = None


def upgrade() -> None:
    board_version = sa.Sequence("board_version", schema=SCHEMA)
    op.execute(sa.schema.CreateSequence(board_version))
    op.create_table(
        "boards",
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("board", sa.Text, nullable=False),
        sa.Column("definition", JSONB, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False, server_default=board_version.next_value()),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("project", "board", name="pk_boards"),
        schema=SCHEMA,
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("prefix", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("project", sa.Text, nullable=False, comment="'*' is every project"),
        sa.Column("scopes", ARRAY(sa.Text), nullable=False),
        sa.Column("label", sa.Text, nullable=False, server_default=""),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("prefix", name="uq_api_keys_prefix"),
        sa.UniqueConstraint("digest", name="uq_api_keys_digest"),
        sa.CheckConstraint(
            "cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'submit', 'admin']",
            name="ck_api_keys_scopes",
        ),
        schema=SCHEMA,
    )
