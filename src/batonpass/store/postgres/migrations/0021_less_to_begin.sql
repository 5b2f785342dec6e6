-- Less to begin for appends of several receipts. Statements for what few receipts bring are begun only if one does, what was
-- read of the change once is not read again, and whoever makes handoffs ready asks first whether any worker waits at all.

CREATE OR REPLACE FUNCTION batonpass_wake(wanted text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    woken text;
BEGIN
    IF NOT EXISTS (SELECT FROM waiting_workers) THEN
        RETURN; -- where work is plentiful, nobody waits
    END IF;
    DELETE FROM waiting_workers WHERE channel = (
        SELECT channel FROM waiting_workers WHERE wanted = ANY (agents) AND until > (SELECT batonpass_now())
        LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING channel INTO woken;
    IF FOUND THEN
        PERFORM pg_notify(woken, '');
    END IF;
END $$;

-- As it was, otherwise.
CREATE OR REPLACE FUNCTION batonpass_append_together(
    new_streams text[],
    new_roots text[],
    new_seqs bigint[],
    new_previous text[],
    new_heads text[],
    new_epochs bigint[],
    held_epochs bigint[],
    stay_open boolean[],
    new_ids text[],
    new_kinds text[],
    new_payloads bytea[],
    new_relay_signatures bytea[],
    new_cosignatures bytea[],
    recorded_by text[],
    content_receipts text[], -- the id of the receipt that each content belongs to
    content_ids text[],
    content_salts bytea[],
    content_bodies bytea[],
    change jsonb -- what they change besides their own streams, a list of each kind; NULL if nothing
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
    waiting text[];
    waits text;
    moved_ids text[];
    moved_anchors text[];
    moved_firsts text[];
    leased_ids text[];
    leased_tokens bigint[];
BEGIN
    -- Until the transaction ends, which several share: whoever would have to wait is left to wait by itself.
    PERFORM set_config('lock_timeout', '10ms', true);

    -- The compare-and-set, the question whether the key is active, and the insertion, in one statement. PostgreSQL locks all its
    -- tables before it takes its snapshot. So either we got the lock of receipts first, and whoever revokes the key waits for
    -- our commit; or we waited for the revocation's commit, and the snapshot shows it. A stream's row is locked when it comes out
    -- of `begun` or `moved`, and only then a number is drawn: within a stream numbers rise with seq.
    WITH
    given AS MATERIALIZED (
        SELECT * FROM unnest(
            new_streams, new_roots, new_seqs, new_previous, new_heads, new_epochs, held_epochs, stay_open, new_ids, new_kinds,
            new_payloads, new_relay_signatures, new_cosignatures, recorded_by
        ) AS given (
            stream, root, seq, previous, head, epoch, held_epoch, stays_open, id, kind, payload, relay_signature, cosignature, key
        )
    ),
    begun AS (
        INSERT INTO streams (id, root, seq, head, epoch, open)
        SELECT stream, root, seq, head, epoch, stays_open FROM given WHERE seq = 1
        RETURNING number, id
    ),
    moved AS (
        UPDATE streams SET
            root = given.root, seq = given.seq, head = given.head, epoch = given.epoch, open = given.stays_open
        FROM given
        WHERE
            given.seq > 1 AND streams.id = given.stream AND streams.seq = given.seq - 1 AND streams.head = given.previous
            AND streams.epoch = given.held_epoch AND streams.open
        RETURNING streams.number, streams.id
    ),
    placed AS (
        INSERT INTO receipts (id, stream, seq, kind, payload, relay_signature, cosignature)
        SELECT
            given.id, stands.number, given.seq, given.kind, given.payload, given.relay_signature, given.cosignature
        FROM (SELECT number, id FROM begun UNION ALL SELECT number, id FROM moved) AS stands
        JOIN given ON given.stream = stands.id
        WHERE EXISTS (SELECT FROM keys WHERE keys.id = given.key AND keys.role = 'relay' AND keys.status = 'active')
        RETURNING number, id
    ),
    noted AS (
        INSERT INTO unsequenced (receipt) SELECT number FROM placed
    ),
    kept AS (
        INSERT INTO contents (id, receipt, place, salt, body)
        SELECT content.id, placed.number, 'row', content.salt, content.body
        FROM unnest(content_receipts, content_ids, content_salts, content_bodies) AS content (receipt, id, salt, body)
        JOIN placed ON placed.id = content.receipt
    )
    SELECT count(*) INTO written FROM placed;
    IF written <> cardinality(new_ids) THEN
        RAISE EXCEPTION 'a stream does not stand where its receipt begins, or a key is not active' USING ERRCODE = 'BP010';
    END IF;
    IF change IS NULL THEN
        RETURN;
    END IF;

    IF change ? 'run_opened' THEN
        WITH opened AS (
            INSERT INTO runs (
                id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
            )
            SELECT id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
            FROM jsonb_populate_recordset(NULL::runs, change -> 'run_opened')
            RETURNING id, state
        )
        INSERT INTO standing (id, state) SELECT id, state FROM opened;
    END IF;
    IF change ? 'run_ended' THEN
        WITH
        ended AS (
            UPDATE runs SET state = given.state, ended_at = given.at
            FROM jsonb_to_recordset(change -> 'run_ended') AS given (run text, state text, at bigint)
            WHERE runs.id = given.run
            RETURNING runs.id, runs.state
        ),
        followed AS (
            UPDATE standing SET state = ended.state FROM ended
            WHERE standing.state = 'open' AND standing.id = ended.id
            RETURNING 1
        )
        SELECT count(*) INTO written FROM followed;
        IF written <> jsonb_array_length(change -> 'run_ended') THEN
            RAISE EXCEPTION 'a run is not there, or not listed as open' USING ERRCODE = 'BP010';
        END IF;
    END IF;
    IF change ? 'handoff_opened' THEN
        WITH
        opened AS (
            INSERT INTO handoffs (
                id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
            )
            SELECT id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
            FROM jsonb_populate_recordset(NULL::handoffs, change -> 'handoff_opened')
            RETURNING id, agent, carrier, state
        ),
        listed AS (
            INSERT INTO standing (id, state) SELECT id, state FROM opened
        ),
        queued AS (
            INSERT INTO leases (handoff, agent) SELECT id, agent FROM opened WHERE carrier = 'worker' AND state = 'ready'
            RETURNING agent
        )
        SELECT array_agg(agent) INTO waiting FROM queued;
        -- Whether anybody waits is asked once for all of them: where work is plentiful, nobody does.
        IF waiting IS NOT NULL AND EXISTS (SELECT FROM waiting_workers) THEN
            FOREACH waits IN ARRAY waiting LOOP
                PERFORM batonpass_wake(waits);
            END LOOP;
        END IF;
    END IF;
    IF change ? 'handoff_moved' THEN
        -- To 'ready' nothing moves here, and under a lease only to 'running': what else becomes of leases then is done where
        -- one is appended by itself.
        WITH
        given AS MATERIALIZED (
            SELECT * FROM jsonb_to_recordset(change -> 'handoff_moved') AS given (
                handoff text, held_attempt bigint, ends text, "to" text, attempt bigint, run text, anchor text, token bigint,
                caller jsonb, worker jsonb
            )
        ),
        moved AS (
            UPDATE handoffs SET
                agent = coalesce(given."to", handoffs.agent),
                state = CASE handoffs.carrier WHEN 'worker' THEN given.worker ELSE given.caller END ->> 'target',
                attempt = coalesce(given.attempt, handoffs.attempt), run = coalesce(given.run, handoffs.run)
            FROM given
            WHERE
                handoffs.id = given.handoff
                AND handoffs.state = ANY (
                    (CASE handoffs.carrier WHEN 'worker' THEN given.worker ELSE given.caller END ->> 'sources')::text[]
                )
                AND handoffs.attempt = coalesce(given.held_attempt, handoffs.attempt)
                AND given.ends IS NOT DISTINCT FROM (CASE handoffs.state WHEN 'running' THEN handoffs.run END)
            RETURNING
                handoffs.id, handoffs.carrier, handoffs.state, handoffs.initiated, given.anchor, given.token,
                (CASE handoffs.carrier WHEN 'worker' THEN given.worker ELSE given.caller END ->> 'sources')::text[] AS sources
        ),
        followed AS (
            UPDATE standing SET state = moved.state FROM moved
            WHERE
                standing.id = moved.id AND standing.state = ANY (moved.sources) AND moved.state <> 'ready'
                AND (moved.token IS NULL OR moved.state = 'running')
            RETURNING moved.id, moved.anchor, moved.initiated, moved.token
        ),
        -- The lease of a worker-carried handoff follows its state.
        freed AS (
            DELETE FROM leases USING moved
            WHERE
                leases.handoff = moved.id AND moved.carrier = 'worker' AND moved.token IS NULL
                AND (moved.state <> 'running' OR leases.holder IS NULL)
        )
        SELECT
            count(*), array_agg(id) FILTER (WHERE anchor IS NOT NULL), array_agg(anchor) FILTER (WHERE anchor IS NOT NULL),
            array_agg(initiated) FILTER (WHERE anchor IS NOT NULL),
            array_agg(id) FILTER (WHERE token IS NOT NULL), array_agg(token) FILTER (WHERE token IS NOT NULL)
        INTO written, moved_ids, moved_anchors, moved_firsts, leased_ids, leased_tokens FROM followed;
        IF written <> jsonb_array_length(change -> 'handoff_moved') THEN
            RAISE EXCEPTION 'a handoff cannot go there' USING ERRCODE = 'BP010';
        END IF;
        IF moved_ids IS NOT NULL THEN
            -- An attempt hangs from the last thing that happened to its handoff. Whoever acts on the handoff updates its
            -- stream's row, so with this lock they come before us, and we see it, or after our commit.
            WITH acted_on AS (
                SELECT id, head FROM streams WHERE id = ANY (moved_ids) FOR SHARE
            )
            SELECT count(*) INTO written
            FROM unnest(moved_ids, moved_anchors, moved_firsts) AS given (id, anchor, first)
            LEFT JOIN acted_on ON acted_on.id = given.id
            WHERE given.anchor = coalesce(acted_on.head, given.first);
            IF written <> cardinality(moved_ids) THEN
                RAISE EXCEPTION 'a handoff moved on' USING ERRCODE = 'BP010';
            END IF;
        END IF;
        IF leased_ids IS NOT NULL THEN
            -- The rows stay locked until the commit: whoever would take a lease over comes before this, or after it.
            WITH held AS (
                SELECT leases.handoff
                FROM unnest(leased_ids, leased_tokens) AS given (handoff, token)
                JOIN leases ON leases.handoff = given.handoff AND leases.token = given.token
                FOR UPDATE OF leases
            )
            SELECT count(*) INTO written FROM held;
            IF written <> cardinality(leased_ids) THEN
                RAISE EXCEPTION 'a lease is lost' USING ERRCODE = 'BP010';
            END IF;
        END IF;
    END IF;
    IF change ? 'touches' THEN
        INSERT INTO touches (content, receipt, path)
        SELECT touch.content, receipts.number, touch.path
        FROM jsonb_to_recordset(change -> 'touches') AS touch (receipt text, content text, path text)
        JOIN receipts ON receipts.id = touch.receipt;
    END IF;
    IF change ? 'stated' THEN
        INSERT INTO statements (item, root, digest, author, at)
        SELECT item, root, digest, author, at FROM jsonb_populate_recordset(NULL::statements, change -> 'stated');
    END IF;
END $$;
