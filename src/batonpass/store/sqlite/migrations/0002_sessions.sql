-- Which trees belong to one session, and which results of calls may be given again for a while. Both are derived from
-- receipts and are checked against them by the verifier.

ALTER TABLE runs ADD COLUMN session TEXT;

-- What the first receipt of each run has said all along.
UPDATE runs SET session = (
    SELECT json_extract(CAST(receipts.payload AS TEXT), '$.predicate.session')
    FROM streams JOIN receipts ON receipts.stream = streams.number AND receipts.seq = 1
    WHERE streams.id = runs.id
);

CREATE INDEX runs_by_session ON runs (session, id) WHERE session IS NOT NULL;

CREATE TABLE cached (
    call TEXT NOT NULL PRIMARY KEY,
    key TEXT NOT NULL,
    receipt TEXT NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;

-- Read backwards: the latest call first, because ids begin with the time.
CREATE INDEX cached_by_key ON cached (key, call);
