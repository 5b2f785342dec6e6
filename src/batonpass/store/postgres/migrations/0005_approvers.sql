-- Keys of people who approve, and calls of roots that wait for them. All is derived from receipts and checked against them.

ALTER TABLE keys ADD COLUMN principal text COLLATE "C";
ALTER TABLE keys DROP CONSTRAINT keys_role_check;
ALTER TABLE keys ADD CONSTRAINT keys_role_check CHECK (role IN ('root', 'relay', 'approver'));

-- Whoever adds a second key for a person has to revoke the first one, and that is a receipt.
CREATE UNIQUE INDEX keys_of_approvers ON keys (principal) WHERE principal IS NOT NULL AND status = 'active';

CREATE TABLE held_calls (
    call text COLLATE "C" NOT NULL PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    receipt text COLLATE "C" NOT NULL
);

-- What the roots' own receipts have said all along.
INSERT INTO held_calls (call, run, receipt)
SELECT convert_from(receipts.payload, 'UTF8')::jsonb -> 'predicate' -> 'body' ->> 'call', streams.id, receipts.id
FROM receipts JOIN streams ON streams.number = receipts.stream
WHERE receipts.kind = 'tool.held' AND streams.root = streams.id;

CREATE TABLE decided_calls (
    call text COLLATE "C" NOT NULL PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    receipt text COLLATE "C" NOT NULL,
    approved boolean NOT NULL
);

-- BP009  the key that signed a decision is not an active approver's    key
CREATE FUNCTION batonpass_require_approver(key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM keys WHERE id = key AND role = 'approver' AND status = 'active') THEN
        RAISE EXCEPTION 'the key is not an active approver''s' USING ERRCODE = 'BP009', DETAIL =
            jsonb_build_object('key', key);
    END IF;
END $$;
