-- Rulings on what was held are found by who ruled.
ALTER TABLE remarks DROP CONSTRAINT remarks_said_check;
ALTER TABLE remarks ADD CONSTRAINT remarks_said_check
CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted', 'pruned', 'token', 'acknowledged', 'ruled'));

INSERT INTO remarks (said, name, receipt)
SELECT 'ruled', convert_from(payload, 'UTF8')::jsonb -> 'predicate' -> 'body' ->> 'by', id FROM receipts
WHERE kind IN ('handoff.approved', 'handoff.backed', 'handoff.denied', 'tool.approved', 'tool.backed', 'tool.refused');
