"""Campuses: finalized days, streaks, badges and events.

The document of campuses names three tables plainly. They are in the default schema, where the application may
have created them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import op

from laurels.errors import StartupError
from laurels.postgres.schemas import default_schema
from laurels.postgres.tables import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable

revision = "0006"
down_revision = "0005"

# The columns of each table, as the document defines them.
DOCUMENTED = {
    "lb_daily": """
        ymd int not null,
        campus_id uuid not null,
        user_id uuid not null,
        social numeric not null,
        engagement numeric not null,
        popularity numeric not null,
        overall numeric not null,
        rank_overall int,
        created_at timestamptz not null default now(),
        primary key (ymd, campus_id, user_id)
    """,
    "streaks": """
        user_id uuid primary key,
        current int not null default 0,
        best int not null default 0,
        last_active_ymd int not null default 0,
        updated_at timestamptz not null default now()
    """,
    "badges": """
        id uuid primary key,
        user_id uuid not null,
        kind text not null check (kind in ('daily_top10','weekly_top10','streak_30','social_butterfly')),
        earned_ymd int not null,
        meta jsonb not null default '{}',
        created_at timestamptz not null default now()
    """,
}
INDEXES = {
    "lb_daily": ("index if not exists ix_lb_daily_user on {}(user_id, ymd)",),
    "streaks": (),
    "badges": (
        "index if not exists idx_badges_user on {}(user_id)",
        "unique index if not exists uq_badges_identity on {}(user_id, kind, earned_ymd)",
        "index if not exists ix_badges_earned on {}(earned_ymd)",
    ),
}
OWN = (
    f"""
    create table {SCHEMA}.lb_days (
        ymd int not null,
        campus_id uuid not null,
        policy int not null default 0,
        revision int not null default 0,
        active int not null default 0,
        asked bigint not null default 1,
        answered bigint not null default 0,
        finalized_at timestamptz,
        primary key (ymd, campus_id)
    )
    """,
    f"create index ix_lb_days_campus on {SCHEMA}.lb_days(campus_id, ymd)",
    f"""
    create table {SCHEMA}.lb_counters (
        ymd int not null,
        campus_id uuid not null,
        user_id uuid not null,
        invites_accepted int not null,
        friends_new int not null,
        dm_sent int not null,
        room_sent int not null,
        acts_played int not null,
        acts_won int not null,
        rooms_joined int not null,
        rooms_created int not null,
        uniq_senders int not null,
        uniq_invite_accept_from int not null,
        peers int not null,
        streak int not null,
        primary key (ymd, campus_id, user_id)
    )
    """,
    f"create index ix_lb_counters_user on {SCHEMA}.lb_counters(user_id, ymd)",
    f"""
    create table {SCHEMA}.lb_outbox (
        id uuid primary key,
        event text not null,
        payload jsonb not null,
        created_at timestamptz not null default now(),
        place int not null,
        number bigint constraint uq_lb_outbox_number unique
    )
    """,
    f"""
    create table {SCHEMA}.lb_totals (
        metric text not null,
        labels text not null,
        value double precision not null,
        primary key (metric, labels)
    )
    """,
)

_FOUND = sa.text("""
    SELECT format('%I.%I', nspname, relname) AS name, quote_ident(nspname) AS schema,
        pg_has_role(relowner, 'USAGE') AND relkind IN ('r', 'p') AS may_index,
        ARRAY(
            SELECT attname::text FROM pg_attribute WHERE attrelid = pg_class.oid AND NOT attisdropped
        ) AS columns
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE pg_class.oid = to_regclass(:name)
""")


def upgrade() -> None:
    schema = default_schema(op.get_bind())
    for table, columns in DOCUMENTED.items():
        existing = _existing(table, columns, schema)
        if existing is None:
            op.execute(f"create table {schema}.{table} ({columns})")
        for index in _indexes(table, existing or f"{schema}.{table}"):
            op.execute(f"create {index}")
    for statement in OWN:
        op.execute(statement)


def _existing(table: str, columns: str, schema: str) -> str | None:
    """An existing table to use. Another program's table of this name is in the way in this schema only."""
    found = op.get_bind().execute(_FOUND, {"name": table}).one_or_none()
    if found is None:
        return None
    names = [line.split()[0] for line in columns.strip().splitlines()]
    lacking = [name for name in names if name not in (*found.columns, "primary")]
    if not lacking:
        return found.name
    if found.schema != schema:
        return None
    raise StartupError(
        f"the table {found.name} is not the one that Laurels needs for campuses: it has no column "
        f"{', '.join(lacking)}. If it is another program's, let Laurels keep its own: "
        f"ALTER ROLE … SET search_path = {SCHEMA}"
    )


def _indexes(table: str, name: str) -> Iterable[str]:
    found = op.get_bind().execute(_FOUND, {"name": name}).one()
    return (index.format(name) for index in INDEXES[table]) if found.may_index else ()
