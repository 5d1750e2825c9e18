"""People and places."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from laurels.postgres.tables import SCHEMA

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    _create(
        "people",
        sa.Column("avatar_url", sa.Text),
        sa.Column("place", sa.Text),
        sa.Column("timezone", sa.Text),
    )
    _create("places", sa.Column("timezone", sa.Text, comment="null: the default timezone"))


def _create(table: str, *own: sa.Column[str]) -> None:
    op.create_table(
        table,
        sa.Column("project", sa.Text, primary_key=True),
        sa.Column("id", sa.Text(collation="C"), primary_key=True),
        sa.Column("name", sa.Text),
        *own,
        sa.Column("id_key", sa.Text(collation="C"), nullable=False),
        sa.Column("name_key", sa.Text(collation="C")),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        schema=SCHEMA,
    )
    for key in ("id_key", "name_key"):
        op.create_index(f"ix_{table}_{key}", table, ["project", key, "id"], schema=SCHEMA)
