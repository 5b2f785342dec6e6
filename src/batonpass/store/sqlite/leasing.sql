-- Leases. SQLite has one writer at a time, so a statement that looks and updates in one transaction takes the row that
-- it saw. No row has to be skipped, as it would be in PostgreSQL.

-- Times are microseconds of the clock that counts since the machine was started: see `leases.py`. After a restart that
-- clock begins anew, so what would begin in the future is from before, and over. `ends_at` is the end by the calendar, for people.

-- name: find_free
SELECT handoff FROM leases
WHERE
    holder IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM postponed
        WHERE postponed.handoff = leases.handoff AND postponed.until > :now AND postponed.until - postponed.lasts <= :now
    )
ORDER BY number LIMIT 1;

-- One index lookup per agent, instead of sorting everything that waits.
-- name: find_free_for
SELECT handoff FROM leases WHERE number = (
    SELECT min(oldest) FROM (
        SELECT (
            SELECT free.number FROM leases AS free
            WHERE
                free.holder IS NULL AND free.agent = wanted.value
                AND NOT EXISTS (
                    SELECT 1 FROM postponed
                    WHERE
                        postponed.handoff = free.handoff
                        AND postponed.until > :now AND postponed.until - postponed.lasts <= :now
                )
            ORDER BY free.number LIMIT 1
        ) AS oldest
        FROM json_each(:agents) AS wanted
    )
);

-- There are as many rows with an end as there are busy workers.
-- name: find_lapsed
SELECT handoff FROM leases WHERE until IS NOT NULL AND (until <= :now OR until - lasts > :now) ORDER BY until LIMIT 1;

-- name: take
UPDATE leases SET holder = :holder, token = :token, until = :now + :lease_for, lasts = :lease_for, ends_at = :today + :lease_for
WHERE handoff = :handoff
RETURNING handoff, holder, token, ends_at;

-- name: renew
UPDATE leases SET until = :now + :lease_for, lasts = :lease_for, ends_at = :today + :lease_for
WHERE handoff = :handoff AND token = :token
RETURNING handoff, holder, token, ends_at;

-- name: postpone
INSERT INTO postponed (handoff, until, lasts) VALUES (:handoff, :now + :lasts, :lasts)
ON CONFLICT (handoff) DO UPDATE SET until = excluded.until, lasts = excluded.lasts;

-- With each new one, those that are over go: no more are kept than wait.
-- name: forget_postponed
DELETE FROM postponed WHERE until <= :now OR until - lasts > :now;

-- name: release
UPDATE leases SET holder = NULL, token = NULL, until = NULL, lasts = NULL, ends_at = NULL
WHERE
    handoff = :handoff AND token = :token
    AND EXISTS (SELECT 1 FROM handoffs WHERE handoffs.id = :handoff AND handoffs.state = 'ready');

-- After `release`: if the handoff is not ready any more, its row must go, or a worker would claim it.
-- name: forget
DELETE FROM leases WHERE handoff = :handoff AND token = :token;

-- name: is_held
SELECT 1 FROM leases WHERE handoff = ? AND token = ?;

-- name: find_leases
SELECT handoff, holder, token, ends_at FROM leases WHERE holder IS NOT NULL ORDER BY handoff;

-- name: follow_to_ready
INSERT INTO leases (handoff, agent) VALUES (:handoff, :agent)
ON CONFLICT (handoff) DO UPDATE SET
    agent = excluded.agent, holder = NULL, token = NULL, until = NULL, lasts = NULL, ends_at = NULL;

-- name: follow_to_running
DELETE FROM leases WHERE handoff = :handoff AND holder IS NULL;

-- name: follow_to_end
DELETE FROM leases WHERE handoff = :handoff;
