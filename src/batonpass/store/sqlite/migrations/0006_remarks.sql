-- What receipts say about things that have a name of their own, found by that name: files of tainted runs, what people answer
-- for, and commits that recorded calls made. Derived from receipts and checked against them by the verifier.
CREATE TABLE remarks (
    said TEXT NOT NULL CHECK (said IN ('tainted', 'endorsed', 'committed')),
    name TEXT NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (said, name, receipt)
) WITHOUT ROWID;

-- Read backwards: the latest first, because ids begin with the time. Whether there is any at all is asked before calls.
CREATE INDEX remarks_by_kind ON remarks (said, receipt);

-- What endorsements have said all along. Nothing that was recorded before says what a run knew when it left a file.
INSERT INTO remarks (said, name, receipt)
SELECT 'endorsed', json_extract(CAST(payload AS TEXT), '$.predicate.body.source'), id
FROM receipts WHERE kind IN ('run.endorsed', 'handoff.endorsed');
