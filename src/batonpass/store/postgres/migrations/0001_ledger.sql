-- Everything that a ledger is: the same tables as on SQLite, and what many writers at once need besides. Receipts, contents
-- and seals are the truth; streams, runs, handoffs and keys are derived from receipts and are checked against them by the
-- verifier, column by column. Ids are compared byte by byte, whatever the database's own collation is.
--
-- No foreign keys: they would lock a row of the parent in every append, and it is the verifier that must find an orphan.

CREATE TABLE ledger (
    "only" integer PRIMARY KEY CHECK ("only" = 1),
    id text COLLATE "C" NOT NULL,
    root_key text COLLATE "C" NOT NULL
);

-- A stream's row is updated by each of its receipts. No indexed column changes, so with room on the page the update stays
-- on it and touches no index.
CREATE TABLE streams (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    root text COLLATE "C",
    seq bigint NOT NULL,
    head text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    open boolean NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX streams_by_root ON streams (root) WHERE root IS NOT NULL;

-- CACHE 1: a number is drawn under the lock of the stream's row, so within a stream numbers rise with seq. A connection that
-- kept a few numbers for later would break that.
CREATE TABLE receipts (
    number bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    relay_signature bytea NOT NULL,
    cosignature bytea,
    UNIQUE (stream, seq)
);

-- Numbers are drawn before the commit and leave gaps; positions are given after it, in order and without a gap.
CREATE TABLE positions (
    position bigint PRIMARY KEY,
    receipt bigint NOT NULL UNIQUE
);

-- What committed and has no position yet. Rows come and go all the time, so it is vacuumed by count, not by share.
CREATE TABLE unsequenced (
    receipt bigint PRIMARY KEY
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

CREATE TABLE contents (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    receipt bigint NOT NULL,
    place text COLLATE "C" NOT NULL CHECK (place IN ('row', 'file', 'erased')),
    salt bytea,
    body bytea
);

CREATE TABLE runs (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    root text COLLATE "C" NOT NULL,
    parent text COLLATE "C",
    handoff text COLLATE "C",
    attempt bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('open', 'completed', 'failed', 'cancelled', 'lapsed')),
    started_at bigint NOT NULL,
    ended_at bigint
) WITH (fillfactor = 80);

CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;

CREATE TABLE handoffs (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    root text COLLATE "C" NOT NULL,
    parent text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    carrier text COLLATE "C" NOT NULL CHECK (carrier IN ('caller', 'worker')),
    state text COLLATE "C" NOT NULL CHECK (
        state IN (
            'held', 'offered', 'ready', 'claimed', 'asked', 'running', 'completed',
            'failed', 'declined', 'denied', 'cancelled', 'expired', 'verified', 'refuted'
        )
    ),
    attempt bigint NOT NULL,
    run text COLLATE "C",
    initiated text COLLATE "C" NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX handoffs_by_parent ON handoffs (parent);

CREATE TABLE keys (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    role text COLLATE "C" NOT NULL CHECK (role IN ('root', 'relay')),
    public_key text COLLATE "C" NOT NULL,
    relay text COLLATE "C",
    status text COLLATE "C" NOT NULL CHECK (status IN ('active', 'retired', 'revoked'))
);

CREATE TABLE seals (
    size bigint PRIMARY KEY,
    previous bigint NOT NULL UNIQUE,
    root text COLLATE "C" NOT NULL,
    note text COLLATE "C" NOT NULL,
    frontier bytea NOT NULL
);

-- Writes one entry, or raises and leaves nothing behind. A refusal is an error and not an answer, so that it takes all of
-- its transaction with it, whichever entry of a batch it is about. The SQLSTATE says which refusal; the detail is JSON for
-- the program that asked:
--
--     BP001  the stream does not stand where the receipt begins    receipt, stream: its row; null if it never began
--     BP002  the recording key is not active                       key, enrolled
--     BP003  a run that is to be fenced does not stand there       run, seq
--     BP004  a handoff cannot go there                             receipt, handoff: its row
--     BP005  what is to be changed is not there                    what, id
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
    change jsonb, -- what it changes besides its own stream; NULL if nothing
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
        PERFORM batonpass_project(new_id, change);
    END IF;
END $$;

CREATE FUNCTION batonpass_refuse_key(key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the recording key is not active' USING ERRCODE = 'BP002', DETAIL = jsonb_build_object(
        'key', key, 'enrolled', EXISTS (SELECT FROM keys WHERE id = key)
    );
END $$;

-- Applies what a receipt changes besides its own stream; the keys of `change` are the fields of a Projection.
CREATE FUNCTION batonpass_project(receipt text, change jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    fences jsonb := change -> 'fences';
    ended jsonb := change -> 'run_ended';
    moved jsonb := change -> 'handoff_moved';
    changed jsonb := change -> 'key_changed';
    moving handoffs;
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
        INSERT INTO handoffs SELECT * FROM jsonb_populate_record(NULL::handoffs, change -> 'handoff_opened');
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
                    moving.attempt, moving.run, moving.initiated
                ));
        END IF;
        UPDATE handoffs SET
            state = step ->> 'target',
            attempt = coalesce((moved ->> 'attempt')::bigint, attempt),
            run = coalesce(moved ->> 'run', run)
        WHERE id = moving.id;
    END IF;
    IF change ? 'key_added' THEN
        INSERT INTO keys SELECT * FROM jsonb_populate_record(NULL::keys, change -> 'key_added');
    END IF;
    IF changed IS NOT NULL THEN
        UPDATE keys SET status = changed ->> 'status' WHERE id = changed ->> 'key';
        PERFORM batonpass_require(FOUND, 'key', changed ->> 'key');
    END IF;
    IF change ? 'erased' THEN
        UPDATE contents SET place = 'erased', salt = NULL, body = NULL
        WHERE id IN (SELECT jsonb_array_elements_text(change -> 'erased'));
    END IF;
END $$;

CREATE FUNCTION batonpass_require(is_there boolean, what text, id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_there THEN
        RAISE EXCEPTION 'no such %', what
        USING ERRCODE = 'BP005', DETAIL = jsonb_build_object('what', what, 'id', id);
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
