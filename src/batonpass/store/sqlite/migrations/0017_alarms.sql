-- Alarms are found by the agent that they are about. The values are said by comparisons, as 0015 says why; rows stay.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = 'CREATE TABLE remarks (
    said TEXT NOT NULL CHECK (
        said = ''tainted'' OR said = ''endorsed'' OR said = ''committed'' OR said = ''refuted'' OR said = ''pruned''
        OR said = ''token'' OR said = ''acknowledged'' OR said = ''ruled'' OR said = ''alarm''
    ),
    name TEXT NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (said, name, receipt)
) WITHOUT ROWID' WHERE type = 'table' AND name = 'remarks';

PRAGMA writable_schema = RESET;

-- Others notice a changed schema by its number, which only a statement that makes or drops something changes.
CREATE TABLE alarms (only INTEGER PRIMARY KEY);
DROP TABLE alarms;
