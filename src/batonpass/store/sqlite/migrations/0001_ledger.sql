-- Everything that a ledger is. Receipts, contents and seals are the truth; streams, runs, handoffs, statements and keys are
-- derived from receipts and are checked against them by the verifier, column by column; so are touches, from contents.
-- Leases are neither: they only say who works on what just now.

CREATE TABLE ledger (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL,
    root_key TEXT NOT NULL
);

CREATE TABLE streams (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    root TEXT,
    seq INTEGER NOT NULL,
    head TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    open INTEGER NOT NULL CHECK (open IN (0, 1))
);

-- There is one writer at a time, so the row number that it gives inside its transaction is the commit order: gapless,
-- and the position of the receipt. PostgreSQL needs a sequencer for that.
CREATE TABLE receipts (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload BLOB NOT NULL,
    relay_signature BLOB NOT NULL,
    cosignature BLOB,
    UNIQUE (stream, seq)
);

CREATE TABLE contents (
    id TEXT NOT NULL PRIMARY KEY,
    receipt INTEGER NOT NULL,
    place TEXT NOT NULL CHECK (place IN ('row', 'file', 'erased')),
    salt BLOB,
    body BLOB
) WITHOUT ROWID;

-- Which contents are changes of which file. The path is words: it stands in the content, never in the receipt, and here only
-- for as long as the content is kept.
CREATE TABLE touches (
    content TEXT NOT NULL PRIMARY KEY,
    receipt INTEGER NOT NULL,
    path TEXT NOT NULL
) WITHOUT ROWID;

-- Read backwards: the latest change first.
CREATE INDEX touches_by_path ON touches (path, receipt);

CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    parent TEXT,
    handoff TEXT,
    attempt INTEGER NOT NULL,
    agent TEXT NOT NULL,
    principal TEXT NOT NULL,
    state TEXT NOT NULL CHECK (
        state IN ('open', 'completed', 'failed', 'cancelled', 'lapsed', 'suspended', 'expired')
    ),
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    series TEXT
) WITHOUT ROWID;

CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_series ON runs (series, id) WHERE series IS NOT NULL;

-- Never 'claimed' here: a claim leaves no receipt, it is a lease.
CREATE TABLE handoffs (
    id TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    parent TEXT NOT NULL,
    agent TEXT NOT NULL,
    carrier TEXT NOT NULL CHECK (carrier IN ('caller', 'worker')),
    state TEXT NOT NULL CHECK (
        state IN (
            'held', 'offered', 'ready', 'claimed', 'asked', 'running', 'completed',
            'failed', 'declined', 'denied', 'cancelled', 'expired', 'verified', 'refuted'
        )
    ),
    attempt INTEGER NOT NULL,
    run TEXT,
    initiated TEXT NOT NULL,
    seq INTEGER NOT NULL,
    scope TEXT,
    key TEXT,
    deadline INTEGER
) WITHOUT ROWID;

CREATE INDEX handoffs_by_parent ON handoffs (parent);
CREATE UNIQUE INDEX handoffs_by_key ON handoffs (scope, key) WHERE key IS NOT NULL;
CREATE INDEX handoffs_by_deadline ON handoffs (deadline) WHERE deadline IS NOT NULL;

-- One row for each worker-carried handoff that can be claimed (nobody holds it), is claimed, or runs under a lease. What is
-- claimed next is found here alone, however many handoffs there are.
CREATE TABLE leases (
    handoff TEXT NOT NULL PRIMARY KEY,
    agent TEXT NOT NULL,
    holder TEXT,
    token INTEGER,
    until INTEGER
) WITHOUT ROWID;

CREATE INDEX leases_free ON leases (agent, handoff) WHERE holder IS NULL;
CREATE INDEX leases_held ON leases (until) WHERE until IS NOT NULL;

-- The handoffs as a reader sees them: one that waits and is held by a worker is claimed.
CREATE VIEW handoffs_seen AS
SELECT
    id, root, parent, agent, carrier,
    CASE
        WHEN state = 'ready' AND EXISTS (SELECT 1 FROM leases WHERE handoff = handoffs.id AND holder IS NOT NULL)
            THEN 'claimed'
        ELSE state
    END AS state,
    attempt, run, initiated, seq, scope, key, deadline
FROM handoffs;

-- What humans said they want. The row numbers are the order in which it was recorded: nothing is ever deleted here.
CREATE TABLE statements (
    item TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    digest TEXT NOT NULL,
    author TEXT NOT NULL,
    at INTEGER NOT NULL
);

CREATE INDEX statements_by_root ON statements (root);

CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('root', 'relay')),
    public_key TEXT NOT NULL,
    relay TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'retired', 'revoked'))
) WITHOUT ROWID;

CREATE TABLE seals (
    size INTEGER PRIMARY KEY,
    previous INTEGER NOT NULL UNIQUE,
    root TEXT NOT NULL,
    note TEXT NOT NULL,
    frontier BLOB NOT NULL
);
