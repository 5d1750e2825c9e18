"""The tables after the newest migration. A test compares the two.

They are in a schema of their own, except those that the document of campuses names plainly: these are in the
default schema of the connection.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BLANK_SCHEMA,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB

SCHEMA: Final = "laurels"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    },
)

# One sequence for all boards. A board that is dropped and defined again never gets a version that it had
# before, so cursors and ETags of the old version stay invalid.
board_version = Sequence("board_version", metadata=metadata)

# Conditions on boards that few boards meet. Each has an index, which only a query with the same text uses.
WITH_SNAPSHOTS = text("definition @? '$.archive.snapshot[*]'")
WITH_ROLLING = text("""definition @? '$.windows[*]?(@.period == "rolling")'""")
WITH_FEEDS = text("definition @? '$.feeds[*]'")
WITH_KEYS = text("definition ? 'keys'")
DIGEST = text("md5(definition::text)")

boards = Table(
    "boards",
    metadata,
    Column("project", Text, primary_key=True),
    Column("board", Text, primary_key=True),
    Column("definition", JSONB, nullable=False),
    Column("version", BigInteger, nullable=False, server_default=board_version.next_value()),
    # The first version, which no other board ever has. The journal and the snapshots refer to a board by it.
    Column("id", BigInteger, nullable=False, unique=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The flow that owns the board: `campus` or `index`.
    Column("owner", Text),
    # Of these boards, background work first reads the different definitions.
    Index("ix_boards_snapshots", DIGEST, postgresql_where=WITH_SNAPSHOTS),
    Index("ix_boards_rolling", DIGEST, postgresql_where=WITH_ROLLING),
    Index("ix_boards_feeds", "project", "board", postgresql_where=WITH_FEEDS),
)

# Definitions that are no longer in force, but whose keys may still exist in Valkey. The transaction that
# retires a definition writes the row; it is deleted after the keys.
retired_definitions = Table(
    "retired_definitions",
    metadata,
    # From the sequence of versions: after the retired version, before the next one.
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("project", Text, nullable=False),
    Column("board", Text, nullable=False),
    Column("id", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("definition", JSONB, nullable=False),
    Column("whole", Boolean, nullable=False, comment="everything goes, not only what is left over"),
    Column("retired_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("prefix", Text, nullable=False, unique=True),
    # SHA-256 of the whole key. A key has 256 random bits, so a slow or salted hash would add no protection.
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("project", Text, nullable=False, comment="'*' is every project"),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("label", Text, nullable=False, server_default=""),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("revoked_at", DateTime(timezone=True)),
    CheckConstraint("cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'submit', 'admin']", name="scopes"),
)

project_secrets = Table(
    "project_secrets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, nullable=False, index=True),
    Column("use", Text, nullable=False),
    Column("algorithm", Text, nullable=False),
    # Not a digest, because verifying a token or a signature needs the secret itself.
    Column("key", Text, nullable=False, comment="the secret itself, or a public key as PEM"),
    Column("required", Boolean, nullable=False, server_default=false()),
    Column("label", Text, nullable=False, server_default=""),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("revoked_at", DateTime(timezone=True)),
    CheckConstraint("use IN ('players', 'signatures')", name="use"),
)

# A window at a moment. The id is a hash of the identity, so taking a snapshot again replaces it.
snapshots = Table(
    "snapshots",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("board_id", BigInteger, nullable=False),
    Column("period", Text, nullable=False),
    Column("slot", Text, nullable=False),
    Column("cut", Text, nullable=False, comment="'' is everybody"),
    Column(
        "taken_for", DateTime(timezone=True), nullable=False, comment="the moment that it is a picture of"
    ),
    Column("taken_at", DateTime(timezone=True), nullable=False, comment="the moment it was made"),
    Column("starts_at", DateTime(timezone=True)),
    Column("ends_at", DateTime(timezone=True)),
    Column("top", BigInteger, comment="how many entries were asked for; null: all"),
    Column("total", BigInteger, nullable=False, comment="how many entries the window had"),
    Column("entries", BigInteger, nullable=False, comment="how many of them are here"),
    UniqueConstraint("board_id", "period", "cut", "taken_for", "slot", name="uq_snapshots_identity"),
)

# With the values that entries were ranked by; see `boards/ordering.py`.
snapshot_entries = Table(
    "snapshot_entries",
    metadata,
    Column("snapshot", Uuid, primary_key=True),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    Column("rank", BigInteger, nullable=False),
    Column("dense_rank", BigInteger, nullable=False),
    Column("member", LargeBinary, nullable=False),
    Column("score", Numeric, nullable=False),
    Column("moment", BigInteger, comment="when the score was reached, where ties go to the earliest"),
    Column("metadata", JSON),
    UniqueConstraint("snapshot", "member", name="uq_snapshot_entries_member"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("name", Text, primary_key=True),
    Column("last_due", DateTime(timezone=True)),
    Column("last_started", DateTime(timezone=True)),
    Column("last_finished", DateTime(timezone=True)),
    Column("last_succeeded", DateTime(timezone=True)),
    Column("last_result", Text, nullable=False, server_default=""),
    Column("progress", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("retry_at", DateTime(timezone=True)),
    Column("requested_at", DateTime(timezone=True)),
    Column("worker", Text, nullable=False, server_default=""),
    Column("succeeded", BigInteger, nullable=False, server_default="0"),
    Column("failed", BigInteger, nullable=False, server_default="0"),
    Column("seconds", Float(53), nullable=False, server_default="0"),
)

# A row for each accepted submission, and for every other change of an entry. Its identity is the id of the
# stream's entry (milliseconds and a number) and its place in the call, so no row is stored twice. There is a
# partition for each month; `journal/store/rows.py` creates them.
journal = Table(
    "journal",
    metadata,
    Column("board_id", BigInteger, primary_key=True, autoincrement=False),
    Column("recorded_at", DateTime(timezone=True), primary_key=True, comment="of the stream's id"),
    Column("seq", BigInteger, primary_key=True, comment="of the stream's id"),
    Column("shard", SmallInteger, primary_key=True),
    Column("index", Integer, primary_key=True, comment="its place in the call, from 0"),
    Column("kind", Text, nullable=False, comment="submit, remove, …"),
    Column("call", Text, nullable=False),
    Column("now", BigInteger, nullable=False, comment="when the call was made; microseconds since 1970"),
    # Bytes, like the member, because text in PostgreSQL cannot hold U+0000.
    Column("id", LargeBinary, comment="as the client gave it; null: made, ~CALL.INDEX"),
    Column("member", LargeBinary, nullable=False),
    Column("score", Numeric, comment="in the fewest digits that give the same double, or exact int64"),
    Column("at", BigInteger, nullable=False, comment="microseconds since 1970"),
    # Not jsonb, which refuses U+0000 and does not keep the text.
    Column("groups", JSON),
    Column("op", Text),
    Column("metadata", JSON),
    # For recounting a window: the submissions of its time,
    Index("ix_journal_at", "board_id", "at"),
    # and the entries placed in it, by its name.
    Index("ix_journal_placed", "board_id", "op", postgresql_where=text("kind = 'place'")),
    postgresql_partition_by="RANGE (recorded_at)",
)

journal_cursors = Table(
    "journal_cursors",
    metadata,
    Column("board_id", BigInteger, primary_key=True, autoincrement=False),
    Column("stream", Text, primary_key=True, comment="its key in Valkey"),
    # Everything up to this id is archived.
    Column("milliseconds", BigInteger, nullable=False, server_default="0"),
    Column("seq", BigInteger, nullable=False, server_default="0"),
    Column("attempts", SmallInteger, nullable=False, server_default="0", comment="at the entry behind it"),
    Column("calls", BigInteger, nullable=False, server_default="0", comment="archived so far"),
)

# Who the members are. The keys are what a search compares with: texts without their case.
people = Table(
    "people",
    metadata,
    Column("project", Text, primary_key=True),
    Column("id", Text(collation="C"), primary_key=True),
    Column("name", Text),
    Column("avatar_url", Text),
    Column("place", Text),
    Column("timezone", Text),
    Column("id_key", Text(collation="C"), nullable=False),
    Column("name_key", Text(collation="C")),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index("ix_people_id_key", "project", "id_key", "id"),
    Index("ix_people_name_key", "project", "name_key", "id"),
)

places = Table(
    "places",
    metadata,
    Column("project", Text, primary_key=True),
    Column("id", Text(collation="C"), primary_key=True),
    Column("name", Text),
    Column("timezone", Text, comment="null: the default timezone"),
    Column("id_key", Text(collation="C"), nullable=False),
    Column("name_key", Text(collation="C")),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index("ix_places_id_key", "project", "id_key", "id"),
    Index("ix_places_name_key", "project", "name_key", "id"),
)

lb_daily = Table(
    "lb_daily",
    metadata,
    Column("ymd", Integer, primary_key=True, autoincrement=False),
    Column("campus_id", Uuid(as_uuid=False), primary_key=True),
    Column("user_id", Uuid(as_uuid=False), primary_key=True),
    # Each in the fewest digits that give the same double.
    Column("social", Numeric, nullable=False),
    Column("engagement", Numeric, nullable=False),
    Column("popularity", Numeric, nullable=False),
    Column("overall", Numeric, nullable=False),
    Column("rank_overall", Integer),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index("ix_lb_daily_user", "user_id", "ymd"),
    schema=BLANK_SCHEMA,
)

streaks = Table(
    "streaks",
    metadata,
    Column("user_id", Uuid(as_uuid=False), primary_key=True),
    Column("current", Integer, nullable=False, server_default="0"),
    Column("best", Integer, nullable=False, server_default="0"),
    Column("last_active_ymd", Integer, nullable=False, server_default="0"),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    schema=BLANK_SCHEMA,
)

badges = Table(
    "badges",
    metadata,
    Column("id", Uuid(as_uuid=False), primary_key=True),
    Column("user_id", Uuid(as_uuid=False), nullable=False),
    Column("kind", Text, nullable=False),
    Column("earned_ymd", Integer, nullable=False),
    Column("meta", JSONB, nullable=False, server_default="{}"),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("kind IN ('daily_top10','weekly_top10','streak_30','social_butterfly')", name="kind"),
    Index("idx_badges_user", "user_id"),
    Index("uq_badges_identity", "user_id", "kind", "earned_ymd", unique=True),
    Index("ix_badges_earned", "earned_ymd"),
    schema=BLANK_SCHEMA,
)

# Days that are finalized or about to be. `asked` counts the reasons to finalize a day, `answered` those acted
# on.
lb_days = Table(
    "lb_days",
    metadata,
    Column("ymd", Integer, primary_key=True, autoincrement=False),
    Column("campus_id", Uuid(as_uuid=False), primary_key=True),
    Column("policy", Integer, nullable=False, server_default="0"),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("active", Integer, nullable=False, server_default="0"),
    Column("asked", BigInteger, nullable=False, server_default="1"),
    Column("answered", BigInteger, nullable=False, server_default="0"),
    Column("finalized_at", DateTime(timezone=True)),
    Index("ix_lb_days_campus", "campus_id", "ymd"),
)

# The counters of a finalized day, for scoring it again after its hashes have expired.
lb_counters = Table(
    "lb_counters",
    metadata,
    Column("ymd", Integer, primary_key=True, autoincrement=False),
    Column("campus_id", Uuid(as_uuid=False), primary_key=True),
    Column("user_id", Uuid(as_uuid=False), primary_key=True),
    Column("invites_accepted", Integer, nullable=False),
    Column("friends_new", Integer, nullable=False),
    Column("dm_sent", Integer, nullable=False),
    Column("room_sent", Integer, nullable=False),
    Column("acts_played", Integer, nullable=False),
    Column("acts_won", Integer, nullable=False),
    Column("rooms_joined", Integer, nullable=False),
    Column("rooms_created", Integer, nullable=False),
    Column("uniq_senders", Integer, nullable=False),
    Column("uniq_invite_accept_from", Integer, nullable=False),
    Column("peers", Integer, nullable=False),
    Column("streak", Integer, nullable=False),
    Index("ix_lb_counters_user", "user_id", "ymd"),
)

# Events of finalized days that are to be sent. The relay numbers rows in the order of their commits.
lb_outbox = Table(
    "lb_outbox",
    metadata,
    Column("id", Uuid(as_uuid=False), primary_key=True),
    Column("event", Text, nullable=False),
    Column("payload", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("place", Integer, nullable=False),
    Column("number", BigInteger, unique=True),
)

# Metrics of the campuses, summed over all processes.
lb_totals = Table(
    "lb_totals",
    metadata,
    Column("metric", Text, primary_key=True),
    Column("labels", Text, primary_key=True),
    Column("value", Float(53), nullable=False),
)
