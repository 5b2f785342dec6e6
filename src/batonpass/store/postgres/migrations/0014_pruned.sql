-- What people took out of what a root leaves to the next session, found by that root.
ALTER TABLE remarks DROP CONSTRAINT remarks_said_check;
ALTER TABLE remarks ADD CONSTRAINT remarks_said_check
CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted', 'pruned'));

INSERT INTO remarks (said, name, receipt)
SELECT 'pruned', convert_from(payload, 'UTF8')::jsonb -> 'predicate' -> 'body' ->> 'root', id
FROM receipts WHERE kind = 'session.pruned';
