CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE SEQUENCE board_version;

CREATE TABLE boards (
    project TEXT NOT NULL,
    board TEXT NOT NULL,
    definition JSONB NOT NULL,
    version BIGINT DEFAULT nextval('board_version') NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_boards PRIMARY KEY (project, board)
);

CREATE TABLE api_keys (
    id UUID NOT NULL,
    prefix TEXT NOT NULL,
    digest BYTEA NOT NULL,
    project TEXT NOT NULL,
    scopes TEXT[] NOT NULL,
    label TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    revoked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_api_keys PRIMARY KEY (id),
    CONSTRAINT uq_api_keys_prefix UNIQUE (prefix),
    CONSTRAINT uq_api_keys_digest UNIQUE (digest),
    CONSTRAINT ck_api_keys_scopes CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'submit', 'admin'])
);

COMMENT ON COLUMN api_keys.project IS '''*'' is every project';

INSERT INTO alembic_version (version_num) VALUES ('0001') RETURNING alembic_version.version_num;

-- Running upgrade 0001 -> 0002

CREATE TABLE project_secrets (
    id TEXT NOT NULL,
    project TEXT NOT NULL,
    use TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    key TEXT NOT NULL,
    required BOOLEAN DEFAULT false NOT NULL,
    label TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    revoked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_project_secrets PRIMARY KEY (id),
    CONSTRAINT ck_project_secrets_use CHECK (use IN ('players', 'signatures'))
);

COMMENT ON COLUMN project_secrets.key IS 'the secret itself, or a public key as PEM';

CREATE INDEX ix_project_secrets_project ON project_secrets (project);

UPDATE alembic_version SET version_num='0002' WHERE alembic_version.version_num = '0001';

-- Running upgrade 0002 -> 0003

ALTER TABLE boards ADD COLUMN id BIGINT;

UPDATE boards SET id = version;

ALTER TABLE boards ALTER COLUMN id SET NOT NULL;

ALTER TABLE boards ADD CONSTRAINT uq_boards_id UNIQUE (id);

CREATE TABLE journal (
    board_id BIGINT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
    seq BIGINT NOT NULL,
    shard SMALLINT NOT NULL,
    index INTEGER NOT NULL,
    kind TEXT NOT NULL,
    call TEXT NOT NULL,
    now BIGINT NOT NULL,
    id BYTEA,
    member BYTEA NOT NULL,
    score NUMERIC,
    at BIGINT NOT NULL,
    groups JSON,
    op TEXT,
    metadata JSON,
    CONSTRAINT pk_journal PRIMARY KEY (board_id, recorded_at, seq, shard, index)
)
 PARTITION BY RANGE (recorded_at);

COMMENT ON COLUMN journal.recorded_at IS 'of the stream''s id';

COMMENT ON COLUMN journal.seq IS 'of the stream''s id';

COMMENT ON COLUMN journal.index IS 'its place in the call, from 0';

COMMENT ON COLUMN journal.kind IS 'submit, remove, …';

COMMENT ON COLUMN journal.now IS 'when the call was made; microseconds since 1970';

COMMENT ON COLUMN journal.id IS 'as the client gave it; null: made, ~CALL.INDEX';

COMMENT ON COLUMN journal.score IS 'in the fewest digits that give the same double, or exact int64';

COMMENT ON COLUMN journal.at IS 'microseconds since 1970';

CREATE TABLE journal_cursors (
    board_id BIGINT NOT NULL,
    stream TEXT NOT NULL,
    milliseconds BIGINT DEFAULT '0' NOT NULL,
    seq BIGINT DEFAULT '0' NOT NULL,
    attempts SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_journal_cursors PRIMARY KEY (board_id, stream)
);

COMMENT ON COLUMN journal_cursors.stream IS 'its key in Valkey';

COMMENT ON COLUMN journal_cursors.attempts IS 'at the entry behind it';

UPDATE alembic_version SET version_num='0003' WHERE alembic_version.version_num = '0002';

-- Running upgrade 0003 -> 0004

CREATE TABLE snapshots (
    id UUID NOT NULL,
    board_id BIGINT NOT NULL,
    period TEXT NOT NULL,
    slot TEXT NOT NULL,
    cut TEXT NOT NULL,
    taken_for TIMESTAMP WITH TIME ZONE NOT NULL,
    taken_at TIMESTAMP WITH TIME ZONE NOT NULL,
    starts_at TIMESTAMP WITH TIME ZONE,
    ends_at TIMESTAMP WITH TIME ZONE,
    top BIGINT,
    total BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    CONSTRAINT pk_snapshots PRIMARY KEY (id),
    CONSTRAINT uq_snapshots_identity UNIQUE (board_id, period, cut, taken_for, slot)
);

COMMENT ON COLUMN snapshots.cut IS ''''' is everybody';

COMMENT ON COLUMN snapshots.taken_for IS 'the moment that it is a picture of';

COMMENT ON COLUMN snapshots.taken_at IS 'the moment it was made';

COMMENT ON COLUMN snapshots.top IS 'how many entries were asked for; null: all';

COMMENT ON COLUMN snapshots.total IS 'how many entries the window had';

COMMENT ON COLUMN snapshots.entries IS 'how many of them are here';

CREATE TABLE snapshot_entries (
    snapshot UUID NOT NULL,
    ordinal BIGINT NOT NULL,
    rank BIGINT NOT NULL,
    dense_rank BIGINT NOT NULL,
    member BYTEA NOT NULL,
    score NUMERIC NOT NULL,
    moment BIGINT,
    metadata JSON,
    CONSTRAINT pk_snapshot_entries PRIMARY KEY (snapshot, ordinal),
    CONSTRAINT uq_snapshot_entries_member UNIQUE (snapshot, member)
);

COMMENT ON COLUMN snapshot_entries.moment IS 'when the score was reached, where ties go to the earliest';

CREATE TABLE jobs (
    name TEXT NOT NULL,
    last_due TIMESTAMP WITH TIME ZONE,
    last_started TIMESTAMP WITH TIME ZONE,
    last_finished TIMESTAMP WITH TIME ZONE,
    last_succeeded TIMESTAMP WITH TIME ZONE,
    last_result TEXT DEFAULT '' NOT NULL,
    progress TEXT DEFAULT '' NOT NULL,
    error TEXT DEFAULT '' NOT NULL,
    attempts INTEGER DEFAULT '0' NOT NULL,
    retry_at TIMESTAMP WITH TIME ZONE,
    requested_at TIMESTAMP WITH TIME ZONE,
    worker TEXT DEFAULT '' NOT NULL,
    succeeded BIGINT DEFAULT '0' NOT NULL,
    failed BIGINT DEFAULT '0' NOT NULL,
    seconds FLOAT(53) DEFAULT '0' NOT NULL,
    CONSTRAINT pk_jobs PRIMARY KEY (name)
);

CREATE INDEX ix_journal_at ON journal (board_id, at);

UPDATE alembic_version SET version_num='0004' WHERE alembic_version.version_num = '0003';

-- Running upgrade 0004 -> 0005

CREATE INDEX ix_journal_placed ON journal (board_id, op) WHERE kind = 'place';

UPDATE alembic_version SET version_num='0005' WHERE alembic_version.version_num = '0004';

-- Running upgrade 0005 -> 0006

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
    );

create table if not exists streaks (
        user_id uuid primary key,
        current int not null default 0,
        best int not null default 0,
        last_active_ymd int not null default 0,
        updated_at timestamptz not null default now()
    );

create table if not exists badges (
        id uuid primary key,
        user_id uuid not null,
        kind text not null check (kind in ('daily_top10','weekly_top10','streak_30','social_butterfly')),
        earned_ymd int not null,
        meta jsonb not null default '{}',
        created_at timestamptz not null default now()
    );

create index if not exists idx_badges_user on badges(user_id);

create unique index if not exists uq_badges_identity on badges(user_id, kind, earned_ymd);

create index if not exists ix_badges_earned on badges(earned_ymd);

create index if not exists ix_lb_daily_user on lb_daily(user_id, ymd);

create table if not exists campuses (
        id uuid primary key,
        name text not null,
        timezone text not null,
        created_at timestamptz not null default now()
    );

create table if not exists users (
        id uuid primary key,
        campus_id uuid,
        handle text not null default '',
        avatar_url text,
        created_at timestamptz not null default now()
    );

alter table users add column if not exists campus_id uuid;

alter table users add column if not exists handle text not null default '';

alter table users add column if not exists avatar_url text;

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
    );

create index ix_lb_days_campus on lb_days(campus_id, ymd);

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
    );

create index ix_lb_counters_user on lb_counters(user_id, ymd);

create table lb_outbox (
        id uuid primary key,
        event text not null,
        payload jsonb not null,
        created_at timestamptz not null default now(),
        place int not null,
        number bigint constraint uq_lb_outbox_number unique
    );

create table lb_totals (
        metric text not null,
        labels text not null,
        value double precision not null,
        primary key (metric, labels)
    );

UPDATE alembic_version SET version_num='0006' WHERE alembic_version.version_num = '0005';

-- Running upgrade 0006 -> 0007

CREATE TABLE retired_definitions (
    number BIGINT NOT NULL,
    project TEXT NOT NULL,
    board TEXT NOT NULL,
    id BIGINT NOT NULL,
    version BIGINT NOT NULL,
    definition JSONB NOT NULL,
    whole BOOLEAN NOT NULL,
    retired_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_retired_definitions PRIMARY KEY (number)
);

COMMENT ON COLUMN retired_definitions.whole IS 'everything goes, not only what is left over';

UPDATE alembic_version SET version_num='0007' WHERE alembic_version.version_num = '0006';

-- Running upgrade 0007 -> 0008

ALTER TABLE boards ADD COLUMN owner TEXT;

UPDATE boards SET owner = 'campus' WHERE project = 'campus' AND board ~ '^(social|popularity|engagement|overall)\.';

UPDATE alembic_version SET version_num='0008' WHERE alembic_version.version_num = '0007';

-- Running upgrade 0008 -> 0009

ALTER TABLE journal_cursors ADD COLUMN calls BIGINT DEFAULT '0' NOT NULL;

COMMENT ON COLUMN journal_cursors.calls IS 'archived so far';

CREATE INDEX ix_boards_snapshots ON boards (md5(definition::text)) WHERE definition @? '$.archive.snapshot[*]';

CREATE INDEX ix_boards_rolling ON boards (md5(definition::text)) WHERE definition @? '$.windows[*]?(@.period == "rolling")';

CREATE INDEX ix_boards_feeds ON boards (project, board) WHERE definition @? '$.feeds[*]';

UPDATE alembic_version SET version_num='0009' WHERE alembic_version.version_num = '0008';

