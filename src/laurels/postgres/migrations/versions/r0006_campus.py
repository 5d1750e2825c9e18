"""Campuses: their users, finalized days, streaks, badges and events.

A database that an application shares with Laurels may already have `users` or the documented tables.
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"

# The first three are the document's own.
TABLES = (
    """
    create table if not exists lb_daily (
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
    )
    """,
    """
    create table if not exists streaks (
        user_id uuid primary key,
        current int not null default 0,
        best int not null default 0,
        last_active_ymd int not null default 0,
        updated_at timestamptz not null default now()
    )
    """,
    """
    create table if not exists badges (
        id uuid primary key,
        user_id uuid not null,
        kind text not null check (kind in ('daily_top10','weekly_top10','streak_30','social_butterfly')),
        earned_ymd int not null,
        meta jsonb not null default '{}',
        created_at timestamptz not null default now()
    )
    """,
    "create index if not exists idx_badges_user on badges(user_id)",
    "create unique index if not exists uq_badges_identity on badges(user_id, kind, earned_ymd)",
    "create index if not exists ix_badges_earned on badges(earned_ymd)",
    "create index if not exists ix_lb_daily_user on lb_daily(user_id, ymd)",
    """
    create table if not exists campuses (
        id uuid primary key,
        name text not null,
        timezone text not null,
        created_at timestamptz not null default now()
    )
    """,
    """
    create table if not exists users (
        id uuid primary key,
        campus_id uuid,
        handle text not null default '',
        avatar_url text,
        created_at timestamptz not null default now()
    )
    """,
    "alter table users add column if not exists campus_id uuid",
    "alter table users add column if not exists handle text not null default ''",
    "alter table users add column if not exists avatar_url text",
    """
    create table lb_days (
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
    "create index ix_lb_days_campus on lb_days(campus_id, ymd)",
    """
    create table lb_counters (
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
    "create index ix_lb_counters_user on lb_counters(user_id, ymd)",
    """
    create table lb_outbox (
        id uuid primary key,
        event text not null,
        payload jsonb not null,
        created_at timestamptz not null default now(),
        place int not null,
        number bigint constraint uq_lb_outbox_number unique
    )
    """,
    """
    create table lb_totals (
        metric text not null,
        labels text not null,
        value double precision not null,
        primary key (metric, labels)
    )
    """,
)


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)
