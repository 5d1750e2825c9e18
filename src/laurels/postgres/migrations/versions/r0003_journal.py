"""The journal of submissions, the cursors of its streams, and an id for every board."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSON

from laurels.postgres.tables import SCHEMA

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("boards", sa.Column("id", sa.BigInteger), schema=SCHEMA)
    op.execute(f"UPDATE {SCHEMA}.boards SET id = version")  # noqa: S608  # a constant
    op.alter_column("boards", "id", nullable=False, schema=SCHEMA)
    op.create_unique_constraint("uq_boards_id", "boards", ["id"], schema=SCHEMA)
    op.create_table(
        "journal",
        sa.Column("board_id", sa.BigInteger, nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False, comment="of the stream's id"),
        sa.Column("seq", sa.BigInteger, nullable=False, comment="of the stream's id"),
        sa.Column("shard", sa.SmallInteger, nullable=False),
        sa.Column("index", sa.Integer, nullable=False, comment="its place in the call, from 0"),
        sa.Column("kind", sa.Text, nullable=False, comment="submit, remove, …"),
        sa.Column("call", sa.Text, nullable=False),
        sa.Column(
            "now", sa.BigInteger, nullable=False, comment="when the call was made; microseconds since 1970"
        ),
        sa.Column("id", sa.LargeBinary, comment="as the client gave it; null: made, ~CALL.INDEX"),
        sa.Column("member", sa.LargeBinary, nullable=False),
        sa.Column(
            "score",
            sa.Numeric,
            comment="in the fewest digits that give the same double, or exact int64",
        ),
        sa.Column("at", sa.BigInteger, nullable=False, comment="microseconds since 1970"),
        sa.Column("groups", JSON),
        sa.Column("op", sa.Text),
        sa.Column("metadata", JSON),
        sa.PrimaryKeyConstraint("board_id", "recorded_at", "seq", "shard", "index", name="pk_journal"),
        postgresql_partition_by="RANGE (recorded_at)",
        schema=SCHEMA,
    )
    op.create_table(
        "journal_cursors",
        sa.Column("board_id", sa.BigInteger, nullable=False),
        sa.Column("stream", sa.Text, nullable=False, comment="its key in Valkey"),
        sa.Column("milliseconds", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column(
            "attempts",
            sa.SmallInteger,
            nullable=False,
            server_default="0",
            comment="at the entry behind it",
        ),
        sa.PrimaryKeyConstraint("board_id", "stream", name="pk_journal_cursors"),
        schema=SCHEMA,
    )
