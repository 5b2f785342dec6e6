-- Everything that a ledger is: the same tables as on SQLite, and what many writers at once need besides. Receipts, contents
-- and seals are the truth; streams, runs, handoffs, statements and keys are derived from receipts and are checked against
-- them by the verifier, column by column; so are touches, from contents. Leases are neither: they only say who works on what
-- just now. Ids are compared byte by byte, whatever the database's own collation is.
--
-- No foreign keys: they would lock a row of the parent in every append, and it is the verifier that must find an orphan.

CREATE TABLE ledger (
    "only" integer PRIMARY KEY CHECK ("only" = 1),
    id text COLLATE "C" NOT NULL,
    root_key text COLLATE "C" NOT NULL
);

-- A stream's row is updated by each of its receipts. No indexed column changes, so with room on the page the update stays
-- on it and touches no index.
CREATE TABLE streams (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    root text COLLATE "C",
    seq bigint NOT NULL,
    head text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    open boolean NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX streams_by_root ON streams (root) WHERE root IS NOT NULL;

-- CACHE 1: a number is drawn under the lock of the stream's row, so within a stream numbers rise with seq. A connection that
-- kept a few numbers for later would break that.
CREATE TABLE receipts (
    number bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    relay_signature bytea NOT NULL,
    cosignature bytea,
    UNIQUE (stream, seq)
);

-- Numbers are drawn before the commit and leave gaps; positions are given after it, in order and without a gap.
CREATE TABLE positions (
    position bigint PRIMARY KEY,
    receipt bigint NOT NULL UNIQUE
);

-- What committed and has no position yet. Rows come and go all the time, so it is vacuumed by count, not by share.
CREATE TABLE unsequenced (
    receipt bigint PRIMARY KEY
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

CREATE TABLE contents (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    receipt bigint NOT NULL,
    place text COLLATE "C" NOT NULL CHECK (place IN ('row', 'file', 'erased')),
    salt bytea,
    body bytea
);

-- Which contents are changes of which file. The path is words: it stands in the content, never in the receipt, and here only
-- for as long as the content is kept.
CREATE TABLE touches (
    content text COLLATE "C" NOT NULL PRIMARY KEY,
    receipt bigint NOT NULL,
    path text COLLATE "C" NOT NULL
);

-- Read backwards: the latest change first. By the hash, because a path may be longer than a row of an index.
CREATE INDEX touches_by_path ON touches (hashtextextended(path, 0), receipt);

CREATE TABLE runs (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    root text COLLATE "C" NOT NULL,
    parent text COLLATE "C",
    handoff text COLLATE "C",
    attempt bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (
        state IN ('open', 'completed', 'failed', 'cancelled', 'lapsed', 'suspended', 'expired')
    ),
    started_at bigint NOT NULL,
    ended_at bigint,
    series text COLLATE "C"
) WITH (fillfactor = 80);

CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_series ON runs (series, id) WHERE series IS NOT NULL;

-- Never 'claimed' here: a claim leaves no receipt, it is a lease. And no index on what a move changes, so that with room on
-- the page a move stays on it and touches no index.
CREATE TABLE handoffs (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    root text COLLATE "C" NOT NULL,
    parent text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    carrier text COLLATE "C" NOT NULL CHECK (carrier IN ('caller', 'worker')),
    state text COLLATE "C" NOT NULL CHECK (
        state IN (
            'held', 'offered', 'ready', 'claimed', 'asked', 'running', 'completed',
            'failed', 'declined', 'denied', 'cancelled', 'expired', 'verified', 'refuted'
        )
    ),
    attempt bigint NOT NULL,
    run text COLLATE "C",
    initiated text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    scope text COLLATE "C",
    key text COLLATE "C",
    deadline bigint
) WITH (fillfactor = 80);

CREATE INDEX handoffs_by_parent ON handoffs (parent);
CREATE UNIQUE INDEX handoffs_by_key ON handoffs (scope, key) WHERE key IS NOT NULL;
CREATE INDEX handoffs_by_deadline ON handoffs (deadline) WHERE deadline IS NOT NULL;

-- One row for each worker-carried handoff that can be claimed (nobody holds it), is claimed, or runs under a lease. What is
-- claimed next is found here alone, however many handoffs there are. Rows come and go: vacuumed by count, not by share.
CREATE TABLE leases (
    handoff text COLLATE "C" NOT NULL PRIMARY KEY,
    agent text COLLATE "C" NOT NULL,
    holder text COLLATE "C",
    token bigint,
    until bigint
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX leases_free ON leases (agent, handoff) WHERE holder IS NULL;
CREATE INDEX leases_held ON leases (until) WHERE until IS NOT NULL;

-- The handoffs as a reader sees them: one that waits and is held by a worker is claimed.
CREATE VIEW handoffs_seen AS
SELECT
    id, root, parent, agent, carrier,
    CASE
        WHEN state = 'ready' AND EXISTS (SELECT FROM leases WHERE handoff = handoffs.id AND holder IS NOT NULL)
            THEN 'claimed'
        ELSE state
    END AS state,
    attempt, run, initiated, seq, scope, key, deadline
FROM handoffs;

-- What humans said they want.
CREATE TABLE statements (
    number bigint GENERATED ALWAYS AS IDENTITY,
    item text COLLATE "C" NOT NULL PRIMARY KEY,
    root text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    author text COLLATE "C" NOT NULL,
    at bigint NOT NULL
);

CREATE INDEX statements_by_root ON statements (root);

CREATE TABLE keys (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    role text COLLATE "C" NOT NULL CHECK (role IN ('root', 'relay')),
    public_key text COLLATE "C" NOT NULL,
    relay text COLLATE "C",
    status text COLLATE "C" NOT NULL CHECK (status IN ('active', 'retired', 'revoked'))
);

CREATE TABLE seals (
    size bigint PRIMARY KEY,
    previous bigint NOT NULL UNIQUE,
    root text COLLATE "C" NOT NULL,
    note text COLLATE "C" NOT NULL,
    frontier bytea NOT NULL
);
