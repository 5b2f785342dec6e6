-- The right to work on a handoff. Whoever finds a row locked passes over it: somebody else is taking it, or the handoff is
-- moving just now. So nothing may come back while work is queued.

-- What was claimed is known until the transaction ends: the brief that comes along in it is about that. To look for the token
-- instead would go through all leases that are held. And its commit is not waited for on the disk: a claim that a crash of the
-- server takes back is a lease that is lost.
-- name: claim
UPDATE leases
SET holder = %(holder)s, token = %(token)s, until = batonpass_now() + %(lease_for)s::bigint
WHERE handoff = (
    SELECT handoff FROM leases WHERE holder IS NULL ORDER BY handoff LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING
    handoff, holder, token, until, set_config('batonpass.claimed', handoff, true),
    set_config('synchronous_commit', 'off', true);

-- Most workers serve one agent, and the index has what waits for one in order: the first that nobody else is taking.
-- name: claim_for_one
UPDATE leases
SET holder = %(holder)s, token = %(token)s, until = batonpass_now() + %(lease_for)s::bigint
WHERE handoff = (
    SELECT handoff FROM leases
    WHERE holder IS NULL AND agent = %(agent)s
    ORDER BY handoff
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
RETURNING
    handoff, holder, token, until, set_config('batonpass.claimed', handoff, true),
    set_config('synchronous_commit', 'off', true);

-- A look into the index for each agent, instead of sorting all that waits. More than one candidate each, because others may
-- be taking the first ones.
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
                WHERE free.holder IS NULL AND free.agent = wanted.agent
                ORDER BY free.handoff
                LIMIT 32
            ) AS oldest
        ))
    ORDER BY handoff
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

-- What is released and runs is no longer waiting for anybody, so it must not lie there to be claimed. The handoff is locked
-- first, as a move of it does, so that it is still ready when its lease is free.
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

-- name: find_leases
SELECT handoff, holder, token, until FROM leases WHERE holder IS NOT NULL ORDER BY handoff;

-- name: wait
SELECT batonpass_wait(%(channel)s, %(agents)s::text[], %(wait_for)s);

-- name: is_free
SELECT EXISTS (SELECT FROM leases WHERE holder IS NULL AND agent = ANY (%(agents)s::text[]));

-- Who no longer waits and was told meanwhile tells somebody else, for these agents.
-- name: stop_waiting
WITH waited AS (
    DELETE FROM waiting_workers WHERE channel = %(channel)s RETURNING channel
)
SELECT batonpass_wake(agent) FROM unnest(%(agents)s::text[]) AS agent WHERE NOT EXISTS (SELECT FROM waited);
