-- Everything that a ledger is. Receipts, contents and seals are the truth; streams, runs, handoffs and keys are derived
-- from receipts and are checked against them by the verifier, column by column.

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

CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    parent TEXT,
    handoff TEXT,
    attempt INTEGER NOT NULL,
    agent TEXT NOT NULL,
    principal TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'completed', 'failed', 'cancelled', 'lapsed')),
    started_at INTEGER NOT NULL,
    ended_at INTEGER
) WITHOUT ROWID;

CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;

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
    initiated TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX handoffs_by_parent ON handoffs (parent);

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
