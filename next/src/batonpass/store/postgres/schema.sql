-- Receipts are the truth. All other rows follow from receipts, and the verifier derives them again.
-- Ids compare by byte: cheaper than a locale, the same order on every server, and the order that SQLite has.

CREATE TABLE receipts (
    -- The order of the receipts, drawn by `append` when all its locks are taken, and unlike a position not without gaps:
    -- what was rolled back drew one as well. A position is the number of receipts up to here, counted and never stored.
    place bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
    stream text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    payload bytea NOT NULL,
    signature bytea NOT NULL,
    cosignature bytea,
    -- All contents of a receipt, packed.
    contents bytea,
    PRIMARY KEY (stream, seq)
) WITH (toast_tuple_target = 4080); -- by default a receipt of three KB is cut up, for a fifth of the server's time
CREATE UNIQUE INDEX receipts_by_place ON receipts (place);

CREATE VIEW stored AS
SELECT place, stream, seq, payload, signature, cosignature, contents FROM receipts;

-- What everything hangs from: one row, and never another.
CREATE TABLE ledger (
    one bigint PRIMARY KEY CHECK (one = 1),
    genesis text COLLATE "C" NOT NULL
);

-- Room on each page for the next version of a row: without it every update would touch the index as well.
CREATE TABLE streams (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    root text COLLATE "C",
    seq bigint NOT NULL,
    head text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('open', 'completed', 'failed', 'cancelled', 'fenced')),
    recorder text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    last_at bigint NOT NULL,
    agent text COLLATE "C",
    principal text COLLATE "C",
    handoff text COLLATE "C",
    attempt bigint
) WITH (fillfactor = 50);

CREATE TABLE handoffs (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    parent text COLLATE "C" NOT NULL,
    root text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('offered', 'running', 'completed', 'failed', 'cancelled')),
    attempt bigint NOT NULL,
    run text COLLATE "C",
    last text COLLATE "C" NOT NULL,
    offered_at bigint NOT NULL
) WITH (fillfactor = 50);

-- Only calls without an outcome: a small table, however long the ledger is.
CREATE TABLE open_calls (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL
);

-- One request may cause several receipts, but never the same part twice.
CREATE TABLE requests (
    request text COLLATE "C" NOT NULL,
    part text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    stream text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (request, part)
);

CREATE TABLE revoked (
    account text COLLATE "C" NOT NULL PRIMARY KEY
);

CREATE TABLE touches (
    target text COLLATE "C" NOT NULL,
    stream text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (target, stream, seq)
);

-- One receipt on its way: what it expects of the rows and makes of them, and its bytes. The columns are the fields of
-- `model.change.Change`, in their order, and those of a receipt; a test compares.
CREATE TYPE change AS (
    stream text,
    seq bigint,
    previous text,
    epoch bigint,
    head text,
    at bigint,
    state text,
    recorder text,
    from_epoch bigint,
    from_recorder text,
    root text,
    agent text,
    principal text,
    handoff text,
    attempt bigint,
    genesis text,
    founds bigint,
    moves text,
    from_states text,
    from_attempt bigint,
    from_run text,
    from_last text,
    from_parent text,
    from_agent text,
    to_state text,
    to_attempt bigint,
    to_run text,
    to_last text,
    to_agent text,
    fenced text,
    fenced_seq bigint,
    fenced_head text,
    fenced_state text,
    holder text,
    holder_epoch bigint,
    opens_call text,
    call_key text,
    closes_call text,
    settles_call text,
    call_run text,
    attempt_run text,
    request text,
    request_part text,
    fingerprint text,
    charges text,
    revokes text,
    touches text,
    payload bytea,
    signature bytea,
    cosignature bytea,
    contents bytea
);

-- Compares and sets for all who wait, in one round trip and one transaction. It decides nothing: every rule comes as a
-- value to compare with. Where nothing matched all is undone (BP001), and `store.admission` explains.
--
-- The order of positions must be an order in which the receipts could have been written one after the other: the
-- verifier folds them so. Three things make it one. Whatever a change compares with is locked until the commit: the
-- rows that it writes, FOR SHARE the one that it only reads, and rows that are never taken back need no lock. A
-- revocation must find none that is being charged, where there is no row to lock: so it is alone in the ledger, as is
-- what founds it, and a view while it begins. And places are drawn last, when all locks are held: of two that met in a
-- row, the later one waited for it, and draws the higher place. (A transaction's own number would not do: it is drawn at
-- the first write, and what is committed first may have begun last.)
CREATE FUNCTION append(changes change[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    c change;
    is_alone boolean := false;
BEGIN
    FOREACH c IN ARRAY changes LOOP
        is_alone := is_alone OR c.founds = 1 OR c.revokes IS NOT NULL;
    END LOOP;
    IF is_alone THEN
        PERFORM pg_advisory_xact_lock(4207849071);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(4207849071);
    END IF;
    FOREACH c IN ARRAY changes LOOP
        -- The handoff before the streams, always: a retry and the closing of what it retries lock the same rows.
        IF c.moves IS NOT NULL THEN
            IF c.from_states IS NULL THEN
                INSERT INTO handoffs
                VALUES (c.moves, c.stream, c.root, c.seq, c.to_agent, c.to_state, 0, NULL, c.to_last, c.at)
                ON CONFLICT DO NOTHING;
            ELSE
                UPDATE handoffs
                SET state = coalesce(c.to_state, state), attempt = coalesce(c.to_attempt, attempt),
                    run = coalesce(c.to_run, run), last = coalesce(c.to_last, last)
                WHERE id = c.moves AND state = ANY (string_to_array(c.from_states, ' '))
                    AND attempt = coalesce(c.from_attempt, attempt)
                    AND run IS NOT DISTINCT FROM coalesce(c.from_run, run) AND last = coalesce(c.from_last, last)
                    AND parent = coalesce(c.from_parent, parent) AND agent = coalesce(c.from_agent, agent);
            END IF;
            IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
            IF c.holder IS NOT NULL THEN
                PERFORM FROM streams WHERE id = c.holder AND epoch = c.holder_epoch FOR SHARE;
                IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
            END IF;
            IF c.attempt_run IS NOT NULL THEN
                PERFORM FROM streams WHERE id = c.attempt_run AND handoff = c.moves;
                IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
            END IF;
        END IF;
        -- A relay's first receipt enrols it; everything else is written by a relay that is enrolled.
        IF c.seq = 1 THEN
            INSERT INTO streams
            SELECT c.stream, c.root, 1, c.head, c.epoch, c.state, c.recorder, c.at, c.at, c.agent, c.principal, c.handoff,
                c.attempt
            WHERE c.recorder = c.stream OR EXISTS (SELECT FROM streams WHERE id = c.recorder)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE streams
            SET seq = c.seq, head = c.head, epoch = c.epoch, state = c.state, recorder = c.recorder, last_at = c.at
            WHERE id = c.stream AND seq = c.seq - 1 AND head = c.previous AND epoch = c.from_epoch AND state = 'open'
                AND recorder = coalesce(c.from_recorder, recorder)
                AND EXISTS (SELECT FROM streams WHERE id = c.recorder);
        END IF;
        IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
        IF c.genesis IS NOT NULL THEN
            IF c.founds = 1 THEN
                INSERT INTO ledger VALUES (1, c.genesis) ON CONFLICT DO NOTHING;
            END IF;
            PERFORM FROM ledger WHERE genesis = c.genesis;
            IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
        END IF;
        IF c.fenced IS NOT NULL THEN
            UPDATE streams
            SET epoch = epoch + 1, state = CASE state WHEN 'open' THEN c.fenced_state ELSE state END
            WHERE id = c.fenced AND seq = c.fenced_seq AND head = c.fenced_head;
            IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
        END IF;
        IF c.opens_call IS NOT NULL THEN
            INSERT INTO open_calls VALUES (c.opens_call, c.call_run, c.call_key) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
        END IF;
        IF c.closes_call IS NOT NULL THEN
            DELETE FROM open_calls WHERE id = c.closes_call AND run = c.call_run;
            IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
        END IF;
        IF c.settles_call IS NOT NULL THEN
            DELETE FROM open_calls WHERE id = c.settles_call AND run = c.call_run;
        END IF;
        IF c.charges IS NOT NULL THEN
            PERFORM FROM revoked WHERE account = ANY (string_to_array(c.charges, ' '));
            IF FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
        END IF;
        IF c.request IS NOT NULL THEN
            INSERT INTO requests VALUES (c.request, c.request_part, c.fingerprint, c.stream, c.seq)
            ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
        END IF;
        IF c.revokes IS NOT NULL THEN
            INSERT INTO revoked VALUES (c.revokes) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN RAISE SQLSTATE 'BP001'; END IF;
        END IF;
        IF c.touches IS NOT NULL THEN
            INSERT INTO touches SELECT target, c.stream, c.seq FROM unnest(string_to_array(c.touches, ' ')) AS target;
        END IF;
    END LOOP;
    INSERT INTO receipts (stream, seq, payload, signature, cosignature, contents)
    SELECT r.stream, r.seq, r.payload, r.signature, r.cosignature, r.contents FROM unnest(changes) AS r;
END
$$;
