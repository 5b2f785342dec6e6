-- What waits for somebody is found without a look at what does not: a hold may have a time limit.
CREATE INDEX handoffs_held ON handoffs (id) WHERE state = 'held';

-- How much of a limit is used up, by everybody who shares it. Derived from receipts and checked against them by the verifier.
CREATE TABLE charged (
    account TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (unit IN ('calls', 'spend', 'rows', 'bytes', 'tokens')),
    used INTEGER NOT NULL,
    PRIMARY KEY (account, unit)
) WITHOUT ROWID;
