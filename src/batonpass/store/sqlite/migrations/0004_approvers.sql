-- Keys of people who approve, and calls of roots that wait for them. All is derived from receipts and checked against them.

-- A CHECK cannot be changed in place.
ALTER TABLE keys RENAME TO keys_before;

CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('root', 'relay', 'approver')),
    public_key TEXT NOT NULL,
    relay TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'retired', 'revoked')),
    principal TEXT
) WITHOUT ROWID;

INSERT INTO keys (id, role, public_key, relay, status)
SELECT id, role, public_key, relay, status FROM keys_before;

DROP TABLE keys_before;

-- Whoever adds a second key for a person has to revoke the first one, and that is a receipt.
CREATE UNIQUE INDEX keys_of_approvers ON keys (principal) WHERE principal IS NOT NULL AND status = 'active';

CREATE TABLE held_calls (
    call TEXT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL,
    receipt TEXT NOT NULL
) WITHOUT ROWID;

-- What the roots' own receipts have said all along.
INSERT INTO held_calls (call, run, receipt)
SELECT json_extract(CAST(receipts.payload AS TEXT), '$.predicate.body.call'), streams.id, receipts.id
FROM receipts JOIN streams ON streams.number = receipts.stream
WHERE receipts.kind = 'tool.held' AND streams.root = streams.id;

CREATE TABLE decided_calls (
    call TEXT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL,
    receipt TEXT NOT NULL,
    approved INTEGER NOT NULL CHECK (approved IN (0, 1))
) WITHOUT ROWID;
