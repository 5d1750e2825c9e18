"""People and places."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    _create("people", "avatar_url", "place", "timezone")
    _create("places", "timezone")
    op.alter_column("places", "timezone", comment="null: the default timezone")


def _create(table: str, *texts: str) -> None:
    op.create_table(
        table,
        sa.Column("project", sa.Text, primary_key=True),
        sa.Column("id", sa.Text(collation="C"), primary_key=True),
        sa.Column("name", sa.Text),
        *(sa.Column(name, sa.Text) for name in texts),
        sa.Column("id_key", sa.Text(collation="C"), nullable=False),
        sa.Column("name_key", sa.Text(collation="C")),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    )
    for key in ("id_key", "name_key"):
        op.create_index(f"ix_{table}_{key}", table, ["project", key, "id"])
