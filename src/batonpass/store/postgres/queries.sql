-- From the catalogue, not with to_regclass: that remembers within a transaction what was not there when it was asked before.
-- name: has_tables
SELECT
    count(*) FILTER (WHERE tablename = 'schema_migrations') > 0,
    count(*) FILTER (WHERE tablename <> 'schema_migrations') > 0
FROM pg_tables
WHERE
    schemaname = ANY (current_schemas(false))
    AND tablename IN (
        'schema_migrations', 'ledger', 'streams', 'receipts', 'contents', 'touches', 'runs', 'handoffs', 'leases',
        'statements', 'keys', 'seals', 'cached', 'held', 'charged', 'held_calls', 'decided_calls', 'remarks'
    );

-- name: lock_schema
SELECT pg_advisory_xact_lock(hashtextextended('batonpass.schema.' || current_schema(), 0));

-- name: create_migrations
CREATE TABLE schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: read_applied
SELECT version, applied_at FROM schema_migrations WHERE name IS NOT NULL ORDER BY version;

-- name: add_applied
INSERT INTO schema_migrations (version, name) VALUES (%(version)s, %(name)s);

-- name: read_ledger
SELECT id, root_key FROM ledger;

-- A second founder waits here until the first one has committed, and then does nothing.
-- name: add_ledger
INSERT INTO ledger ("only", id, root_key) VALUES (1, %(id)s, %(root_key)s) ON CONFLICT DO NOTHING RETURNING id;

-- name: add_key
INSERT INTO keys (id, role, public_key, relay, status, principal)
VALUES (%(id)s, %(role)s, %(public_key)s, %(relay)s, %(status)s, %(principal)s);

-- Our tables are those that our migrations make; others in the same schema are somebody else's business. Not the constraints
-- of PostgreSQL 18 for what must not be null: columns say that as well, in every version.
-- name: read_parts
WITH ours AS (
    SELECT oid, relname, relrowsecurity FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relname = ANY (%(tables)s)
)
SELECT 'trigger on ' || relname || ' ' || tgname FROM pg_trigger JOIN ours ON ours.oid = tgrelid WHERE NOT tgisinternal
UNION ALL
SELECT 'rule on ' || relname || ' ' || rulename FROM pg_rewrite JOIN ours ON ours.oid = ev_class WHERE rulename <> '_RETURN'
UNION ALL
SELECT 'row security of ' || relname FROM ours WHERE relrowsecurity
UNION ALL
SELECT 'index on ' || relname || ' ' || indexes.indexname
FROM pg_indexes AS indexes JOIN ours ON ours.relname = indexes.tablename WHERE indexes.schemaname = current_schema()
UNION ALL
SELECT 'constraint on ' || relname || ' ' || conname FROM pg_constraint JOIN ours ON ours.oid = conrelid WHERE contype <> 'n'
UNION ALL
SELECT 'column of ' || relname || CASE WHEN attnotnull THEN ' required ' ELSE ' ' END || attname
FROM pg_attribute JOIN ours ON ours.oid = attrelid WHERE attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'function ' || md5(prosrc) || ' ' || proname FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'batonpass%%';

-- name: lock_receipts
SELECT batonpass_lock_receipts();

-- name: append
SELECT batonpass_append(
    new_stream => %(stream)b,
    new_root => %(root)b,
    new_seq => %(seq)b,
    new_previous => %(previous)b,
    new_head => %(head)b,
    new_epoch => %(epoch)b,
    held_epoch => %(held_epoch)b,
    stays_open => %(stays_open)b,
    new_id => %(id)b,
    new_kind => %(kind)b,
    new_payload => %(payload)b,
    new_relay_signature => %(relay_signature)b,
    new_cosignature => %(cosignature)b,
    recorded_by => %(recorded_by)b,
    content_ids => %(content_ids)b,
    content_salts => %(content_salts)b,
    content_bodies => %(content_bodies)b,
    change => %(change)s::jsonb,
    enrols_itself => %(enrols_itself)b
);

-- In the transaction of its append, and not a part of its function: few receipts keep a result, and of those that are written
-- again because an answer got lost, the row is there already.
-- name: add_cached
INSERT INTO cached (call, key, receipt, until)
SELECT %(call)b, %(key)b, %(receipt)b, %(until)b
WHERE NOT EXISTS (SELECT FROM cached WHERE call = %(call)b AND receipt = %(receipt)b);

-- name: add_held_call
INSERT INTO held_calls (call, run, receipt)
SELECT %(call)b, %(run)b, %(receipt)b
WHERE NOT EXISTS (SELECT FROM held_calls WHERE call = %(call)b AND receipt = %(receipt)b);

-- Of two that decide at once, the second waits here for the first one's commit, and is then refused.
-- name: add_decided_call
INSERT INTO decided_calls (call, run, receipt, approved)
SELECT %(call)b, %(run)b, %(receipt)b, %(approved)b
WHERE NOT EXISTS (SELECT FROM decided_calls WHERE call = %(call)b AND receipt = %(receipt)b);

-- name: add_remark
INSERT INTO remarks (said, name, receipt)
VALUES (%(said)b, %(name)b, %(receipt)b)
ON CONFLICT DO NOTHING;

-- After the append of its transaction, whose lock keeps a revocation waiting for our commit, or waited for that one's.
-- name: require_approver
SELECT batonpass_require_approver(%(key)b);

-- name: count_written
SELECT count(*)
FROM unnest(%(streams)b::text[], %(seqs)b::bigint[], %(payloads)b::bytea[]) AS given (stream, seq, payload)
JOIN streams ON streams.id = given.stream
JOIN receipts ON receipts.stream = streams.number AND receipts.seq = given.seq AND receipts.payload = given.payload;

-- name: sequence
SELECT batonpass_sequence(%(most)s);

-- An update keeps the old version of a row until it is vacuumed, and an erased body should not wait for that. Without
-- truncation, which would lock everybody out. It cannot remove what an open view still sees (autovacuum comes back for
-- that), and it does not reach the write-ahead log, backups or free blocks of the disk, which are the operator's.
-- name: vacuum_contents
VACUUM (SKIP_LOCKED, TRUNCATE false) contents;

-- The hash of an erased path would confirm a guess, so its index is cleaned as well, however few entries are dead.
-- name: vacuum_touches
VACUUM (SKIP_LOCKED, TRUNCATE false, INDEX_CLEANUP on) touches;

-- name: add_seal
INSERT INTO seals (size, previous, root, note, frontier)
VALUES (%(size)s, %(previous)s, %(root)s, %(note)s, %(frontier)s)
ON CONFLICT DO NOTHING;

-- name: has_seal
SELECT 1 FROM seals WHERE size = %(size)s;

-- Repeatable read takes its snapshot with the first query, not with BEGIN.
-- name: begin_view
BEGIN; SELECT 1;

-- name: counts
SELECT
    (SELECT count(*) FROM receipts),
    (SELECT count(*) FROM streams),
    (SELECT count(*) FROM runs),
    (SELECT count(*) FROM handoffs),
    (SELECT count(*) FROM contents),
    (SELECT count(*) FROM seals),
    (
        SELECT sum(pg_total_relation_size(name))::bigint
        FROM unnest(
            '{
                ledger,streams,receipts,positions,unsequenced,contents,touches,runs,handoffs,leases,statements,keys,seals,
                cached,held,charged,held_calls,decided_calls,remarks
            }'::regclass[]
        ) AS name
    );

-- name: get_stream
SELECT id, root, seq, head, epoch, open FROM streams WHERE id = %(id)s;

-- name: find_streams
SELECT id, root, seq, head, epoch, open FROM streams ORDER BY number;

-- A part of a query that is left open is NULL. The planner is given the values and sees only what is left of this, so the
-- statements with such parts must not be prepared. A receipt without its stream still comes: the verifier wants to see it.
-- name: find_receipts
SELECT
    positions.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts
LEFT JOIN streams ON streams.number = receipts.stream
LEFT JOIN positions ON positions.receipt = receipts.number
WHERE
    (%(id)s::text IS NULL OR receipts.id = %(id)s)
    AND (%(stream)s::text IS NULL OR streams.id = %(stream)s)
    AND (%(seq)s::bigint IS NULL OR receipts.seq = %(seq)s)
    AND (%(root)s::text IS NULL OR streams.root = %(root)s)
    AND (%(kind)s::text IS NULL OR starts_with(receipts.kind || '.', %(kind)s || '.'))
    AND (%(agent)s::text IS NULL OR streams.id IN (SELECT runs.id FROM runs WHERE runs.agent = %(agent)s))
    AND (%(since)s::text IS NULL OR receipts.id >= %(since)s)
    AND (%(first)s::bigint IS NULL OR positions.position >= %(first)s)
    AND (%(last)s::bigint IS NULL OR positions.position <= %(last)s)
    AND (NOT %(unsequenced)s OR receipts.number = ANY (ARRAY(SELECT unsequenced.receipt FROM unsequenced)))
ORDER BY
    CASE
        WHEN %(stream)s::text IS NOT NULL THEN receipts.seq
        WHEN coalesce(%(first)s::bigint, %(last)s::bigint) IS NOT NULL THEN positions.position
        ELSE receipts.number
    END;

-- name: last_position
SELECT coalesce(max(position), 0) FROM positions;

-- name: get_content
SELECT contents.id, receipts.id, contents.place, contents.salt, contents.body
FROM contents LEFT JOIN receipts ON receipts.number = contents.receipt
WHERE contents.id = %(id)s;

-- name: find_contents
SELECT contents.id, receipts.id, contents.place, contents.salt, contents.body
FROM contents LEFT JOIN receipts ON receipts.number = contents.receipt
WHERE contents.id = ANY (%(ids)s);

-- name: find_content_ids
SELECT id FROM contents ORDER BY id;

-- name: find_touches
SELECT touches.content, touches.path, receipts.id
FROM touches LEFT JOIN receipts ON receipts.number = touches.receipt
WHERE hashtextextended(touches.path, 0) = hashtextextended(%(path)s::text, 0) AND touches.path = %(path)s
ORDER BY touches.receipt DESC, touches.content DESC;

-- name: find_all_touches
SELECT touches.content, touches.path, receipts.id
FROM touches LEFT JOIN receipts ON receipts.number = touches.receipt;

-- name: find_touches_of
SELECT touches.content, touches.path, receipts.id
FROM touches LEFT JOIN receipts ON receipts.number = touches.receipt
WHERE touches.content = ANY (%(ids)s);

-- Not LIKE: to it, some characters that paths have mean others.
-- name: find_touched_paths
SELECT DISTINCT path FROM touches
WHERE path = %(ending)s OR right(path, length(%(ending)s) + 1) = '/' || %(ending)s
ORDER BY path;

-- name: find_charged
SELECT account, unit, used FROM charged WHERE account = %(account)s ORDER BY unit;

-- name: find_all_charged
SELECT account, unit, used FROM charged;

-- name: find_cached
SELECT call, key, receipt, until FROM cached WHERE key = %(key)s ORDER BY call DESC;

-- name: find_all_cached
SELECT call, key, receipt, until FROM cached;

-- name: find_held_calls
SELECT call, run, receipt FROM held_calls ORDER BY call;

-- name: find_waiting_calls
SELECT held_calls.call, held_calls.run, held_calls.receipt
FROM held_calls JOIN runs ON runs.id = held_calls.run
WHERE runs.state = 'open' AND NOT EXISTS (SELECT FROM decided_calls WHERE decided_calls.call = held_calls.call)
ORDER BY held_calls.call;

-- name: find_decided_call
SELECT call, run, receipt, approved FROM decided_calls WHERE call = %(call)s;

-- name: find_decided_calls
SELECT call, run, receipt, approved FROM decided_calls ORDER BY call;

-- name: find_remarks
SELECT said, name, receipt FROM remarks WHERE said = %(said)s AND name = %(name)s ORDER BY receipt DESC;

-- name: find_remarks_of_kind
SELECT said, name, receipt FROM remarks WHERE said = %(said)s ORDER BY receipt DESC;

-- name: find_all_remarks
SELECT said, name, receipt FROM remarks;

-- name: get_run
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs WHERE id = %(id)s;

-- ARRAY(…) and not IN: a tree is small, and the planner then looks its members up one by one instead of joining.
-- name: find_runs
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE
    (%(agent)s::text IS NULL OR agent = %(agent)s)
    AND (%(series)s::text IS NULL OR series = %(series)s)
    AND (%(session)s::text IS NULL OR session = %(session)s)
    AND (%(parent)s::text IS NULL OR parent = %(parent)s)
    AND (
        %(root)s::text IS NULL
        OR root = %(root)s AND id = ANY (ARRAY(SELECT streams.id FROM streams WHERE streams.root = %(root)s))
    )
ORDER BY id DESC;

-- name: find_attempts
SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
FROM runs
WHERE parent = %(parent)s AND handoff = %(handoff)s
ORDER BY attempt;

-- name: get_handoff
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen WHERE id = %(id)s;

-- name: get_offer
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen WHERE scope = %(scope)s AND key = %(key)s;

-- name: find_handoffs
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE
    (%(parent)s::text IS NULL OR parent = %(parent)s)
    AND (
        %(root)s::text IS NULL
        OR root = %(root)s AND parent = ANY (ARRAY(SELECT streams.id FROM streams WHERE streams.root = %(root)s))
    )
ORDER BY id DESC;

-- The lists of states from which a handoff can expire come from the one table. Asked once for the time, and not for every
-- row, the planner can look it up in the index.
-- name: find_overdue
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs_seen
WHERE id IN (
    SELECT id FROM handoffs
    WHERE
        deadline <= (SELECT batonpass_now())
        AND state = ANY (CASE carrier WHEN 'caller' THEN %(caller)s::text[] ELSE %(worker)s::text[] END)
)
ORDER BY deadline, id;

-- name: find_held
SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
FROM handoffs
WHERE id IN (SELECT handoff FROM held)
ORDER BY id;

-- name: find_statements
SELECT item, root, digest, author, at FROM statements
WHERE %(root)s::text IS NULL OR root = %(root)s
ORDER BY number;

-- name: find_keys
SELECT id, role, public_key, relay, status, principal FROM keys ORDER BY role DESC, id;

-- name: find_seals
SELECT size, previous, root, note, frontier FROM seals ORDER BY size;

-- The character after the underscore bounds the range, so that each index is read only where its prefix stands.
-- name: find_ids
SELECT id FROM (
    SELECT id FROM runs
    UNION ALL
    SELECT id FROM handoffs
    UNION ALL
    SELECT id FROM receipts
    UNION ALL
    SELECT id FROM contents
    UNION ALL
    SELECT DISTINCT relay FROM keys WHERE relay IS NOT NULL
    UNION ALL
    SELECT DISTINCT session FROM runs WHERE session IS NOT NULL
) AS known (id)
WHERE id >= %(prefix)s || '_' AND id < %(prefix)s || '`' AND right(id, length(%(ending)s)) = %(ending)s
ORDER BY id DESC;
