-- Findings that somebody acknowledged, found by the root of their tree.
ALTER TABLE remarks DROP CONSTRAINT remarks_said_check;
ALTER TABLE remarks ADD CONSTRAINT remarks_said_check
CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted', 'pruned', 'token', 'acknowledged'));

INSERT INTO remarks (said, name, receipt)
SELECT 'acknowledged', convert_from(payload, 'UTF8')::jsonb -> 'predicate' -> 'body' ->> 'root', id
FROM receipts WHERE kind = 'finding.acknowledged';
