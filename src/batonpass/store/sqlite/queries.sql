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

-- The compare-and-set of an append: it changes the row only if the stream is where the receipt says and the recording
-- key is active. The caller looks at the number of changed rows: RETURNING would take as long as all the rest.
-- name: move_stream
UPDATE streams SET seq = ?2, head = ?3, epoch = ?4, open = ?5
WHERE
    id = ?1 AND seq = ?2 - 1 AND head = ?6 AND epoch = ?7 AND open = 1
    AND (?8 OR EXISTS (SELECT 1 FROM keys WHERE id = ?9 AND role = 'relay' AND status = 'active'));

-- name: open_stream
INSERT INTO streams (id, root, seq, head, epoch, open)
SELECT ?1, ?10, ?2, ?3, ?4, ?5
WHERE ?8 OR EXISTS (SELECT 1 FROM keys WHERE id = ?9 AND role = 'relay' AND status = 'active')
ON CONFLICT (id) DO NOTHING;

-- name: count_said_in_tree
SELECT
    (SELECT count(*) FROM statements WHERE root = ?1),
    (SELECT count(*) FROM remarks WHERE said = 'refuted' AND name = ?1);

-- name: has_stream
SELECT 1 FROM streams WHERE id = ?;

-- name: is_head
SELECT 1 FROM streams WHERE id = ?1 AND seq = ?2 AND head = ?3;

-- name: fence_stream
UPDATE streams SET open = 0
WHERE id = :run AND seq = :seq AND head = :head AND open = 1
RETURNING number;

-- The caller has checked that the id is free: an id above the greatest settled one needs no query.
-- name: add_receipt
INSERT INTO receipts (id, stream, seq, kind, payload, relay_signature, cosignature)
VALUES (?, (SELECT number FROM streams WHERE id = ?), ?, ?, ?, ?, ?);

-- name: is_settled_receipt
SELECT 1 FROM receipt_names WHERE name = ?;

-- name: add_content
INSERT INTO contents (id, receipt, place, salt, body) VALUES (?, ?, ?, ?, ?);

-- name: is_settled_content
SELECT 1 FROM content_ids WHERE id = ?;

-- name: erase_content
UPDATE contents SET place = 'erased', salt = NULL, body = NULL
WHERE number = (
    SELECT number FROM content_ids WHERE id = ?1
    UNION ALL
    SELECT number FROM contents WHERE number > (SELECT content FROM settled) AND id = ?1
    LIMIT 1
) AND id = ?1;

-- name: add_touch
INSERT INTO touches (content, receipt, path) VALUES (?, ?, ?);

-- name: erase_touch
DELETE FROM touches WHERE content = ?;

-- An id that is not above the settled ones goes into the indexes at once: after a clock was set back, or an import.
-- name: add_run
INSERT INTO runs (
    id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session,
    settled
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?1 <= (SELECT run FROM settled));

-- name: end_run
UPDATE runs SET state = ?, ended_at = ? WHERE id = ?;

-- name: add_handoff
INSERT INTO handoffs (
    id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline, settled
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?1 <= (SELECT handoff FROM settled));

-- The states from which the event is allowed come from the table of transitions, as a list between commas. The caller
-- looks at the number of changed rows.
-- name: move_handoff_of_caller
UPDATE handoffs
SET
    agent = coalesce(?2, agent),
    state = ?3,
    attempt = coalesce(?5, attempt),
    run = coalesce(?6, run)
WHERE
    id = ?1
    AND carrier = 'caller'
    AND (?7 IS NULL OR attempt = ?7)
    AND ?8 IS CASE state WHEN 'running' THEN run END
    AND (?9 IS NULL OR ?9 = coalesce((SELECT head FROM streams WHERE streams.id = ?1), initiated))
    AND instr(?10, ',' || state || ',');

-- The same for any carrier. Its lease follows a handoff that a worker carries.
-- name: move_handoff
UPDATE handoffs
SET
    agent = coalesce(?2, agent),
    state = CASE carrier WHEN 'caller' THEN ?3 ELSE ?4 END,
    attempt = coalesce(?5, attempt),
    run = coalesce(?6, run)
WHERE
    id = ?1
    AND (?7 IS NULL OR attempt = ?7)
    AND ?8 IS CASE state WHEN 'running' THEN run END
    AND (?9 IS NULL OR ?9 = coalesce((SELECT head FROM streams WHERE streams.id = ?1), initiated))
    AND instr(CASE carrier WHEN 'caller' THEN ?10 ELSE ?11 END, ',' || state || ',')
RETURNING carrier, state, agent;

-- As stored: the state claimed is derived from the lease, and not included here.
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
SELECT id, root, seq, head, epoch, open FROM streams WHERE id = :id;

-- name: find_streams
SELECT id, root, seq, head, epoch, open FROM streams ORDER BY number;

-- Every lookup by index also scans the tail, whose rows are in no index yet.
-- name: get_receipt
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts LEFT JOIN streams ON streams.number = receipts.stream
WHERE receipts.id = :id AND receipts.position = (
    SELECT position FROM receipt_names WHERE name = :id
    UNION ALL
    SELECT position FROM receipts WHERE position > (SELECT receipt FROM settled) AND id = :id
    LIMIT 1
);

-- name: get_receipt_at
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM streams CROSS JOIN receipts ON receipts.stream = streams.number
WHERE streams.id = :stream AND receipts.seq = :seq AND receipts.position = (
    SELECT position FROM receipt_places WHERE stream = streams.number AND seq = :seq
    UNION ALL
    SELECT position FROM receipts AS late
    WHERE late.position > (SELECT receipt FROM settled) AND late.stream = streams.number AND late.seq = :seq
    LIMIT 1
);

-- A part that a query leaves open is NULL. The planner sees the parts at prepare time, so the two shapes that must be
-- fast, by stream and by position, have statements of their own. An agent's receipts are those of its runs' streams.
-- name: find_receipts
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts LEFT JOIN streams ON streams.number = receipts.stream
WHERE
    receipts.position >= :first AND receipts.position <= :last AND receipts.id >= :since
    AND (:kind IS NULL OR receipts.kind = :kind OR receipts.kind LIKE :kind || '.%')
    AND NOT instr(:but, ',' || receipts.kind || ',')
ORDER BY receipts.position;

-- CROSS JOIN fixes the order of the joins, and the unary plus hides the position from the planner: without statistics
-- it would rather scan all receipts in order of position than look up those of a few streams.
-- name: find_receipts_of_streams
WITH RECURSIVE
    tree (run) AS (
        SELECT :root WHERE :root IS NOT NULL
        UNION
        SELECT runs.id FROM tree CROSS JOIN runs ON runs.settled = 1 AND runs.parent = tree.run
        UNION
        SELECT runs.id FROM tree CROSS JOIN runs ON runs.id > (SELECT run FROM settled) AND runs.parent = tree.run
    ),
    wanted (id) AS (
        SELECT :stream WHERE :stream IS NOT NULL
        UNION
        SELECT run FROM tree
        UNION
        SELECT handoffs.id FROM tree CROSS JOIN handoffs ON handoffs.settled = 1 AND handoffs.parent = tree.run
        UNION
        SELECT handoffs.id FROM handoffs
        WHERE handoffs.id > (SELECT handoff FROM settled) AND handoffs.parent IN (SELECT run FROM tree)
        UNION
        SELECT runs.id FROM runs WHERE :stream IS NULL AND :root IS NULL AND settled = 1 AND runs.agent = :agent
        UNION
        SELECT runs.id FROM runs
        WHERE :stream IS NULL AND :root IS NULL AND runs.id > (SELECT run FROM settled) AND runs.agent = :agent
    ),
    numbers (number) AS (
        SELECT streams.number FROM wanted CROSS JOIN streams ON streams.id = wanted.id
    ),
    found (position, stream) AS (
        SELECT receipt_places.position, receipt_places.stream
        FROM numbers CROSS JOIN receipt_places ON receipt_places.stream = numbers.number
        UNION ALL
        SELECT receipts.position, receipts.stream FROM receipts
        WHERE receipts.position > (SELECT receipt FROM settled) AND receipts.stream IN (SELECT number FROM numbers)
    )
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM found
CROSS JOIN receipts ON receipts.position = found.position AND receipts.stream = found.stream
CROSS JOIN streams ON streams.number = receipts.stream
WHERE
    +receipts.position >= :first AND +receipts.position <= :last AND +receipts.id >= :since
    AND (:root IS NULL OR :stream IS NULL OR streams.root = :root AND streams.id = :stream)
    AND (:kind IS NULL OR receipts.kind = :kind OR receipts.kind LIKE :kind || '.%')
    AND (:agent IS NULL OR EXISTS (SELECT 1 FROM runs WHERE runs.id = streams.id AND runs.agent = :agent))
    AND NOT instr(:but, ',' || receipts.kind || ',')
ORDER BY receipts.position;

-- name: find_receipts_of_some_streams
WITH
    numbers (number) AS (
        SELECT streams.number FROM json_each(:streams) AS wanted CROSS JOIN streams ON streams.id = wanted.value
        UNION ALL
        SELECT streams.number FROM runs CROSS JOIN streams ON streams.id = runs.id
        WHERE runs.settled = 1 AND runs.parent = :parent AND runs.handoff = :handoff
        UNION ALL
        SELECT streams.number FROM runs CROSS JOIN streams ON streams.id = runs.id
        WHERE runs.id > (SELECT run FROM settled) AND runs.parent = :parent AND runs.handoff = :handoff
    ),
    found (position, stream) AS (
        SELECT receipt_places.position, receipt_places.stream
        FROM numbers CROSS JOIN receipt_places ON receipt_places.stream = numbers.number
        UNION ALL
        SELECT receipts.position, receipts.stream FROM receipts
        WHERE receipts.position > (SELECT receipt FROM settled) AND receipts.stream IN (SELECT number FROM numbers)
    )
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM found
CROSS JOIN receipts ON receipts.position = found.position AND receipts.stream = found.stream
CROSS JOIN streams ON streams.number = receipts.stream
WHERE
    +receipts.position >= :first AND +receipts.position <= :last AND +receipts.id >= :since
    AND (:root IS NULL OR streams.root = :root) AND (:stream IS NULL OR streams.id = :stream)
    AND (:kind IS NULL OR receipts.kind = :kind OR receipts.kind LIKE :kind || '.%')
    AND (:agent IS NULL OR EXISTS (SELECT 1 FROM runs WHERE runs.id = streams.id AND runs.agent = :agent))
    AND NOT instr(:but, ',' || receipts.kind || ',')
ORDER BY receipts.position;

-- The same expression as in `settle`: the last four of the 31 characters after `"call":"`. Not json_extract, which
-- would fail on edited bytes and keep the verifier from reporting them. The caller parses the receipt and checks that
-- it is about that call. A shorter ending is searched for among all receipts about calls.
-- name: find_call_receipts
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts LEFT JOIN streams ON streams.number = receipts.stream
WHERE receipts.position IN (
    SELECT position FROM receipt_names WHERE name = 'call_' || :ending
    UNION ALL
    SELECT position FROM receipts
    WHERE
        position > (SELECT receipt FROM settled)
        AND kind IN ('tool.requested', 'tool.denied', 'tool.held')
        AND substr(CAST(payload AS TEXT), instr(CAST(payload AS TEXT), '"call":"call_') + 35, 4) = :ending
)
ORDER BY receipts.position;

-- name: find_all_call_receipts
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts LEFT JOIN streams ON streams.number = receipts.stream
WHERE receipts.position IN (
    SELECT position FROM receipt_names WHERE name >= 'call_' AND name < 'call`'
    UNION ALL
    SELECT position FROM receipts
    WHERE position > (SELECT receipt FROM settled) AND kind IN ('tool.requested', 'tool.denied', 'tool.held')
)
ORDER BY receipts.position;

-- Compared as bytes, which need no copy and no decoding: a request and its outcome have the same bytes after
-- `"call":"`. The length of a stream is known before its receipts are read, so no run is read in vain.
-- name: find_open_requests
WITH
    latest (id, state) AS (SELECT id, state FROM runs ORDER BY id DESC LIMIT :runs),
    ends (number, seq, before) AS (
        SELECT
            streams.number, streams.seq,
            sum(min(streams.seq, :of_each)) OVER (ORDER BY latest.state = 'completed', latest.id DESC)
            - min(streams.seq, :of_each)
        FROM latest CROSS JOIN streams ON streams.id = latest.id
    ),
    wanted (number, after, seq) AS MATERIALIZED (SELECT number, seq - :of_each, seq FROM ends WHERE before < :most),
    found (position, stream) AS (
        SELECT receipt_places.position, receipt_places.stream
        FROM wanted
        CROSS JOIN receipt_places
            ON
                receipt_places.stream = wanted.number
                AND receipt_places.seq > wanted.after AND receipt_places.seq <= wanted.seq
        UNION ALL
        SELECT receipts.position, receipts.stream
        FROM receipts
        CROSS JOIN wanted
            ON wanted.number = receipts.stream AND receipts.seq > wanted.after AND receipts.seq <= wanted.seq
        WHERE receipts.position > (SELECT receipt FROM settled)
    ),
    calls (position, stream, kind, call) AS MATERIALIZED (
        SELECT
            receipts.position, receipts.stream, receipts.kind,
            substr(receipts.payload, instr(receipts.payload, CAST('"call":"call_' AS BLOB)) + 8, 31)
        FROM found
        CROSS JOIN receipts ON receipts.position = found.position AND receipts.stream = found.stream
        WHERE receipts.kind IN ('tool.requested', 'tool.completed', 'tool.failed')
    )
SELECT
    receipts.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM calls
CROSS JOIN receipts ON receipts.position = calls.position
CROSS JOIN streams ON streams.number = receipts.stream
WHERE
    calls.kind = 'tool.requested'
    AND (calls.stream, calls.call) NOT IN (SELECT stream, call FROM calls WHERE kind <> 'tool.requested');

-- name: first_position_since
SELECT coalesce(min(position), 9223372036854775807) FROM (
    SELECT position FROM receipt_names WHERE name >= :since AND name < 'receipt`'
    UNION ALL
    SELECT position FROM receipts WHERE position > (SELECT receipt FROM settled) AND id >= :since
);

-- name: last_position
SELECT coalesce(max(position), 0) FROM receipts;

-- name: get_content
SELECT contents.id, receipts.id, contents.place, contents.salt, contents.body
FROM contents LEFT JOIN receipts ON receipts.position = contents.receipt
WHERE contents.id = :id AND contents.number = (
    SELECT number FROM content_ids WHERE id = :id
    UNION ALL
    SELECT number FROM contents WHERE number > (SELECT content FROM settled) AND id = :id
    LIMIT 1
);

-- name: find_contents
SELECT contents.id, receipts.id, contents.place, contents.salt, contents.body
FROM json_each(:ids) AS wanted
CROSS JOIN contents ON contents.id = wanted.value AND contents.number = (
    SELECT number FROM content_ids WHERE id = wanted.value
    UNION ALL
    SELECT number FROM contents AS late WHERE late.number > (SELECT content FROM settled) AND late.id = wanted.value
    LIMIT 1
)
LEFT JOIN receipts ON receipts.position = contents.receipt;

-- name: find_touches
SELECT touches.content, touches.path, receipts.id
FROM touches LEFT JOIN receipts ON receipts.position = touches.receipt
WHERE touches.path = :path
ORDER BY touches.receipt DESC, touches.content DESC;

-- name: find_all_touches
SELECT touches.content, touches.path, receipts.id
FROM touches LEFT JOIN receipts ON receipts.position = touches.receipt;

-- name: find_touches_of
SELECT touches.content, touches.path, receipts.id
FROM json_each(:ids) AS wanted
JOIN touches ON touches.content = wanted.value
LEFT JOIN receipts ON receipts.position = touches.receipt;

-- Not LIKE: paths may contain its wildcards.
-- name: find_touched_paths
SELECT DISTINCT path FROM touches
WHERE path = :ending OR substr(path, -length(:ending) - 1) = '/' || :ending
ORDER BY path;

-- name: add_cached
INSERT INTO cached (call, key, receipt, until) VALUES (?, ?, ?, ?);

-- name: charge
INSERT INTO charged (account, unit, used) VALUES (?, ?, ?)
ON CONFLICT (account, unit) DO UPDATE SET used = used + excluded.used;

-- name: get_used
SELECT account, unit, used FROM charged WHERE account = ? AND unit = ?;

-- name: find_charged
SELECT account, unit, used FROM charged WHERE account IN (SELECT value FROM json_each(:accounts)) ORDER BY account, unit;

-- name: find_all_charged
SELECT account, unit, used FROM charged;

-- name: find_cached
SELECT call, key, receipt, until FROM cached WHERE key = :key ORDER BY call DESC;

-- name: find_all_cached
SELECT call, key, receipt, until FROM cached;

-- name: add_held_call
INSERT INTO held_calls (call, run, receipt) VALUES (?, ?, ?);

-- name: find_held_calls
SELECT call, run, receipt FROM held_calls ORDER BY call;

-- name: find_held_call
SELECT call, run, receipt FROM held_calls WHERE call = :call;

-- name: find_waiting_calls
SELECT held_calls.call, held_calls.run, held_calls.receipt
FROM held_calls JOIN runs ON runs.id = held_calls.run
WHERE runs.state = 'open' AND NOT EXISTS (SELECT 1 FROM decided_calls WHERE decided_calls.call = held_calls.call)
ORDER BY held_calls.call;

-- name: add_decided_call
INSERT INTO decided_calls (call, run, receipt, approved) VALUES (?, ?, ?, ?);

-- name: find_decided_call
SELECT call, run, receipt, approved FROM decided_calls WHERE call = :call;

-- name: find_decided_calls
SELECT call, run, receipt, approved FROM decided_calls ORDER BY call;

-- name: add_remark
INSERT INTO remarks (said, name, receipt) VALUES (?, ?, ?);

-- name: find_remarks
SELECT said, name, receipt FROM remarks WHERE said = :said AND name = :name ORDER BY receipt DESC;

-- name: find_remarks_of_kind
SELECT said, name, receipt FROM remarks WHERE said = :said ORDER BY receipt DESC;

-- name: find_all_remarks
SELECT said, name, receipt FROM remarks;

-- name: get_run
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs WHERE id = :id;

-- Lists of runs: each statement starts from the index of its most selective part and filters by the others row by row.
-- Every id is less than '~', which stands for "no end"; lists of states stand between commas.
-- name: find_runs
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE id < :before
ORDER BY id DESC LIMIT :limit;

-- name: find_runs_in_state
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    settled = 1 AND state = :state AND id < :before AND (NOT :roots OR parent IS NULL)
UNION ALL
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    id > (SELECT run FROM settled) AND state = :state AND id < :before AND (NOT :roots OR parent IS NULL)
ORDER BY id DESC LIMIT :limit;

-- name: find_runs_of_agent
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    settled = 1 AND agent = :agent AND id < :before
    AND (NOT :roots OR parent IS NULL) AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    id > (SELECT run FROM settled) AND agent = :agent AND id < :before
    AND (NOT :roots OR parent IS NULL) AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- name: find_roots
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    settled = 1 AND parent IS NULL AND id < :before AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    id > (SELECT run FROM settled) AND parent IS NULL AND id < :before AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- name: find_children
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    settled = 1 AND parent = :parent AND id < :before AND NOT :roots
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    id > (SELECT run FROM settled) AND parent = :parent AND id < :before AND NOT :roots
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- name: find_attempts
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    settled = 1 AND parent = :parent AND handoff = :handoff
UNION ALL
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    id > (SELECT run FROM settled) AND parent = :parent AND handoff = :handoff
ORDER BY attempt;

-- name: find_series
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    settled = 1 AND series = :series AND id < :before AND (NOT :roots OR parent IS NULL)
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root) AND (:parent IS NULL OR parent = :parent)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    id > (SELECT run FROM settled) AND series = :series AND id < :before AND (NOT :roots OR parent IS NULL)
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root) AND (:parent IS NULL OR parent = :parent)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- name: find_session
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    settled = 1 AND session = :session AND id < :before
    AND (:series IS NULL OR series = :series)
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root) AND (:parent IS NULL OR parent = :parent)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    id > (SELECT run FROM settled) AND session = :session AND id < :before
    AND (:series IS NULL OR series = :series)
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root) AND (:parent IS NULL OR parent = :parent)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- name: find_session_roots
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    settled = 1 AND session = :session AND parent IS NULL AND id < :before
    AND (:series IS NULL OR series = :series)
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root) AND (:parent IS NULL OR parent = :parent)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    id > (SELECT run FROM settled) AND session = :session AND parent IS NULL AND id < :before
    AND (:series IS NULL OR series = :series)
    AND (:agent IS NULL OR agent = :agent) AND (:root IS NULL OR root = :root) AND (:parent IS NULL OR parent = :parent)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- CROSS JOIN fixes the order: the planner would rather scan all runs than sort those of one tree.
-- name: find_runs_of_tree
WITH RECURSIVE tree (run) AS (
    SELECT :root
    UNION
    SELECT runs.id FROM tree CROSS JOIN runs ON runs.settled = 1 AND runs.parent = tree.run
    UNION
    SELECT runs.id FROM tree CROSS JOIN runs ON runs.id > (SELECT run FROM settled) AND runs.parent = tree.run
)
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM tree CROSS JOIN runs ON runs.id = tree.run
WHERE
    runs.id < :before
    AND (:agent IS NULL OR agent = :agent) AND (NOT :roots OR parent IS NULL)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- name: get_handoff
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen WHERE id = :id;

-- name: get_offer
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen WHERE scope = :scope AND key = :key;

-- name: find_handoffs
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE id < :before
ORDER BY id DESC LIMIT :limit;

-- Any state except ready and claimed, which depend on the lease.
-- name: find_handoffs_in_state
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs
WHERE
    settled = 1 AND state = :state AND id < :before
UNION ALL
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs
WHERE
    id > (SELECT handoff FROM settled) AND state = :state AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: find_ready
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs
WHERE
    settled = 1 AND state = 'ready' AND id < :before
    AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.handoff = handoffs.id AND leases.holder IS NOT NULL)
UNION ALL
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs
WHERE
    id > (SELECT handoff FROM settled) AND state = 'ready' AND id < :before
    AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.handoff = handoffs.id AND leases.holder IS NOT NULL)
ORDER BY id DESC LIMIT :limit;

-- Starts from the held leases, which are as many as there are busy workers: any number of handoffs may be ready.
-- name: find_claimed
SELECT
    handoffs.id, root, parent, handoffs.agent, carrier, 'claimed', attempt, run, initiated, seq, scope, key, deadline
FROM leases CROSS JOIN handoffs ON handoffs.id = leases.handoff
WHERE leases.until IS NOT NULL AND leases.holder IS NOT NULL AND handoffs.state = 'ready' AND handoffs.id < :before
ORDER BY handoffs.id DESC LIMIT :limit;

-- name: find_handoffs_of_agent
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE
    settled = 1 AND agent = :to AND id < :before AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE
    id > (SELECT handoff FROM settled) AND agent = :to AND id < :before AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- name: find_handoffs_of_run
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE
    settled = 1 AND parent = :parent AND id < :before
    AND (:root IS NULL OR root = :root) AND (:to IS NULL OR agent = :to)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE
    id > (SELECT handoff FROM settled) AND parent = :parent AND id < :before
    AND (:root IS NULL OR root = :root) AND (:to IS NULL OR agent = :to)
    AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- name: find_handoffs_of_tree
WITH RECURSIVE tree (run) AS (
    SELECT :root
    UNION
    SELECT runs.id FROM tree CROSS JOIN runs ON runs.settled = 1 AND runs.parent = tree.run
    UNION
    SELECT runs.id FROM tree CROSS JOIN runs ON runs.id > (SELECT run FROM settled) AND runs.parent = tree.run
)
SELECT id, root, parent, agent, carrier, state, attempt, handoffs_seen.run, initiated, seq, scope, key, deadline
FROM tree CROSS JOIN handoffs_seen ON handoffs_seen.settled = 1 AND handoffs_seen.parent = tree.run
WHERE
    id < :before AND (:to IS NULL OR agent = :to) AND (:states IS NULL OR instr(:states, ',' || state || ','))
UNION ALL
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE
    id > (SELECT handoff FROM settled) AND parent IN (SELECT run FROM tree)
    AND id < :before AND (:to IS NULL OR agent = :to) AND (:states IS NULL OR instr(:states, ',' || state || ','))
ORDER BY id DESC LIMIT :limit;

-- The states from which a handoff can expire come from the table of transitions, as a list between commas.
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
WHERE
    settled = 1 AND state = 'held'
UNION ALL
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs
WHERE
    id > (SELECT handoff FROM settled) AND state = 'held'
ORDER BY id;

-- name: find_all_statements
SELECT item, root, digest, author, at FROM statements ORDER BY rowid;

-- name: find_statements
SELECT item, root, digest, author, at FROM statements WHERE root = :root ORDER BY rowid;

-- name: find_keys
SELECT id, role, public_key, relay, status, principal FROM keys ORDER BY role DESC, id;

-- name: find_seals
SELECT size, previous, root, note, frontier FROM seals ORDER BY size;

-- Receipts and contents are counted in their index tables: counting the rows themselves would read everything.
-- name: counts
SELECT
    (SELECT count(*) FROM receipt_places)
    + (SELECT count(*) FROM receipts WHERE position > (SELECT receipt FROM settled) OR position < 1),
    (SELECT count(*) FROM streams),
    (SELECT count(*) FROM runs),
    (SELECT count(*) FROM handoffs),
    (SELECT count(*) FROM content_ids)
    + (SELECT count(*) FROM contents WHERE number > (SELECT content FROM settled) OR number < 1),
    (SELECT count(*) FROM seals);

-- name: content_sizes
SELECT
    count(*) FILTER (WHERE place = 'row'),
    coalesce(sum(length(body)) FILTER (WHERE place = 'row'), 0),
    count(*) FILTER (WHERE place = 'file'),
    count(*) FILTER (WHERE place = 'erased')
FROM contents;

-- name: find_run_ids
SELECT id FROM runs WHERE :ending = '' OR substr(id, -length(:ending)) = :ending ORDER BY id DESC;

-- name: find_run_ids_by_ending
SELECT id FROM runs WHERE settled = 1 AND substr(id, -4) = substr(:ending, -4) AND substr(id, -length(:ending)) = :ending
UNION ALL
SELECT id FROM runs WHERE id > (SELECT run FROM settled) AND substr(id, -length(:ending)) = :ending
ORDER BY id DESC;

-- name: find_handoff_ids
SELECT id FROM handoffs WHERE :ending = '' OR substr(id, -length(:ending)) = :ending ORDER BY id DESC;

-- name: find_handoff_ids_by_ending
SELECT id FROM handoffs WHERE settled = 1 AND substr(id, -4) = substr(:ending, -4) AND substr(id, -length(:ending)) = :ending
UNION ALL
SELECT id FROM handoffs WHERE id > (SELECT handoff FROM settled) AND substr(id, -length(:ending)) = :ending
ORDER BY id DESC;

-- name: find_receipt_ids
SELECT name AS id FROM receipt_names
WHERE name >= 'receipt_' AND name < 'receipt`' AND (:ending = '' OR substr(name, -length(:ending)) = :ending)
UNION ALL
SELECT id FROM receipts WHERE position > (SELECT receipt FROM settled) AND (:ending = '' OR substr(id, -length(:ending)) = :ending)
ORDER BY id DESC;

-- name: find_receipt_ids_by_ending
SELECT id FROM receipts
WHERE
    substr(id, -length(:ending)) = :ending
    AND position IN (
        SELECT position FROM receipt_names WHERE name = '-' || substr(:ending, -4)
        UNION ALL
        SELECT position FROM receipts WHERE position > (SELECT receipt FROM settled)
    )
ORDER BY id DESC;

-- name: find_content_ids
SELECT id FROM content_ids WHERE :ending = '' OR substr(id, -length(:ending)) = :ending
UNION ALL
SELECT id FROM contents
WHERE number > (SELECT content FROM settled) AND (:ending = '' OR substr(id, -length(:ending)) = :ending)
ORDER BY id DESC;

-- name: find_relay_ids
SELECT DISTINCT relay FROM keys WHERE relay IS NOT NULL AND (:ending = '' OR substr(relay, -length(:ending)) = :ending) ORDER BY relay DESC;

-- name: find_session_ids
SELECT session FROM runs
WHERE settled = 1 AND session IS NOT NULL AND (:ending = '' OR substr(session, -length(:ending)) = :ending)
UNION
SELECT session FROM runs
WHERE id > (SELECT run FROM settled) AND session IS NOT NULL AND (:ending = '' OR substr(session, -length(:ending)) = :ending)
ORDER BY session DESC;

-- name: schema_version
PRAGMA schema_version;

-- name: get_settled
SELECT receipt, content, run, handoff FROM settled WHERE only = 1;

-- name: greatest_settled
SELECT
    (SELECT max(name) FROM receipt_names WHERE name >= 'receipt_' AND name < 'receipt`'),
    (SELECT max(id) FROM content_ids);

-- name: find_late_receipts
SELECT id FROM receipts WHERE position > ?;

-- name: find_late_contents
SELECT id FROM contents WHERE number > ?;

-- Writes the index entries of the whole tail at once, and moves the end of the settled part.
-- name: settle
INSERT INTO receipt_places (stream, seq, position)
SELECT stream, seq, position FROM receipts WHERE position > (SELECT receipt FROM settled)
ORDER BY stream, seq;

INSERT INTO receipt_names (name, position)
SELECT id, position FROM receipts WHERE position > (SELECT receipt FROM settled)
UNION
SELECT '-' || substr(id, -4), position FROM receipts WHERE position > (SELECT receipt FROM settled)
UNION
SELECT
    'call_' || substr(CAST(payload AS TEXT), instr(CAST(payload AS TEXT), '"call":"call_') + 35, 4), position
FROM receipts
WHERE position > (SELECT receipt FROM settled) AND kind IN ('tool.requested', 'tool.denied', 'tool.held');

INSERT INTO content_ids (id, number)
SELECT id, number FROM contents WHERE number > (SELECT content FROM settled)
ORDER BY id;

UPDATE runs SET settled = 1 WHERE id > (SELECT run FROM settled);

UPDATE handoffs SET settled = 1 WHERE id > (SELECT handoff FROM settled);

UPDATE settled SET
    receipt = coalesce((SELECT max(position) FROM receipts), 0),
    content = coalesce((SELECT max(number) FROM contents), 0),
    run = coalesce((SELECT max(id) FROM runs), ''),
    handoff = coalesce((SELECT max(id) FROM handoffs), '');

-- Checks of the index tables, for the verifier: each yields a name where an entry is missing or wrong. A surplus entry
-- shows in the counts.
-- name: misfiled_names
SELECT receipts.id FROM receipts
WHERE
    position <= (SELECT receipt FROM settled)
    AND NOT (
        EXISTS (SELECT 1 FROM receipt_names WHERE name = receipts.id AND position = receipts.position)
        AND EXISTS (SELECT 1 FROM receipt_names WHERE name = '-' || substr(receipts.id, -4) AND position = receipts.position)
        AND (
            kind NOT IN ('tool.requested', 'tool.denied', 'tool.held')
            OR EXISTS (
                SELECT 1 FROM receipt_names
                WHERE
                    name = 'call_' || substr(
                        CAST(receipts.payload AS TEXT), instr(CAST(receipts.payload AS TEXT), '"call":"call_') + 35, 4
                    )
                    AND position = receipts.position
            )
        )
    )
UNION ALL
SELECT 'a receipt'
WHERE (SELECT count(*) FROM receipt_names) <> (
    SELECT 2 * count(*) + count(*) FILTER (WHERE kind IN ('tool.requested', 'tool.denied', 'tool.held'))
    FROM receipts WHERE position <= (SELECT receipt FROM settled)
)
LIMIT 1;

-- name: misfiled_places
SELECT receipts.id FROM receipts
WHERE
    position <= (SELECT receipt FROM settled)
    AND NOT EXISTS (
        SELECT 1 FROM receipt_places
        WHERE stream = receipts.stream AND seq = receipts.seq AND position = receipts.position
    )
UNION ALL
SELECT 'a receipt'
WHERE
    (SELECT count(*) FROM receipt_places) <> (SELECT receipt FROM settled)
    OR (SELECT receipt FROM settled) > coalesce((SELECT max(position) FROM receipts), 0)
LIMIT 1;

-- name: misfiled_contents
SELECT contents.id FROM contents
WHERE
    number <= (SELECT content FROM settled)
    AND NOT EXISTS (SELECT 1 FROM content_ids WHERE id = contents.id AND number = contents.number)
UNION ALL
SELECT 'a content'
WHERE
    (SELECT count(*) FROM content_ids) <> (SELECT content FROM settled)
    OR (SELECT content FROM settled) > coalesce((SELECT max(number) FROM contents), 0)
    OR (SELECT count(*) FROM contents) <> coalesce((SELECT max(number) FROM contents), 0)
LIMIT 1;

-- name: misfiled_runs
SELECT id FROM runs WHERE settled IS NOT (id <= (SELECT run FROM settled))
UNION ALL
SELECT 'a run' WHERE (SELECT run FROM settled) IS NOT coalesce((SELECT max(id) FROM runs WHERE settled = 1), '')
LIMIT 1;

-- name: misfiled_handoffs
SELECT id FROM handoffs WHERE settled IS NOT (id <= (SELECT handoff FROM settled))
UNION ALL
SELECT 'a handoff' WHERE (SELECT handoff FROM settled) IS NOT coalesce((SELECT max(id) FROM handoffs WHERE settled = 1), '')
LIMIT 1;

-- The statements of appends that are written together. In each, the line of the row is repeated. There are a few sizes
-- only, so that each is prepared once, and the rows that are too many are NULL. The values of a row are those of the
-- statement for one.
-- name: open_streams
INSERT INTO streams (id, root, seq, head, epoch, open)
SELECT column1, column10, column2, column3, column4, column5
FROM (
    VALUES
    (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
) AS given
WHERE EXISTS (SELECT 1 FROM keys WHERE id = column9 AND role = 'relay' AND status = 'active')
ON CONFLICT (id) DO NOTHING;

-- name: move_streams
UPDATE streams SET seq = column2, head = column3, epoch = column4, open = column5
FROM (
    VALUES
    (?, ?, ?, ?, ?, ?, ?, ?, ?)
) AS given
WHERE
    id = column1 AND seq = column2 - 1 AND head = column6 AND epoch = column7 AND open = 1
    AND EXISTS (SELECT 1 FROM keys WHERE keys.id = column9 AND role = 'relay' AND status = 'active');

-- name: find_wrong_premises
SELECT 1
FROM (
    VALUES
    (?, ?, ?, ?)
) AS given
WHERE
    (SELECT count(*) FROM statements WHERE root = column1) <> column2
    OR (SELECT count(*) FROM remarks WHERE said = 'refuted' AND name = column1) <> column3
    OR EXISTS (SELECT 1 FROM streams WHERE id = column4);

-- name: add_receipts
INSERT INTO receipts (id, stream, seq, kind, payload, relay_signature, cosignature, position)
SELECT column1, (SELECT number FROM streams WHERE id = column2), column3, column4, column5, column6, column7, column8
FROM (
    VALUES
    (?, ?, ?, ?, ?, ?, ?, ?)
) AS given
WHERE column1 IS NOT NULL;

-- name: add_contents
INSERT INTO contents (id, receipt, place, salt, body)
SELECT column1, column2, column3, column4, column5
FROM (
    VALUES
    (?, ?, ?, ?, ?)
) AS given
WHERE column1 IS NOT NULL;

-- name: add_runs
INSERT INTO runs (
    id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session, settled
)
SELECT
    column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12,
    column1 <= (SELECT run FROM settled)
FROM (
    VALUES
    (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
) AS given
WHERE column1 IS NOT NULL;

-- name: end_runs
UPDATE runs SET state = column1, ended_at = column2
FROM (
    VALUES
    (?, ?, ?)
) AS given
WHERE id = column3;

-- name: add_handoffs
INSERT INTO handoffs (
    id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline, settled
)
SELECT
    column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12,
    column13, column1 <= (SELECT handoff FROM settled)
FROM (
    VALUES
    (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
) AS given
WHERE column1 IS NOT NULL;

-- name: move_handoffs
UPDATE handoffs
SET
    agent = coalesce(column2, agent),
    state = CASE carrier WHEN 'caller' THEN column3 ELSE column4 END,
    attempt = coalesce(column5, attempt),
    run = coalesce(column6, run)
FROM (
    VALUES
    (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
) AS given
WHERE
    id = column1
    AND (column7 IS NULL OR attempt = column7)
    AND column8 IS CASE state WHEN 'running' THEN run END
    AND (column9 IS NULL OR column9 = coalesce((SELECT head FROM streams WHERE streams.id = column1), initiated))
    AND instr(CASE carrier WHEN 'caller' THEN column10 ELSE column11 END, ',' || state || ',')
RETURNING id, carrier, state, agent;

-- name: read_rolled
SELECT version, position FROM rolled;

-- name: find_rolled
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE
    closed_at >= :since AND closed_at < :until
    AND (:holding = x'' OR instr(body, :holding) > 0)
ORDER BY closed_at DESC, handoff DESC
LIMIT :limit;

-- name: find_rolled_oldest_first
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE
    closed_at >= :since AND closed_at < :until
    AND (:holding = x'' OR instr(body, :holding) > 0)
ORDER BY closed_at, handoff
LIMIT :limit;

-- name: find_rolled_of_agent
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE
    agent = :agent AND (:task_kind IS NULL OR task_kind = :task_kind) AND closed_at >= :since AND closed_at < :until
    AND (:holding = x'' OR instr(body, :holding) > 0)
ORDER BY closed_at DESC, handoff DESC
LIMIT :limit;

-- name: find_rolled_of_agent_oldest_first
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE
    agent = :agent AND (:task_kind IS NULL OR task_kind = :task_kind) AND closed_at >= :since AND closed_at < :until
    AND (:holding = x'' OR instr(body, :holding) > 0)
ORDER BY closed_at, handoff
LIMIT :limit;

-- name: find_rolled_of_kind
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE
    task_kind = :task_kind AND closed_at >= :since AND closed_at < :until
    AND (:holding = x'' OR instr(body, :holding) > 0)
ORDER BY closed_at DESC, handoff DESC
LIMIT :limit;

-- name: find_rolled_of_kind_oldest_first
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE
    task_kind = :task_kind AND closed_at >= :since AND closed_at < :until
    AND (:holding = x'' OR instr(body, :holding) > 0)
ORDER BY closed_at, handoff
LIMIT :limit;

-- name: find_rolled_handoffs
SELECT handoff, agent, task_kind, config, closed_at, contents, body FROM rolled_handoffs WHERE handoff IN (SELECT value FROM json_each(:handoffs)) ORDER BY handoff;

-- name: find_rolled_with
SELECT handoff, agent, task_kind, config, closed_at, contents, body FROM rolled_handoffs WHERE EXISTS (SELECT 1 FROM json_each(:contents) WHERE instr(contents, value) > 0) ORDER BY handoff;

-- name: find_rolled_days
SELECT agent, task_kind, config, day, body FROM rolled_days WHERE day >= :first AND day <= :last ORDER BY agent, task_kind, config, day;

-- name: find_rolled_days_of_agent
SELECT agent, task_kind, config, day, body
FROM rolled_days WHERE agent = :agent AND day >= :first AND day <= :last ORDER BY task_kind, config, day;

-- name: get_rolled_day
SELECT agent, task_kind, config, day, body FROM rolled_days WHERE agent = :agent AND task_kind = :task_kind AND config = :config AND day = :day;

-- name: move_rolled
UPDATE rolled SET version = ?, position = ? WHERE version = ? AND position = ? RETURNING 1;

-- name: drop_rolled_handoffs
DELETE FROM rolled_handoffs;

-- name: drop_rolled_days
DELETE FROM rolled_days;

-- name: put_rolled_handoff
INSERT INTO rolled_handoffs (handoff, agent, task_kind, config, closed_at, contents, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (handoff) DO UPDATE SET
    agent = excluded.agent, task_kind = excluded.task_kind, config = excluded.config,
    closed_at = excluded.closed_at, contents = excluded.contents, body = excluded.body;

-- name: put_rolled_day
INSERT INTO rolled_days (agent, task_kind, config, day, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (agent, task_kind, config, day) DO UPDATE SET body = excluded.body;

-- name: drop_rolled_day
DELETE FROM rolled_days WHERE agent = ? AND task_kind = ? AND config = ? AND day = ?;
