-- Leases. A locked row is skipped, because somebody else is claiming it or its handoff is moving. So a claim may find
-- nothing while work is queued.

-- The claimed handoff is stored in a setting until the transaction ends, for the claim brief that is read in it. To
-- find it by its token would scan all held leases. The commit does not wait for the disk: if a crash of the server undoes
-- a claim, the worker has lost its lease and is told so when it shows its token.
-- name: claim
UPDATE leases
SET holder = %(holder)s, token = %(token)s, until = batonpass_now() + %(lease_for)s::bigint
WHERE handoff = (
    SELECT handoff FROM leases
    WHERE
        holder IS NULL
        AND NOT EXISTS (
            SELECT FROM postponed WHERE postponed.handoff = leases.handoff AND postponed.until > (SELECT batonpass_now())
        )
    ORDER BY number
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
RETURNING
    handoff, holder, token, until, set_config('batonpass.claimed', handoff, true),
    set_config('synchronous_commit', 'off', true);

-- Most workers serve one agent, and the index has its waiting handoffs in order: take the first that is not locked.
-- name: claim_for_one
UPDATE leases
SET holder = %(holder)s, token = %(token)s, until = batonpass_now() + %(lease_for)s::bigint
WHERE handoff = (
    SELECT handoff FROM leases
    WHERE
        holder IS NULL AND agent = %(agent)s
        AND NOT EXISTS (
            SELECT FROM postponed WHERE postponed.handoff = leases.handoff AND postponed.until > (SELECT batonpass_now())
        )
    ORDER BY number
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
RETURNING
    handoff, holder, token, until, set_config('batonpass.claimed', handoff, true),
    set_config('synchronous_commit', 'off', true);

-- One index lookup per agent, instead of sorting everything that waits. Several candidates per agent, because others
-- may be claiming the first ones.
-- name: claim_for
UPDATE leases
SET holder = %(holder)s, token = %(token)s, until = batonpass_now() + %(lease_for)s::bigint
WHERE handoff = (
    SELECT handoff FROM leases
    WHERE
        holder IS NULL
        AND handoff = ANY (ARRAY(
            SELECT oldest.handoff
            FROM unnest(%(agents)s::text[]) AS wanted (agent)
            CROSS JOIN LATERAL (
                SELECT free.handoff FROM leases AS free
                WHERE
                    free.holder IS NULL AND free.agent = wanted.agent
                    AND NOT EXISTS (
                        SELECT FROM postponed
                        WHERE postponed.handoff = free.handoff AND postponed.until > (SELECT batonpass_now())
                    )
                ORDER BY free.number
                LIMIT 32
            ) AS oldest
        ))
    ORDER BY number
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
RETURNING
    handoff, holder, token, until, set_config('batonpass.claimed', handoff, true),
    set_config('synchronous_commit', 'off', true);

-- name: seize
UPDATE leases
SET holder = %(holder)s, token = %(token)s, until = batonpass_now() + %(lease_for)s::bigint
WHERE handoff = (
    SELECT handoff FROM leases WHERE until <= (SELECT batonpass_now()) ORDER BY until LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING handoff, holder, token, until, set_config('synchronous_commit', 'off', true);

-- name: find_taken
SELECT handoff, holder, token, until FROM leases WHERE until IS NOT NULL AND token = %(token)s AND holder = %(holder)s;

-- name: renew
UPDATE leases SET until = batonpass_now() + %(lease_for)s::bigint
WHERE handoff = %(handoff)s AND token = %(token)s
RETURNING handoff, holder, token, until;

-- If the handoff is not ready any more, its row must go, or a worker would claim it. The handoff is locked first, as a
-- move does, so that it is still ready when its lease becomes free.
-- name: release
WITH ready AS (
    SELECT id FROM handoffs WHERE id = %(handoff)s AND state = 'ready' FOR SHARE
),
freed AS (
    UPDATE leases SET holder = NULL, token = NULL, until = NULL
    WHERE handoff = (SELECT id FROM ready) AND token = %(token)s
    RETURNING batonpass_wake(agent)
)
DELETE FROM leases WHERE handoff = %(handoff)s AND token = %(token)s AND NOT EXISTS (SELECT FROM ready);

-- With each new one, those that are over go: no more are kept than wait.
-- name: postpone
WITH over AS (
    DELETE FROM postponed WHERE until <= (SELECT batonpass_now()) AND handoff <> %(handoff)s
)
INSERT INTO postponed (handoff, until) VALUES (%(handoff)s, batonpass_now() + %(lasts)s::bigint)
ON CONFLICT (handoff) DO UPDATE SET until = excluded.until;

-- name: find_leases
SELECT handoff, holder, token, until FROM leases WHERE holder IS NOT NULL ORDER BY handoff;

-- name: wait
SELECT batonpass_wait(%(channel)s, %(agents)s::text[], %(wait_for)s);

-- name: is_free
SELECT EXISTS (SELECT FROM leases WHERE holder IS NULL AND agent = ANY (%(agents)s::text[]));

-- A worker that stops waiting and was notified meanwhile notifies another worker, for these agents.
-- name: stop_waiting
WITH waited AS (
    DELETE FROM waiting_workers WHERE channel = %(channel)s RETURNING channel
)
SELECT batonpass_wake(agent) FROM unnest(%(agents)s::text[]) AS agent WHERE NOT EXISTS (SELECT FROM waited);
