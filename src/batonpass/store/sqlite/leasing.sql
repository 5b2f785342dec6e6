-- The right to work on a handoff. There is one writer at a time, so whoever looks and takes in one transaction takes what
-- it saw: nothing has to be skipped.

-- name: find_free
SELECT handoff FROM leases WHERE holder IS NULL ORDER BY handoff LIMIT 1;

-- One look into the index for each agent, instead of sorting all that waits.
-- name: find_free_for
SELECT min(oldest) FROM (
    SELECT (SELECT min(handoff) FROM leases WHERE holder IS NULL AND agent = wanted.value) AS oldest
    FROM json_each(:agents) AS wanted
);

-- name: find_lapsed
SELECT handoff FROM leases WHERE until <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) ORDER BY until LIMIT 1;

-- name: take
UPDATE leases
SET holder = :holder, token = :token, until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + :lease_for
WHERE handoff = :handoff
RETURNING handoff, holder, token, until;

-- name: renew
UPDATE leases SET until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + :lease_for
WHERE handoff = :handoff AND token = :token
RETURNING handoff, holder, token, until;

-- name: release
UPDATE leases SET holder = NULL, token = NULL, until = NULL
WHERE
    handoff = :handoff AND token = :token
    AND EXISTS (SELECT 1 FROM handoffs WHERE handoffs.id = :handoff AND handoffs.state = 'ready');

-- What is released and runs is no longer waiting for anybody, so it must not lie there to be claimed.
-- name: forget
DELETE FROM leases WHERE handoff = :handoff AND token = :token;

-- name: is_held
SELECT 1 FROM leases WHERE handoff = ? AND token = ?;

-- name: find_leases
SELECT handoff, holder, token, until FROM leases WHERE holder IS NOT NULL ORDER BY handoff;

-- name: follow_to_ready
INSERT INTO leases (handoff, agent) VALUES (:handoff, :agent)
ON CONFLICT (handoff) DO UPDATE SET agent = excluded.agent, holder = NULL, token = NULL, until = NULL;

-- name: follow_to_running
DELETE FROM leases WHERE handoff = :handoff AND holder IS NULL;

-- name: follow_to_end
DELETE FROM leases WHERE handoff = :handoff;
