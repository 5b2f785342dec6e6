-- What receipts say about things that have a name of their own, found by that name: files of tainted runs, what people answer
-- for, and commits that recorded calls made. Derived from receipts and checked against them by the verifier.
CREATE TABLE remarks (
    said text COLLATE "C" NOT NULL CHECK (said IN ('tainted', 'endorsed', 'committed')),
    name text COLLATE "C" NOT NULL,
    receipt text COLLATE "C" NOT NULL,
    PRIMARY KEY (said, name, receipt)
);

-- Read backwards: the latest first, because ids begin with the time. Whether there is any at all is asked before calls.
CREATE INDEX remarks_by_kind ON remarks (said, receipt);

-- What endorsements have said all along. Nothing that was recorded before says what a run knew when it left a file.
INSERT INTO remarks (said, name, receipt)
SELECT 'endorsed', convert_from(payload, 'UTF8')::jsonb -> 'predicate' -> 'body' ->> 'source', id
FROM receipts WHERE kind IN ('run.endorsed', 'handoff.endorsed');

-- A relay's role may only insert receipts, and so may not lock them, as revoking a grant has to. This runs as whoever owns
-- the tables, and does nothing else. Nobody gets it by default: it would keep all relays waiting.
CREATE OR REPLACE FUNCTION batonpass_lock_receipts() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    LOCK TABLE receipts IN SHARE ROW EXCLUSIVE MODE;
END $$;
REVOKE ALL ON FUNCTION batonpass_lock_receipts() FROM PUBLIC;
