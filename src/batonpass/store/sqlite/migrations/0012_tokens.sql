-- Tokens that were added or revoked, found by their id. SQLite cannot change a CHECK: the table is made anew.
DROP INDEX remarks_by_kind;
ALTER TABLE remarks RENAME TO remarks_before;

CREATE TABLE remarks (
    said TEXT NOT NULL CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted', 'pruned', 'token')),
    name TEXT NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (said, name, receipt)
) WITHOUT ROWID;

INSERT INTO remarks (said, name, receipt) SELECT said, name, receipt FROM remarks_before;
DROP TABLE remarks_before;

-- Read backwards: the latest first, because ids begin with the time. Whether there is any at all is asked before calls.
CREATE INDEX remarks_by_kind ON remarks (said, receipt);
