-- What is written last is in no index yet: an index is a page more for every commit, and a reader finds a hundred rows by looking
-- at them. Every so often a commit settles what has come since: it puts all of it into the indexes at once. See docs/adr/0053.

-- How far that went. Receipts and contents are counted; runs and handoffs have ids that begin with the time. Whatever is
-- greater is found by looking.
CREATE TABLE settled (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    receipt INTEGER NOT NULL,
    content INTEGER NOT NULL,
    run TEXT NOT NULL,
    handoff TEXT NOT NULL
);

-- A UNIQUE cannot be dropped in place.
ALTER TABLE receipts RENAME TO receipts_before;

CREATE TABLE receipts (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload BLOB NOT NULL,
    relay_signature BLOB NOT NULL,
    cosignature BLOB
);

INSERT INTO receipts (position, id, stream, seq, kind, payload, relay_signature, cosignature)
SELECT position, id, stream, seq, kind, payload, relay_signature, cosignature FROM receipts_before ORDER BY position;

DROP TABLE receipts_before;

-- By what a receipt is found: its id; a dash and the last four characters of its id; and `call_` with the last four characters of
-- the call that it is about.
CREATE TABLE receipt_names (
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (name, position)
) WITHOUT ROWID;

INSERT INTO receipt_names (name, position)
SELECT id, position FROM receipts
UNION
SELECT '-' || substr(id, -4), position FROM receipts
UNION
SELECT
    'call_' || substr(CAST(payload AS TEXT), instr(CAST(payload AS TEXT), '"call":"call_') + 35, 4), position
FROM receipts WHERE kind IN ('tool.requested', 'tool.denied', 'tool.held');

CREATE TABLE receipt_places (
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (stream, seq)
) WITHOUT ROWID;

INSERT INTO receipt_places (stream, seq, position) SELECT stream, seq, position FROM receipts ORDER BY stream, seq;

-- One after the other, and not by id: a body of some kilobytes fills a page of its own where it is part of an index.
ALTER TABLE contents RENAME TO contents_before;

CREATE TABLE contents (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    receipt INTEGER NOT NULL,
    place TEXT NOT NULL CHECK (place IN ('row', 'file', 'erased')),
    salt BLOB,
    body BLOB
);

INSERT INTO contents (id, receipt, place, salt, body)
SELECT id, receipt, place, salt, body FROM contents_before ORDER BY receipt, id;

DROP TABLE contents_before;

CREATE TABLE content_ids (
    id TEXT NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO content_ids (id, number) SELECT id, number FROM contents ORDER BY id;

-- Rows that are not settled are in none of these. What must not be there twice, and what only few have, stays as it is.
ALTER TABLE runs ADD COLUMN settled INTEGER NOT NULL DEFAULT 1 CHECK (settled IN (0, 1));
ALTER TABLE handoffs ADD COLUMN settled INTEGER NOT NULL DEFAULT 1 CHECK (settled IN (0, 1));

DROP INDEX runs_by_parent;
DROP INDEX runs_by_series;
DROP INDEX runs_by_session;
DROP INDEX runs_by_state;
DROP INDEX runs_by_agent;
DROP INDEX runs_roots;
DROP INDEX runs_roots_of_session;
DROP INDEX runs_by_ending;
DROP INDEX handoffs_by_parent;
DROP INDEX handoffs_by_state;
DROP INDEX handoffs_by_agent;
DROP INDEX handoffs_by_ending;

CREATE INDEX runs_by_parent ON runs (parent, handoff, attempt) WHERE settled = 1 AND parent IS NOT NULL;
CREATE INDEX runs_by_series ON runs (series, id) WHERE settled = 1 AND series IS NOT NULL;
CREATE INDEX runs_by_session ON runs (session, id) WHERE settled = 1 AND session IS NOT NULL;
CREATE INDEX runs_by_state ON runs (state, id) WHERE settled = 1;
CREATE INDEX runs_by_agent ON runs (agent, id) WHERE settled = 1;
CREATE INDEX runs_roots ON runs (id) WHERE settled = 1 AND parent IS NULL;
CREATE INDEX runs_roots_of_session ON runs (session, id) WHERE settled = 1 AND parent IS NULL AND session IS NOT NULL;
CREATE INDEX runs_by_ending ON runs (substr(id, -4)) WHERE settled = 1;
CREATE INDEX handoffs_by_parent ON handoffs (parent) WHERE settled = 1;
CREATE INDEX handoffs_by_state ON handoffs (state, id) WHERE settled = 1;
CREATE INDEX handoffs_by_agent ON handoffs (agent, id) WHERE settled = 1;
CREATE INDEX handoffs_by_ending ON handoffs (substr(id, -4)) WHERE settled = 1;

DROP VIEW handoffs_seen;

CREATE VIEW handoffs_seen AS
SELECT
    id, root, parent, agent, carrier,
    CASE
        WHEN state = 'ready' AND EXISTS (SELECT 1 FROM leases WHERE handoff = handoffs.id AND holder IS NOT NULL)
            THEN 'claimed'
        ELSE state
    END AS state,
    attempt, run, initiated, seq, scope, key, deadline, settled
FROM handoffs;

INSERT INTO settled (only, receipt, content, run, handoff)
SELECT
    1,
    coalesce((SELECT max(position) FROM receipts), 0),
    coalesce((SELECT max(number) FROM contents), 0),
    coalesce((SELECT max(id) FROM runs), ''),
    coalesce((SELECT max(id) FROM handoffs), '');
