-- Alarms are found by the agent that they are about.
ALTER TABLE remarks DROP CONSTRAINT remarks_said_check;
ALTER TABLE remarks ADD CONSTRAINT remarks_said_check
CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted', 'pruned', 'token', 'acknowledged', 'ruled', 'alarm'));
