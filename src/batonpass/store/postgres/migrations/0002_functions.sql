-- Writes one entry, or raises and leaves nothing behind. A refusal is an error and not an answer, so that it takes all of
-- its transaction with it, whichever entry of a batch it is about. The SQLSTATE says which refusal; the detail is JSON for
-- the program that asked:
--
--     BP001  the stream does not stand where the receipt begins    receipt, stream: its row; null if it never began
--     BP002  the recording key is not active                       key, enrolled
--     BP003  a run that is to be fenced does not stand there       run, seq
--     BP004  a handoff cannot go there                             receipt, handoff: its row
--     BP005  what is to be changed is not there                    what, id
--     BP006  an offer's key is taken in its scope                  offered, handoff: the one that has it
--     BP007  the lease under which it is done is lost              handoff
--
-- An id that is taken is PostgreSQL's own 23505.
CREATE FUNCTION batonpass_append(
    new_stream text,
    new_root text,
    new_seq bigint,
    new_previous text,
    new_head text,
    new_epoch bigint,
    held_epoch bigint, -- the stream's epoch until now
    stays_open boolean,
    new_id text,
    new_kind text,
    new_payload bytea,
    new_relay_signature bytea,
    new_cosignature bytea,
    recorded_by text, -- the relay's key
    content_ids text[],
    content_salts bytea[],
    content_bodies bytea[],
    change jsonb, -- what it changes besides its own stream, and under which paths it is found; NULL if nothing
    enrols_itself boolean -- it enrols the key that records it, under the signature of the root
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    known streams;
    stream_number bigint;
    receipt_number bigint;
BEGIN
    -- Whoever takes a key's right away first waits for all appends that are under way, and keeps new ones out until the
    -- commit. See the insertion into receipts below, which is where an append asks whether its key is active.
    IF change ? 'key_changed' THEN
        LOCK TABLE receipts IN SHARE ROW EXCLUSIVE MODE;
    END IF;

    LOOP
        -- The compare-and-set. Of two writers the second waits here for the first one's commit, and then does not match.
        IF new_seq = 1 THEN
            INSERT INTO streams (id, root, seq, head, epoch, open)
            VALUES (new_stream, new_root, new_seq, new_head, new_epoch, stays_open)
            ON CONFLICT (id) DO NOTHING
            RETURNING number INTO stream_number;
        ELSE
            UPDATE streams SET root = new_root, seq = new_seq, head = new_head, epoch = new_epoch, open = stays_open
            WHERE id = new_stream AND seq = new_seq - 1 AND head = new_previous AND epoch = held_epoch AND open
            RETURNING number INTO stream_number;
        END IF;
        EXIT WHEN FOUND;

        SELECT * INTO known FROM streams WHERE id = new_stream;
        IF known.seq = new_seq AND known.head = new_head THEN
            RETURN; -- it is written already, and its answer got lost
        END IF;
        IF NOT enrols_itself
            AND NOT EXISTS (SELECT FROM keys WHERE id = recorded_by AND role = 'relay' AND status = 'active')
        THEN
            PERFORM batonpass_refuse_key(recorded_by);
        END IF;
        -- The stream may have moved since the compare-and-set, even to where it should be. Only then do we try again: what
        -- is refused here is refused for how the stream stands.
        CONTINUE WHEN known.id IS NULL AND new_seq = 1;
        CONTINUE WHEN known.seq = new_seq - 1 AND known.head = new_previous AND known.epoch = held_epoch AND known.open;
        RAISE EXCEPTION 'the stream does not stand where the receipt begins' USING ERRCODE = 'BP001', DETAIL =
            jsonb_build_object('receipt', new_id, 'stream', CASE WHEN known.id IS NOT NULL THEN jsonb_build_array(
                known.id, known.root, known.seq, known.head, known.epoch, known.open
            ) END);
    END LOOP;

    -- The key is asked for in the statement that inserts, because PostgreSQL locks a statement's tables before it takes the
    -- statement's snapshot. So either we got this lock first, and whoever revokes the key waits for our commit; or we
    -- waited for the revocation's commit, and the snapshot shows it. No receipt is committed after its key's revocation,
    -- and because the number is drawn under the lock as well, none is numbered after it.
    INSERT INTO receipts (id, stream, seq, kind, payload, relay_signature, cosignature)
    SELECT new_id, stream_number, new_seq, new_kind, new_payload, new_relay_signature, new_cosignature
    WHERE enrols_itself OR EXISTS (SELECT FROM keys WHERE id = recorded_by AND role = 'relay' AND status = 'active')
    RETURNING number INTO receipt_number;
    IF NOT FOUND THEN
        PERFORM batonpass_refuse_key(recorded_by);
    END IF;
    INSERT INTO unsequenced (receipt) VALUES (receipt_number);
    IF content_ids IS NOT NULL THEN
        INSERT INTO contents (id, receipt, place, salt, body)
        SELECT given.id, receipt_number, 'row', given.salt, given.body
        FROM unnest(content_ids, content_salts, content_bodies) AS given (id, salt, body);
    END IF;
    IF change IS NOT NULL THEN
        PERFORM batonpass_project(new_id, receipt_number, change);
    END IF;
END $$;

CREATE FUNCTION batonpass_refuse_key(key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the recording key is not active' USING ERRCODE = 'BP002', DETAIL = jsonb_build_object(
        'key', key, 'enrolled', EXISTS (SELECT FROM keys WHERE id = key)
    );
END $$;

-- Applies what a receipt changes besides its own stream; the keys of `change` are the fields of a Projection, and the touches.
CREATE FUNCTION batonpass_project(receipt text, receipt_number bigint, change jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    fences jsonb := change -> 'fences';
    ended jsonb := change -> 'run_ended';
    moved jsonb := change -> 'handoff_moved';
    changed jsonb := change -> 'key_changed';
    moving handoffs;
    last_act text;
    step jsonb;
BEGIN
    IF fences IS NOT NULL THEN
        UPDATE streams SET open = false
        WHERE id = fences ->> 'run' AND open AND seq = (fences ->> 'seq')::bigint AND head = fences ->> 'head';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the run does not stand where it is to be fenced' USING ERRCODE = 'BP003', DETAIL = fences;
        END IF;
    END IF;
    IF change ? 'run_opened' THEN
        INSERT INTO runs SELECT * FROM jsonb_populate_record(NULL::runs, change -> 'run_opened');
    END IF;
    IF ended IS NOT NULL THEN
        UPDATE runs SET state = ended ->> 'state', ended_at = (ended ->> 'at')::bigint WHERE id = ended ->> 'run';
        PERFORM batonpass_require(FOUND, 'run', ended ->> 'run');
    END IF;
    IF change ? 'handoff_opened' THEN
        PERFORM batonpass_open(jsonb_populate_record(NULL::handoffs, change -> 'handoff_opened'));
    END IF;
    IF moved IS NOT NULL THEN
        SELECT * INTO moving FROM handoffs WHERE id = moved ->> 'handoff' FOR UPDATE;
        PERFORM batonpass_require(FOUND, 'handoff', moved ->> 'handoff');
        step := moved -> moving.carrier;
        IF NOT step -> 'sources' ? moving.state
            OR moving.attempt <> (moved ->> 'held_attempt')::bigint
            OR moved ->> 'ends' IS DISTINCT FROM (CASE moving.state WHEN 'running' THEN moving.run END)
        THEN
            RAISE EXCEPTION 'the handoff cannot go there' USING ERRCODE = 'BP004', DETAIL =
                jsonb_build_object('receipt', receipt, 'handoff', jsonb_build_array(
                    moving.id, moving.root, moving.parent, moving.agent, moving.carrier, moving.state,
                    moving.attempt, moving.run, moving.initiated, moving.seq, moving.scope, moving.key, moving.deadline
                ));
        END IF;
        IF moved ? 'anchor' THEN
            -- An attempt hangs from the last thing that happened to its handoff. Whoever acts on the handoff updates its
            -- stream's row, so with this lock they come before us, and we see it, or after our commit.
            SELECT head INTO last_act FROM streams WHERE id = moving.id FOR SHARE;
            IF moved ->> 'anchor' <> coalesce(last_act, moving.initiated) THEN
                RAISE EXCEPTION 'the handoff moved on' USING ERRCODE = 'BP003', DETAIL =
                    jsonb_build_object('run', moving.id, 'seq', 0);
            END IF;
        END IF;
        UPDATE handoffs SET
            agent = coalesce(moved ->> 'to', agent),
            state = step ->> 'target',
            attempt = coalesce((moved ->> 'attempt')::bigint, attempt), run = coalesce(moved ->> 'run', run)
        WHERE id = moving.id RETURNING * INTO moving;
        IF moved ? 'token' THEN
            -- The row stays locked until the commit: whoever would take the lease over comes before this, or after it.
            PERFORM FROM leases WHERE handoff = moving.id AND token = (moved ->> 'token')::bigint FOR UPDATE;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'BP007', DETAIL = moved;
            END IF;
        END IF;
        IF moving.carrier = 'worker' THEN
            PERFORM batonpass_lease(moving);
        END IF;
    END IF;
    IF change ? 'stated' THEN
        INSERT INTO statements (item, root, digest, author, at)
        SELECT item, root, digest, author, at FROM jsonb_populate_recordset(NULL::statements, change -> 'stated');
    END IF;
    IF change ? 'key_added' THEN
        INSERT INTO keys SELECT * FROM jsonb_populate_record(NULL::keys, change -> 'key_added');
    END IF;
    IF changed IS NOT NULL THEN
        UPDATE keys SET status = changed ->> 'status' WHERE id = changed ->> 'key';
        PERFORM batonpass_require(FOUND, 'key', changed ->> 'key');
    END IF;
    IF change ? 'touches' THEN
        INSERT INTO touches (content, receipt, path)
        SELECT given.content, receipt_number, given.path
        FROM jsonb_to_recordset(change -> 'touches') AS given (content text, path text);
    END IF;
    IF change ? 'erased' THEN
        UPDATE contents SET place = 'erased', salt = NULL, body = NULL
        WHERE id IN (SELECT jsonb_array_elements_text(change -> 'erased'));
        DELETE FROM touches WHERE content IN (SELECT jsonb_array_elements_text(change -> 'erased'));
    END IF;
END $$;

-- Of two that offer under one key at once, the second waits here for the first one's commit, and then finds it.
CREATE FUNCTION batonpass_open(opened handoffs) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO handoffs SELECT opened.* ON CONFLICT (scope, key) WHERE key IS NOT NULL DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the key is taken in its scope' USING ERRCODE = 'BP006', DETAIL = (
            SELECT jsonb_build_object('offered', opened.id, 'handoff', id) FROM handoffs
            WHERE scope = opened.scope AND key = opened.key
        );
    END IF;
    IF opened.carrier = 'worker' AND opened.state = 'ready' THEN
        PERFORM batonpass_lease(opened);
    END IF;
END $$;

-- Brings the lease of a worker-carried handoff in line with the state that it has now.
CREATE FUNCTION batonpass_lease(now handoffs) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF now.state = 'ready' THEN
        INSERT INTO leases (handoff, agent) VALUES (now.id, now.agent)
        ON CONFLICT (handoff) DO UPDATE SET agent = excluded.agent, holder = NULL, token = NULL, until = NULL;
    ELSE
        DELETE FROM leases WHERE handoff = now.id AND (holder IS NULL OR now.state <> 'running');
    END IF;
END $$;

-- Microseconds since 1970 by the clock of the server, which goes on within a transaction.
CREATE FUNCTION batonpass_now() RETURNS bigint LANGUAGE sql
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

CREATE FUNCTION batonpass_require(is_there boolean, what text, id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_there THEN
        RAISE EXCEPTION 'no such %', what USING ERRCODE = 'BP005', DETAIL = jsonb_build_object('what', what, 'id', id);
    END IF;
END $$;

-- Gives up to `most` receipts that committed the next positions, and returns how many; 0 if another sequencer is at it.
--
-- Gapless: one sequencer at a time counts on from the last position, and a second one that begins when the first has
-- committed sees what it wrote, because the lock outlasts the commit. In order: a stream's next receipt could be
-- appended only after its predecessor committed, with a larger number. So whoever sees the later one sees the earlier one
-- too, and it sorts before. A receipt that commits late gets a later position than larger numbers before it; nothing waits.
CREATE FUNCTION batonpass_sequence(most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    given bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('batonpass.sequence.' || current_schema(), 0)) THEN
        RETURN 0;
    END IF;
    WITH batch AS (
        DELETE FROM unsequenced
        WHERE receipt <= (SELECT max(receipt) FROM (SELECT receipt FROM unsequenced ORDER BY receipt LIMIT most) AS oldest)
        RETURNING receipt
    )
    INSERT INTO positions (position, receipt)
    SELECT (SELECT coalesce(max(position), 0) FROM positions) + row_number() OVER (ORDER BY receipt), receipt FROM batch;
    GET DIAGNOSTICS given = ROW_COUNT;
    RETURN given;
END $$;
