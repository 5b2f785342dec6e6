-- From the catalogue and not with to_regclass, which caches a missing table for the rest of the transaction.
-- name: has_tables
SELECT
    count(*) FILTER (WHERE tablename = 'schema_migrations') > 0,
    count(*) FILTER (WHERE tablename <> 'schema_migrations') > 0
FROM pg_tables
WHERE
    schemaname = ANY (current_schemas(false))
    AND tablename IN (
        'schema_migrations', 'ledger', 'streams', 'receipts', 'contents', 'touches', 'runs', 'handoffs', 'leases',
        'statements', 'keys', 'seals', 'cached', 'held', 'standing', 'charged', 'held_calls', 'decided_calls', 'remarks',
        'postponed', 'rolled', 'rolled_handoffs', 'rolled_days'
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

-- A second founder waits here until the first has committed, and then inserts nothing.
-- name: add_ledger
INSERT INTO ledger ("only", id, root_key) VALUES (1, %(id)s, %(root_key)s) ON CONFLICT DO NOTHING RETURNING id;

-- name: add_key
INSERT INTO keys (id, role, public_key, relay, status, principal)
VALUES (%(id)s, %(role)s, %(public_key)s, %(relay)s, %(status)s, %(principal)s);

-- Only the tables that our migrations make: others in the same schema are not ours. PostgreSQL 18 lists NOT NULL as
-- constraints; they are left out, because the columns show it in every version.
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
    change => %(change)b::text::jsonb,
    enrols_itself => %(enrols_itself)b
);

-- If a premise does not hold, this fails and with it the whole transaction. An append follows in the same statement.
-- name: require_premises
SELECT batonpass_require_premises(
    of_roots => %(premised)b, so_many => %(statements)b, refuted => %(refutations)b, untouched => %(untouched)b
);

-- For the rest of a transaction that several appends share: one that would have to wait for a lock is tried alone later.
-- name: impatiently
SELECT set_config('lock_timeout', '10ms', true);

-- name: try_append
SELECT batonpass_try_append(
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
    change => %(change)b::text::jsonb,
    enrols_itself => %(enrols_itself)b
);

-- Writes all of them, or none and fails.
-- name: append_together
SELECT batonpass_append_together(
    new_streams => %(streams)b,
    new_roots => %(roots)b,
    new_seqs => %(seqs)b,
    new_previous => %(previous)b,
    new_heads => %(heads)b,
    new_epochs => %(epochs)b,
    held_epochs => %(held_epochs)b,
    stay_open => %(stay_open)b,
    new_ids => %(ids)b,
    new_kinds => %(kinds)b,
    new_payloads => %(payloads)b,
    new_relay_signatures => %(relay_signatures)b,
    new_cosignatures => %(cosignatures)b,
    recorded_by => %(recorded_by)b,
    content_receipts => %(content_receipts)b,
    content_ids => %(content_ids)b,
    content_salts => %(content_salts)b,
    content_bodies => %(content_bodies)b,
    change => %(change)b::text::jsonb
);

-- name: count_written
SELECT count(*)
FROM unnest(%(streams)b::text[], %(seqs)b::bigint[], %(payloads)b::bytea[]) AS given (stream, seq, payload)
JOIN streams ON streams.id = given.stream
JOIN receipts ON receipts.stream = streams.number AND receipts.seq = given.seq AND receipts.payload = given.payload;

-- name: sequence
SELECT batonpass_sequence(%(most)s);

-- An update keeps the old version of a row until a vacuum, and an erased body should not wait that long. Without
-- truncation, which would lock everybody out. It cannot remove rows that an open view still sees (autovacuum does that
-- later). It does not reach the write-ahead log, backups or free disk blocks, which are the operator's concern.
-- name: vacuum_contents
VACUUM (SKIP_LOCKED, TRUNCATE false) contents;

-- The hash of an erased path would confirm a guess, so the index is cleaned too, however few entries are dead.
-- name: vacuum_touches
VACUUM (SKIP_LOCKED, TRUNCATE false, INDEX_CLEANUP on) touches;

-- name: add_seal
INSERT INTO seals (size, previous, root, note, frontier)
VALUES (%(size)s, %(previous)s, %(root)s, %(note)s, %(frontier)s)
ON CONFLICT DO NOTHING;

-- name: has_seal
SELECT 1 FROM seals WHERE size = %(size)s;

-- Repeatable read takes its snapshot with the first query and not with BEGIN.
-- name: begin_view
BEGIN; SELECT 1;

-- name: begin
BEGIN;

-- name: rollback
ROLLBACK;

-- name: counts
SELECT
    (SELECT count(*) FROM receipts),
    (SELECT count(*) FROM streams),
    (SELECT count(*) FROM runs),
    (SELECT count(*) FROM handoffs),
    (SELECT count(*) FROM contents),
    (SELECT count(*) FROM seals);

-- name: size
SELECT sum(pg_total_relation_size(name))::bigint
FROM unnest(
    '{
        ledger,streams,receipts,positions,unsequenced,contents,touches,runs,handoffs,leases,statements,keys,seals,
        cached,standing,charged,held_calls,decided_calls,remarks,postponed,
        rolled,rolled_handoffs,rolled_days
    }'::regclass[]
) AS name;

-- name: content_sizes
SELECT
    count(*) FILTER (WHERE place <> 'erased'),
    coalesce(sum(octet_length(body)) FILTER (WHERE place <> 'erased'), 0)::bigint,
    count(*) FILTER (WHERE place = 'erased')
FROM contents;

-- name: get_stream
SELECT id, root, seq, head, epoch, open FROM streams WHERE id = %(id)s;

-- name: find_streams
SELECT id, root, seq, head, epoch, open FROM streams ORDER BY number;

-- name: get_receipt
SELECT
    positions.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts
LEFT JOIN streams ON streams.number = receipts.stream
LEFT JOIN positions ON positions.receipt = receipts.number
WHERE receipts.id = %(id)s;

-- name: get_receipt_at
SELECT
    positions.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM streams
JOIN receipts ON receipts.stream = streams.number
LEFT JOIN positions ON positions.receipt = receipts.number
WHERE streams.id = %(stream)s AND receipts.seq = %(seq)s;

-- name: find_receipts_of_stream
SELECT
    positions.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM streams
JOIN receipts ON receipts.stream = streams.number
LEFT JOIN positions ON positions.receipt = receipts.number
WHERE
    streams.id = %(stream)s AND receipts.seq > %(after)s
    AND (%(kind)s::text IS NULL OR starts_with(receipts.kind || '.', %(kind)s || '.'))
ORDER BY receipts.seq
LIMIT %(most)s;

-- A part that a query leaves open is NULL. The planner must see the values to drop those parts, so this statement must
-- not be prepared. A receipt whose stream is gone is included, because the verifier must see it.
-- name: find_receipts
SELECT
    positions.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts
LEFT JOIN streams ON streams.number = receipts.stream
LEFT JOIN positions ON positions.receipt = receipts.number
WHERE
    (%(stream)s::text IS NULL OR streams.id = %(stream)s)
    AND (%(streams)s::text[] IS NULL OR streams.id = ANY (%(streams)s))
    AND (
        %(attempts_at)s::text IS NULL OR streams.id = ANY (ARRAY(
            SELECT runs.id FROM runs WHERE runs.parent = %(attempts_from)s AND runs.handoff = %(attempts_at)s
        ))
    )
    AND (%(but)s::text[] IS NULL OR NOT receipts.kind = ANY (%(but)s))
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

-- A large body is left out, and fetched by itself.
-- name: find_contents
SELECT
    contents.id, receipts.id, contents.place, contents.salt,
    CASE WHEN octet_length(contents.body) <= %(most)s THEN contents.body END,
    coalesce(octet_length(contents.body) > %(most)s, false)
FROM contents LEFT JOIN receipts ON receipts.number = contents.receipt
WHERE contents.id = ANY (%(ids)s);

-- The claim brief: one row with everything that is usually read before a handoff is accepted. It is about the named
-- handoff or the one that was claimed just before in this transaction. The contents are those whose ids stand in the
-- offer and in the first receipt of the root. Payloads are not read as jsonb, which would fail on edited bytes; the
-- reader checks the contents against their digests. Ids are cut out at their prefix, because a regular expression takes
-- ten times as long; a piece that is no id finds nothing. The number of a stream is looked up by itself: in a join, the
-- planner reads the parent's whole stream and compares each seq. The handoff is read first and apart: within the join,
-- the planner would look through all leases for its one. Values of one type come as one array: a column costs the server
-- and the driver more than its value, and fifty do not fit into the first packet.
-- name: brief
WITH asked AS MATERIALIZED (
    SELECT * FROM handoffs_seen
    WHERE id = coalesce(%(handoff)s::text, current_setting('batonpass.claimed', true))
)
SELECT
    ARRAY[
        asked.id, asked.root, asked.parent, asked.agent, asked.carrier, asked.state, asked.run, asked.initiated,
        asked.scope, asked.key,
        streams.id, streams.root, streams.head,
        runs.id, runs.root, runs.parent, runs.handoff, runs.agent, runs.principal, runs.state, runs.series, runs.session,
        offer.id, offer.kind, beginning.id, beginning.kind
    ],
    ARRAY[
        asked.attempt, asked.seq, asked.deadline, streams.seq, streams.epoch, streams.open::int,
        runs.attempt, runs.started_at, runs.ended_at,
        (SELECT positions.position FROM positions WHERE positions.receipt = offer.number),
        (SELECT positions.position FROM positions WHERE positions.receipt = beginning.number)
    ],
    ARRAY[
        offer.payload, offer.relay_signature, offer.cosignature,
        beginning.payload, beginning.relay_signature, beginning.cosignature
    ],
    ARRAY(
        SELECT ARRAY[item, root, digest, author, at::text] FROM statements WHERE root = asked.root ORDER BY number
    ),
    ARRAY(SELECT ARRAY[id, role, public_key, relay, status, principal] FROM keys ORDER BY role DESC, id),
    words.ids, words.salts, words.bodies
FROM asked
LEFT JOIN streams ON streams.id = asked.id
LEFT JOIN runs ON runs.id = asked.parent
LEFT JOIN receipts AS offer
    ON offer.stream = (SELECT sent.number FROM streams AS sent WHERE sent.id = asked.parent) AND offer.seq = asked.seq
LEFT JOIN receipts AS beginning
    ON beginning.stream = (SELECT begun.number FROM streams AS begun WHERE begun.id = asked.root) AND beginning.seq = 1
CROSS JOIN LATERAL (
    SELECT
        array_agg(ARRAY[
            contents.id,
            CASE contents.receipt
                WHEN offer.number THEN offer.id
                WHEN beginning.number THEN beginning.id
                ELSE (SELECT receipts.id FROM receipts WHERE receipts.number = contents.receipt)
            END,
            contents.place
        ]) AS ids,
        array_agg(contents.salt) AS salts,
        array_agg(contents.body) AS bodies
    FROM contents
    WHERE
        contents.id = ANY (ARRAY(
            SELECT 'content_' || left(part, 26)
            FROM unnest(string_to_array(encode(offer.payload || beginning.payload, 'escape'), 'content_')) AS part
        ))
        AND octet_length(contents.body) <= %(most)s
) AS words;

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

-- Not LIKE: paths may contain its wildcards.
-- name: find_touched_paths
SELECT DISTINCT path FROM touches
WHERE path = %(ending)s OR right(path, length(%(ending)s) + 1) = '/' || %(ending)s
ORDER BY path;

-- name: find_charged
SELECT account, unit, used FROM charged WHERE account = ANY(%(accounts)b) ORDER BY account, unit;

-- name: find_all_charged
SELECT account, unit, used FROM charged;

-- name: find_cached
SELECT call, key, receipt, until FROM cached WHERE key = %(key)s ORDER BY call DESC;

-- name: find_all_cached
SELECT call, key, receipt, until FROM cached;

-- name: find_held_calls
SELECT call, run, receipt FROM held_calls ORDER BY call;

-- name: find_held_call
SELECT call, run, receipt FROM held_calls WHERE call = %(call)s;

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
    AND (%(states)s::text[] IS NULL OR state = ANY (%(states)s))
    AND (NOT %(roots)s OR parent IS NULL)
    AND (%(before)s::text IS NULL OR id < %(before)s)
ORDER BY id DESC
LIMIT %(limit)s;

-- Read from `standing`, in the order of its key. The join drops a row there whose state is not the run's.
-- name: find_runs_in_state
SELECT
    runs.id, root, parent, handoff, attempt, agent, principal, runs.state, started_at, ended_at, series, session
FROM standing JOIN runs ON runs.id = standing.id AND runs.state = standing.state
WHERE
    standing.state = %(state)s AND standing.id >= 'run_' AND standing.id < coalesce(%(before)s::text, 'run`')
    AND (NOT %(roots)s OR parent IS NULL)
ORDER BY standing.id DESC
LIMIT %(limit)s;

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
    AND (%(to)s::text IS NULL OR agent = %(to)s)
    AND (%(states)s::text[] IS NULL OR state = ANY (%(states)s))
    AND (%(before)s::text IS NULL OR id < %(before)s)
ORDER BY id DESC
LIMIT %(limit)s;

-- Any state except ready and claimed, which depend on the lease.
-- name: find_handoffs_in_state
SELECT
    handoffs.id, root, parent, agent, carrier, handoffs.state, attempt, run, initiated, seq, scope, key, deadline
FROM standing JOIN handoffs ON handoffs.id = standing.id AND handoffs.state = standing.state
WHERE standing.state = %(state)s AND standing.id < coalesce(%(before)s::text, 'handoff`')
ORDER BY standing.id DESC
LIMIT %(limit)s;

-- name: find_ready
SELECT
    handoffs.id, root, parent, agent, carrier, handoffs.state, attempt, run, initiated, seq, scope, key, deadline
FROM standing JOIN handoffs ON handoffs.id = standing.id AND handoffs.state = standing.state
WHERE
    standing.state = 'ready' AND standing.id < coalesce(%(before)s::text, 'handoff`')
    AND NOT EXISTS (SELECT FROM leases WHERE leases.handoff = standing.id AND leases.holder IS NOT NULL)
ORDER BY standing.id DESC
LIMIT %(limit)s;

-- Starts from the held leases, which are as many as there are busy workers: any number of handoffs may be ready.
-- name: find_claimed
SELECT id, root, parent, agent, carrier, 'claimed', attempt, run, initiated, seq, scope, key, deadline
FROM handoffs
WHERE
    id = ANY (ARRAY(SELECT handoff FROM leases WHERE until IS NOT NULL AND holder IS NOT NULL))
    AND state = 'ready' AND (%(before)s::text IS NULL OR id < %(before)s)
ORDER BY id DESC
LIMIT %(limit)s;

-- The states from which a handoff can expire come from the table of transitions. The time is a subquery, computed once
-- and not for every row, so that the planner can use the index.
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
WHERE id IN (SELECT standing.id FROM standing WHERE standing.state = 'held') AND state = 'held'
ORDER BY id;

-- name: find_statements
SELECT item, root, digest, author, at FROM statements WHERE root = %(root)s ORDER BY number;

-- name: find_all_statements
SELECT item, root, digest, author, at FROM statements ORDER BY number;

-- name: find_keys
SELECT id, role, public_key, relay, status, principal FROM keys ORDER BY role DESC, id;

-- name: find_seals
SELECT size, previous, root, note, frontier FROM seals ORDER BY size;

-- With an ending of four characters or more, the index on the last four leaves a few candidates. Not prepared: the
-- planner must see the length of the ending.
-- name: find_run_ids
SELECT id FROM runs
WHERE
    (length(%(ending)s) < 4 OR right(id, 4) = right(%(ending)s, 4)) AND right(id, length(%(ending)s)) = %(ending)s
ORDER BY id DESC;

-- name: find_handoff_ids
SELECT id FROM handoffs
WHERE
    (length(%(ending)s) < 4 OR right(id, 4) = right(%(ending)s, 4)) AND right(id, length(%(ending)s)) = %(ending)s
ORDER BY id DESC;

-- name: find_receipt_ids
SELECT id FROM receipts
WHERE
    (length(%(ending)s) < 4 OR right(id, 4) = right(%(ending)s, 4)) AND right(id, length(%(ending)s)) = %(ending)s
ORDER BY id DESC;

-- name: find_content_ids
SELECT id FROM contents WHERE right(id, length(%(ending)s)) = %(ending)s ORDER BY id DESC;

-- name: find_relay_ids
SELECT DISTINCT relay FROM keys
WHERE relay IS NOT NULL AND right(relay, length(%(ending)s)) = %(ending)s
ORDER BY relay DESC;

-- name: find_session_ids
SELECT DISTINCT session FROM runs
WHERE session IS NOT NULL AND right(session, length(%(ending)s)) = %(ending)s
ORDER BY session DESC;

-- The same expression as in the index receipts_by_call. A shorter ending is searched for among all receipts about calls.
-- name: find_call_receipts
SELECT
    positions.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM receipts
LEFT JOIN streams ON streams.number = receipts.stream
LEFT JOIN positions ON positions.receipt = receipts.number
WHERE
    receipts.kind IN ('tool.requested', 'tool.denied', 'tool.held')
    AND (
        length(%(ending)s) < 4
        OR substring(encode(receipts.payload, 'escape') FROM '"call":"call_[0-9a-z]{22}([0-9a-z]{4})"')
        = right(%(ending)s, 4)
    )
ORDER BY receipts.number;

-- The length of a stream is known before its receipts are read, so no run is read in vain.
-- name: find_open_requests
WITH
    latest AS (SELECT id, state FROM runs ORDER BY id DESC LIMIT %(runs)s),
    ends AS (
        SELECT
            streams.number, streams.seq,
            sum(least(streams.seq, %(of_each)s)) OVER (ORDER BY latest.state = 'completed', latest.id DESC)
            - least(streams.seq, %(of_each)s) AS before
        FROM latest JOIN streams ON streams.id = latest.id
    ),
    calls AS MATERIALIZED (
        SELECT
            receipts.number, receipts.stream, receipts.kind,
            substring(encode(receipts.payload, 'escape') FROM '"call":"(call_[0-9a-z]{26})"') AS call
        FROM ends
        JOIN receipts
            ON
                receipts.stream = ends.number
                AND receipts.seq > ends.seq - %(of_each)s AND receipts.seq <= ends.seq
        WHERE ends.before < %(most)s AND receipts.kind IN ('tool.requested', 'tool.completed', 'tool.failed')
    )
SELECT
    positions.position, receipts.id, streams.id, receipts.seq, receipts.kind, receipts.payload,
    receipts.relay_signature, receipts.cosignature
FROM calls
JOIN receipts ON receipts.number = calls.number
JOIN streams ON streams.number = receipts.stream
LEFT JOIN positions ON positions.receipt = receipts.number
WHERE
    calls.kind = 'tool.requested'
    AND NOT EXISTS (
        SELECT 1 FROM calls AS ended
        WHERE ended.stream = calls.stream AND ended.call = calls.call AND ended.kind <> 'tool.requested'
    );

-- name: read_rolled
SELECT version, position FROM rolled;

-- name: find_rolled
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE
    (%(agent)s::text IS NULL OR agent = %(agent)s) AND (%(task_kind)s::text IS NULL OR task_kind = %(task_kind)s)
    AND closed_at >= %(since)s AND closed_at < %(until)s
    AND (%(holding)s::bytea = ''::bytea OR position(%(holding)s::bytea IN body) > 0)
ORDER BY closed_at DESC, handoff DESC
LIMIT %(limit)s;

-- name: find_rolled_oldest_first
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE
    (%(agent)s::text IS NULL OR agent = %(agent)s) AND (%(task_kind)s::text IS NULL OR task_kind = %(task_kind)s)
    AND closed_at >= %(since)s AND closed_at < %(until)s
    AND (%(holding)s::bytea = ''::bytea OR position(%(holding)s::bytea IN body) > 0)
ORDER BY closed_at, handoff
LIMIT %(limit)s;

-- name: find_rolled_handoffs
SELECT handoff, agent, task_kind, config, closed_at, contents, body FROM rolled_handoffs WHERE handoff = ANY (%(handoffs)s) ORDER BY handoff;

-- name: find_rolled_with
SELECT handoff, agent, task_kind, config, closed_at, contents, body
FROM rolled_handoffs
WHERE EXISTS (SELECT 1 FROM unnest(%(contents)s::text[]) AS content WHERE strpos(contents, content) > 0)
ORDER BY handoff;

-- name: find_rolled_days
SELECT agent, task_kind, config, day, body
FROM rolled_days WHERE day >= %(first)s AND day <= %(last)s ORDER BY agent, task_kind, config, day;

-- name: find_rolled_days_of_agent
SELECT agent, task_kind, config, day, body
FROM rolled_days WHERE agent = %(agent)s AND day >= %(first)s AND day <= %(last)s ORDER BY task_kind, config, day;

-- name: get_rolled_day
SELECT agent, task_kind, config, day, body
FROM rolled_days
WHERE agent = %(agent)s AND task_kind = %(task_kind)s AND config = %(config)s AND day = %(day)s;

-- name: move_rolled
UPDATE rolled SET version = %(version)s, position = %(position)s
WHERE version = %(old_version)s AND position = %(old_position)s
RETURNING 1;

-- name: drop_rolled_handoffs
DELETE FROM rolled_handoffs;

-- name: drop_rolled_days
DELETE FROM rolled_days;

-- name: put_rolled_handoff
INSERT INTO rolled_handoffs (handoff, agent, task_kind, config, closed_at, contents, body)
VALUES (%(handoff)s, %(agent)s, %(task_kind)s, %(config)s, %(closed_at)s, %(contents)s, %(body)s)
ON CONFLICT (handoff) DO UPDATE SET
    agent = excluded.agent, task_kind = excluded.task_kind, config = excluded.config,
    closed_at = excluded.closed_at, contents = excluded.contents, body = excluded.body;

-- name: put_rolled_day
INSERT INTO rolled_days (agent, task_kind, config, day, body)
VALUES (%(agent)s, %(task_kind)s, %(config)s, %(day)s, %(body)s)
ON CONFLICT (agent, task_kind, config, day) DO UPDATE SET body = excluded.body;

-- name: drop_rolled_day
DELETE FROM rolled_days
WHERE agent = %(agent)s AND task_kind = %(task_kind)s AND config = %(config)s AND day = %(day)s;
