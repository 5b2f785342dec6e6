-- Tokens that were added or revoked, found by their id.
ALTER TABLE remarks DROP CONSTRAINT remarks_said_check;
ALTER TABLE remarks ADD CONSTRAINT remarks_said_check
CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted', 'pruned', 'token'));
