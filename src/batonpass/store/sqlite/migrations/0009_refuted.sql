-- Results that somebody refuted, found by the root of their tree, as whoever hands something off there has to know of them. SQLite
-- cannot change a CHECK: the table is made anew.
CREATE TABLE remarks_anew (
    said TEXT NOT NULL CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted')),
    name TEXT NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (said, name, receipt)
) WITHOUT ROWID;

INSERT INTO remarks_anew (said, name, receipt) SELECT said, name, receipt FROM remarks;

INSERT INTO remarks_anew (said, name, receipt)
SELECT 'refuted', json_extract(CAST(payload AS TEXT), '$.predicate.root'), id
FROM receipts WHERE kind = 'verification.failed' AND json_extract(CAST(payload AS TEXT), '$.predicate.root') IS NOT NULL;

DROP TABLE remarks;
ALTER TABLE remarks_anew RENAME TO remarks;

-- Read backwards: the latest first, because ids begin with the time. Whether there is any at all is asked before calls.
CREATE INDEX remarks_by_kind ON remarks (said, receipt);
