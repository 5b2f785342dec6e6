-- name: read_applied
SELECT version, name, applied_at FROM schema_migrations ORDER BY version;

-- name: add_applied
INSERT INTO schema_migrations (version, name, applied_at) VALUES (:version, :name, :applied_at);

-- name: create_migrations
CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL
);

-- name: has_migrations
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations';

-- name: has_tables
SELECT 1 FROM sqlite_master LIMIT 1;

-- name: read_schema
SELECT type, name, tbl_name, sql FROM sqlite_master;

-- name: read_ledger
SELECT id, root_key FROM ledger;

-- name: add_ledger
INSERT INTO ledger (only, id, root_key) VALUES (1, ?, ?);

-- The compare-and-set of an append: the stream stands where the receipt says, and the recording key is active.
-- name: move_stream
UPDATE streams SET seq = :seq, head = :digest, epoch = :epoch, open = :open
WHERE
    id = :stream AND seq = :seq - 1 AND head = :previous AND epoch = :held AND open = 1
    AND (:enrols_itself OR EXISTS (SELECT 1 FROM keys WHERE id = :key AND role = 'relay' AND status = 'active'))
RETURNING number;

-- name: open_stream
INSERT INTO streams (id, root, seq, head, epoch, open)
SELECT :stream, :root, 1, :digest, :epoch, :open
WHERE :enrols_itself OR EXISTS (SELECT 1 FROM keys WHERE id = :key AND role = 'relay' AND status = 'active')
ON CONFLICT (id) DO NOTHING
RETURNING number;

-- name: fence_stream
UPDATE streams SET open = 0
WHERE id = :run AND seq = :seq AND head = :head AND open = 1
RETURNING number;

-- name: add_receipt
INSERT INTO receipts (id, stream, seq, kind, payload, relay_signature, cosignature) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: add_content
INSERT INTO contents (id, receipt, place, salt, body) VALUES (?, ?, ?, ?, ?);

-- name: erase_content
UPDATE contents SET place = 'erased', salt = NULL, body = NULL WHERE id = ?;

-- name: add_touch
INSERT INTO touches (content, receipt, path) VALUES (?, ?, ?);

-- name: erase_touch
DELETE FROM touches WHERE content = ?;

-- name: add_run
INSERT INTO runs (
    id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_run
UPDATE runs SET state = ?, ended_at = ? WHERE id = ?;

-- name: add_handoff
INSERT INTO handoffs (
    id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- The lists of states from which the event may happen come from the one table, between commas.
-- name: move_handoff
UPDATE handoffs
SET
    agent = coalesce(:new_agent, agent),
    state = CASE carrier WHEN 'caller' THEN :caller_target ELSE :worker_target END,
    attempt = coalesce(:new_attempt, attempt),
    run = coalesce(:new_run, run)
WHERE
    id = :handoff
    AND (:attempt IS NULL OR attempt = :attempt)
    AND :ends IS CASE state WHEN 'running' THEN run END
    AND (:anchor IS NULL OR :anchor = coalesce((SELECT head FROM streams WHERE streams.id = :handoff), initiated))
    AND instr(CASE carrier WHEN 'caller' THEN :caller_sources ELSE :worker_sources END, ',' || state || ',')
RETURNING carrier, state, agent;

-- As it is stored, without what its lease adds.
-- name: get_handoff_row
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs WHERE id = ?;

-- name: add_statement
INSERT INTO statements (item, root, digest, author, at) VALUES (?, ?, ?, ?, ?);

-- name: add_key
INSERT INTO keys (id, role, public_key, relay, status, principal) VALUES (?, ?, ?, ?, ?, ?);

-- name: change_key
UPDATE keys SET status = ? WHERE id = ? RETURNING id;

-- name: add_seal
INSERT INTO seals (size, previous, root, note, frontier) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: has_seal
SELECT 1 FROM seals WHERE size = ?;

-- name: get_key
SELECT id, role, public_key, relay, status, principal FROM keys WHERE id = ?;

-- name: get_stream
SELECT id, root, seq, head, epoch, open FROM streams WHERE id = ?;

-- name: find_streams
SELECT id, root, seq, head, epoch, open FROM streams ORDER BY number;

-- name: get_receipt
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts LEFT JOIN streams ON streams.number = receipts.stream
WHERE receipts.id = ?;

-- name: get_receipt_at
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts JOIN streams ON streams.number = receipts.stream
WHERE streams.id = ? AND receipts.seq = ?;

-- A query that leaves a part open passes NULL for it. The planner sees the parts at prepare time, so the two shapes that
-- must be fast, by stream and by position, have statements of their own.
-- name: find_receipts
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts LEFT JOIN streams ON streams.number = receipts.stream
WHERE
    receipts.position >= :first AND receipts.position <= :last AND receipts.id >= :since
    AND (:kind IS NULL OR receipts.kind = :kind OR receipts.kind LIKE :kind || '.%')
    AND (:agent IS NULL OR streams.id IN (SELECT runs.id FROM runs WHERE runs.agent = :agent))
ORDER BY receipts.position;

-- CROSS JOIN keeps the order of the joins, and the plus keeps the planner from the order of positions: without statistics
-- it would rather look at all receipts there are than at those of a few streams.
-- name: find_receipts_of_streams
WITH RECURSIVE
    tree (run) AS (
        SELECT :root WHERE :root IS NOT NULL
        UNION
        SELECT runs.id FROM tree CROSS JOIN runs ON runs.parent = tree.run
    ),
    wanted (id) AS (
        SELECT :stream WHERE :stream IS NOT NULL
        UNION
        SELECT run FROM tree
        UNION
        SELECT handoffs.id FROM tree CROSS JOIN handoffs ON handoffs.parent = tree.run
    )
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM wanted
CROSS JOIN streams ON streams.id = wanted.id
CROSS JOIN receipts ON receipts.stream = streams.number
WHERE
    +receipts.position >= :first AND +receipts.position <= :last AND +receipts.id >= :since
    AND (:root IS NULL OR :stream IS NULL OR streams.root = :root AND streams.id = :stream)
    AND (:kind IS NULL OR receipts.kind = :kind OR receipts.kind LIKE :kind || '.%')
    AND (:agent IS NULL OR streams.id IN (SELECT runs.id FROM runs WHERE runs.agent = :agent))
ORDER BY receipts.position;

-- name: first_position_since
SELECT coalesce(min(position), 9223372036854775807) FROM receipts WHERE id >= ?;

-- name: last_position
SELECT coalesce(max(position), 0) FROM receipts;

-- name: get_content
SELECT contents.id, receipts.id, contents.place, contents.salt, contents.body
FROM contents LEFT JOIN receipts ON receipts.position = contents.receipt
WHERE contents.id = ?;

-- name: find_contents
SELECT contents.id, receipts.id, contents.place, contents.salt, contents.body
FROM json_each(?) AS wanted
JOIN contents ON contents.id = wanted.value
LEFT JOIN receipts ON receipts.position = contents.receipt;

-- name: find_touches
SELECT touches.content, touches.path, receipts.id
FROM touches LEFT JOIN receipts ON receipts.position = touches.receipt
WHERE touches.path = ?
ORDER BY touches.receipt DESC, touches.content DESC;

-- name: find_all_touches
SELECT touches.content, touches.path, receipts.id
FROM touches LEFT JOIN receipts ON receipts.position = touches.receipt;

-- name: find_touches_of
SELECT touches.content, touches.path, receipts.id
FROM json_each(?) AS wanted
JOIN touches ON touches.content = wanted.value
LEFT JOIN receipts ON receipts.position = touches.receipt;

-- Not LIKE: to it, some characters that paths have mean others.
-- name: find_touched_paths
SELECT DISTINCT path FROM touches
WHERE path = ?1 OR substr(path, -length(?1) - 1) = '/' || ?1
ORDER BY path;

-- name: add_cached
INSERT INTO cached (call, key, receipt, until) VALUES (?, ?, ?, ?);

-- name: charge
INSERT INTO charged (account, unit, used) VALUES (?, ?, ?)
ON CONFLICT (account, unit) DO UPDATE SET used = used + excluded.used;

-- name: get_used
SELECT account, unit, used FROM charged WHERE account = ? AND unit = ?;

-- name: find_charged
SELECT account, unit, used FROM charged WHERE account = ? ORDER BY unit;

-- name: find_all_charged
SELECT account, unit, used FROM charged;

-- name: find_cached
SELECT call, key, receipt, until FROM cached WHERE key = ? ORDER BY call DESC;

-- name: find_all_cached
SELECT call, key, receipt, until FROM cached;

-- name: add_held_call
INSERT INTO held_calls (call, run, receipt) VALUES (?, ?, ?);

-- name: find_held_calls
SELECT call, run, receipt FROM held_calls ORDER BY call;

-- name: find_waiting_calls
SELECT held_calls.call, held_calls.run, held_calls.receipt
FROM held_calls JOIN runs ON runs.id = held_calls.run
WHERE runs.state = 'open' AND NOT EXISTS (SELECT 1 FROM decided_calls WHERE decided_calls.call = held_calls.call)
ORDER BY held_calls.call;

-- name: add_decided_call
INSERT INTO decided_calls (call, run, receipt, approved) VALUES (?, ?, ?, ?);

-- name: find_decided_call
SELECT call, run, receipt, approved FROM decided_calls WHERE call = ?;

-- name: find_decided_calls
SELECT call, run, receipt, approved FROM decided_calls ORDER BY call;

-- name: add_remark
INSERT INTO remarks (said, name, receipt) VALUES (?, ?, ?);

-- name: find_remarks
SELECT said, name, receipt FROM remarks WHERE said = ? AND name = ? ORDER BY receipt DESC;

-- name: find_remarks_of_kind
SELECT said, name, receipt FROM remarks WHERE said = ? ORDER BY receipt DESC;

-- name: find_all_remarks
SELECT said, name, receipt FROM remarks;

-- name: get_run
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs WHERE id = ?;

-- name: find_runs
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE (:agent IS NULL OR agent = :agent)
ORDER BY id DESC;

-- name: find_children
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE parent = :parent AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root)
ORDER BY id DESC;

-- name: find_attempts
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE parent = :parent AND handoff = :handoff
ORDER BY attempt;

-- name: find_series
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    series = :series
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root) AND (:parent IS NULL OR parent = :parent)
ORDER BY id DESC;

-- name: find_session
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    session = :session
    AND (:series IS NULL OR series = :series)
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root) AND (:parent IS NULL OR parent = :parent)
ORDER BY id DESC;

-- CROSS JOIN keeps the order: the planner would rather walk all runs that there are than sort those of one tree.
-- name: find_runs_of_tree
WITH RECURSIVE tree (run) AS (
    SELECT :root
    UNION
    SELECT runs.id FROM runs JOIN tree ON runs.parent = tree.run
)
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM tree CROSS JOIN runs ON runs.id = tree.run
WHERE (:agent IS NULL OR agent = :agent)
ORDER BY id DESC;

-- name: get_handoff
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen WHERE id = ?;

-- name: get_offer
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen WHERE scope = ? AND key = ?;

-- name: find_handoffs
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen ORDER BY id DESC;

-- name: find_handoffs_of_run
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE parent = :parent AND (:root IS NULL OR root = :root)
ORDER BY id DESC;

-- name: find_handoffs_of_tree
WITH RECURSIVE tree (run) AS (
    SELECT :root
    UNION
    SELECT runs.id FROM runs JOIN tree ON runs.parent = tree.run
)
SELECT id, root, parent, agent, carrier, state, attempt, handoffs_seen.run, initiated, seq, scope, key, deadline
FROM tree CROSS JOIN handoffs_seen ON handoffs_seen.parent = tree.run
ORDER BY id DESC;

-- The lists of states from which a handoff can expire come from the one table, between commas.
-- name: find_overdue
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE id IN (
    SELECT id FROM handoffs
    WHERE
        deadline <= CAST(unixepoch('subsec') * 1000000 AS INTEGER)
        AND instr(CASE carrier WHEN 'caller' THEN :caller_sources ELSE :worker_sources END, ',' || state || ',')
)
ORDER BY deadline, id;

-- name: find_held
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs
WHERE state = 'held'
ORDER BY id;

-- name: find_statements
SELECT item, root, digest, author, at FROM statements ORDER BY rowid;

-- name: find_statements_of_tree
SELECT item, root, digest, author, at FROM statements WHERE root = :root ORDER BY rowid;

-- name: find_keys
SELECT id, role, public_key, relay, status, principal FROM keys ORDER BY role DESC, id;

-- name: find_seals
SELECT size, previous, root, note, frontier FROM seals ORDER BY size;

-- name: counts
SELECT
    (SELECT count(*) FROM receipts),
    (SELECT count(*) FROM streams),
    (SELECT count(*) FROM runs),
    (SELECT count(*) FROM handoffs),
    (SELECT count(*) FROM contents),
    (SELECT count(*) FROM seals);

-- name: find_run_ids
SELECT id FROM runs WHERE ?1 = '' OR substr(id, -length(?1)) = ?1 ORDER BY id DESC;

-- name: find_handoff_ids
SELECT id FROM handoffs WHERE ?1 = '' OR substr(id, -length(?1)) = ?1 ORDER BY id DESC;

-- name: find_receipt_ids
SELECT id FROM receipts WHERE ?1 = '' OR substr(id, -length(?1)) = ?1 ORDER BY id DESC;

-- name: find_content_ids
SELECT id FROM contents WHERE ?1 = '' OR substr(id, -length(?1)) = ?1 ORDER BY id DESC;

-- name: find_relay_ids
SELECT DISTINCT relay FROM keys WHERE relay IS NOT NULL AND (?1 = '' OR substr(relay, -length(?1)) = ?1) ORDER BY relay DESC;

-- name: find_session_ids
SELECT DISTINCT session FROM runs
WHERE session IS NOT NULL AND (?1 = '' OR substr(session, -length(?1)) = ?1)
ORDER BY session DESC;
