-- Rulings on what was held are found by who ruled. The values are said by comparisons, as 0015 says why; rows stay.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = 'CREATE TABLE remarks (
    said TEXT NOT NULL CHECK (
        said = ''tainted'' OR said = ''endorsed'' OR said = ''committed'' OR said = ''refuted'' OR said = ''pruned''
        OR said = ''token'' OR said = ''acknowledged'' OR said = ''ruled''
    ),
    name TEXT NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (said, name, receipt)
) WITHOUT ROWID' WHERE type = 'table' AND name = 'remarks';

PRAGMA writable_schema = RESET;

INSERT INTO remarks (said, name, receipt)
SELECT 'ruled', json_extract(CAST(payload AS TEXT), '$.predicate.body.by'), id FROM receipts
WHERE kind IN ('handoff.approved', 'handoff.backed', 'handoff.denied', 'tool.approved', 'tool.backed', 'tool.refused');

-- Others notice a changed schema by its number, which only a statement that makes or drops something changes.
CREATE TABLE rulings (only INTEGER PRIMARY KEY);
DROP TABLE rulings;
