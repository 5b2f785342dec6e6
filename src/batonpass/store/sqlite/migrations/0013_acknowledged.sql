-- Findings that somebody acknowledged, found by the root of their tree. SQLite cannot change a CHECK: the table is made anew.
DROP INDEX remarks_by_kind;
ALTER TABLE remarks RENAME TO remarks_before;

CREATE TABLE remarks (
    said TEXT NOT NULL CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted', 'pruned', 'token', 'acknowledged')),
    name TEXT NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (said, name, receipt)
) WITHOUT ROWID;

INSERT INTO remarks (said, name, receipt) SELECT said, name, receipt FROM remarks_before;
DROP TABLE remarks_before;

INSERT INTO remarks (said, name, receipt)
SELECT 'acknowledged', json_extract(CAST(payload AS TEXT), '$.predicate.body.root'), id
FROM receipts WHERE kind = 'finding.acknowledged';

-- Read backwards: the latest first, because ids begin with the time. Whether there is any at all is asked before calls.
CREATE INDEX remarks_by_kind ON remarks (said, receipt);
