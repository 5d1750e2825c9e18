"""Indexes of the boards that background work concerns, and how many calls each journal has archived.

Calls that were archived before are not counted.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from laurels.postgres.tables import SCHEMA

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column(
        "journal_cursors",
        sa.Column("calls", sa.BigInteger, nullable=False, server_default="0", comment="archived so far"),
        schema=SCHEMA,
    )
    digest = sa.text("md5(definition::text)")
    snapshots = sa.text("definition @? '$.archive.snapshot[*]'")
    rolling = sa.text("""definition @? '$.windows[*]?(@.period == "rolling")'""")
    feeds = sa.text("definition @? '$.feeds[*]'")
    op.create_index("ix_boards_snapshots", "boards", [digest], schema=SCHEMA, postgresql_where=snapshots)
    op.create_index("ix_boards_rolling", "boards", [digest], schema=SCHEMA, postgresql_where=rolling)
    op.create_index("ix_boards_feeds", "boards", ["project", "board"], schema=SCHEMA, postgresql_where=feeds)
