"""The tables, as the newest migration leaves them; a test holds the two together."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    Text,
    Uuid,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)

# One sequence for all boards: one that is dropped and made again never has a version that it had before, so
# whatever was cached or handed out under the old version (a cursor, an ETag) stays stale.
board_version = Sequence("board_version", metadata=metadata)

boards = Table(
    "boards",
    metadata,
    Column("project", Text, primary_key=True),
    Column("board", Text, primary_key=True),
    Column("definition", JSONB, nullable=False),
    Column("version", BigInteger, nullable=False, server_default=board_version.next_value()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("prefix", Text, nullable=False, unique=True),
    # SHA-256 of the whole key. A key has 256 random bits, so there is nothing to guess that a slow or salted
    # hash would protect.
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("project", Text, nullable=False, comment="'*' is every project"),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("label", Text, nullable=False, server_default=""),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("revoked_at", DateTime(timezone=True)),
    CheckConstraint("cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'submit', 'admin']", name="scopes"),
)
