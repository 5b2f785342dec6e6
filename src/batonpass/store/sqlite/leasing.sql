-- Leases. SQLite has one writer at a time, so a statement that looks and updates in one transaction takes the row that
-- it saw. No row has to be skipped, as it would be in PostgreSQL.

-- name: find_free
SELECT handoff FROM leases WHERE holder IS NULL ORDER BY handoff LIMIT 1;

-- One index lookup per agent, instead of sorting everything that waits.
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

-- After `release`: if the handoff is not ready any more, its row must go, or a worker would claim it.
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
