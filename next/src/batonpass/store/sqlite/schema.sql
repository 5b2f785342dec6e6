-- Receipts are the truth. All other rows follow from receipts, and the verifier derives them again.

CREATE TABLE receipts (
    -- One writer at a time: the row number is the commit order, without gaps.
    position INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    payload BLOB NOT NULL,
    signature BLOB NOT NULL,
    cosignature BLOB,
    -- All contents of a receipt, packed. Last, so a reader of signed bytes only does not read over the words.
    contents BLOB,
    UNIQUE (stream, seq)
) STRICT;

CREATE VIEW stored AS
SELECT position AS place, stream, seq, payload, signature, cosignature, contents FROM receipts;

-- What everything hangs from: one row, and never another.
CREATE TABLE ledger (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    genesis TEXT NOT NULL
) STRICT;

CREATE TABLE streams (
    id TEXT NOT NULL PRIMARY KEY,
    root TEXT,
    seq INTEGER NOT NULL,
    head TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'completed', 'failed', 'cancelled', 'fenced')),
    recorder TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    agent TEXT,
    principal TEXT,
    handoff TEXT,
    attempt INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE handoffs (
    id TEXT NOT NULL PRIMARY KEY,
    parent TEXT NOT NULL,
    root TEXT NOT NULL,
    seq INTEGER NOT NULL,
    agent TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('offered', 'running', 'completed', 'failed', 'cancelled')),
    attempt INTEGER NOT NULL,
    run TEXT,
    last TEXT NOT NULL,
    offered_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Only calls without an outcome: a small table, however long the ledger is.
CREATE TABLE open_calls (
    id TEXT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL,
    key TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One request may cause several receipts, but never the same part twice.
CREATE TABLE requests (
    request TEXT NOT NULL,
    part TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (request, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE revoked (
    account TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE touches (
    target TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (target, stream, seq)
) STRICT, WITHOUT ROWID;
