-- Fewer statements for an append, and workers that are told instead of asking.

-- Workers that found nothing to do, and by which channel each is told. Not logged: whoever waits says so again and again, and
-- after a crash nobody waits.
CREATE UNLOGGED TABLE IF NOT EXISTS waiting_workers (
    channel text COLLATE "C" NOT NULL PRIMARY KEY,
    agents text[] COLLATE "C" NOT NULL,
    until bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Tells one worker that something waits for an agent. One and not all: the others would find it taken. Whoever is told no
-- longer waits, so the next handoff wakes the next worker. Only if somebody waits: PostgreSQL lets transactions that send a
-- message commit one after the other.
CREATE OR REPLACE FUNCTION batonpass_wake(wanted text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    woken text;
BEGIN
    DELETE FROM waiting_workers WHERE channel = (
        SELECT channel FROM waiting_workers WHERE wanted = ANY (agents) AND until > (SELECT batonpass_now())
        LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING channel INTO woken;
    IF FOUND THEN
        PERFORM pg_notify(woken, '');
    END IF;
END $$;

-- Says that a worker waits for so long, and returns when something will be due that nobody tells: a lease that runs out, or
-- a deadline. NULL if there is nothing.
CREATE OR REPLACE FUNCTION batonpass_wait(own_channel text, own_agents text[], wait_for bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    now bigint := batonpass_now();
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    EXECUTE format('LISTEN %I', own_channel);
    INSERT INTO waiting_workers (channel, agents, until) VALUES (own_channel, own_agents, now + wait_for)
    ON CONFLICT (channel) DO UPDATE SET agents = excluded.agents, until = excluded.until;
    RETURN least(
        (SELECT min(until) FROM leases WHERE until IS NOT NULL),
        (SELECT min(deadline) FROM handoffs WHERE deadline > now)
    ) - now;
END $$;

-- Appends one of several receipts in one transaction, and returns whether it did. Whatever is in its way, it takes nothing of
-- the others with it, and waits for nobody: it is appended again by itself, and hears there why not.
CREATE OR REPLACE FUNCTION batonpass_try_append(
    new_stream text,
    new_root text,
    new_seq bigint,
    new_previous text,
    new_head text,
    new_epoch bigint,
    held_epoch bigint,
    stays_open boolean,
    new_id text,
    new_kind text,
    new_payload bytea,
    new_relay_signature bytea,
    new_cosignature bytea,
    recorded_by text,
    content_ids text[],
    content_salts bytea[],
    content_bodies bytea[],
    change jsonb,
    enrols_itself boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM batonpass_append(
        new_stream, new_root, new_seq, new_previous, new_head, new_epoch, held_epoch, stays_open, new_id, new_kind,
        new_payload, new_relay_signature, new_cosignature, recorded_by, content_ids, content_salts, content_bodies, change,
        enrols_itself
    );
    RETURN true;
EXCEPTION WHEN OTHERS THEN
    RETURN false;
END $$;

-- Whoever could take leases and keep the list of states can do the same by these.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, relname
        FROM pg_class CROSS JOIN aclexplode(relacl)
        WHERE relnamespace = current_schema()::regnamespace AND relname IN ('leases', 'standing')
            AND privilege_type = 'DELETE'
    LOOP
        IF granted.relname = 'leases' THEN
            EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON waiting_workers TO ' || granted.role;
        ELSE
            EXECUTE 'GRANT UPDATE ON standing TO ' || granted.role;
        END IF;
    END LOOP;
END $$;

-- As it was, in one function instead of six, and with all that is written beside a receipt. Each statement in it costs more
-- than what it does, so there are as few as possible. The functions that it called before stay until a later step: an append
-- that is under way while this one is applied still calls them.
--
--     BP001  the stream does not stand where the receipt begins    receipt, stream: its row; null if it never began
--     BP002  the recording key is not active                       key, enrolled
--     BP003  a run that is to be fenced does not stand there       run, seq
--     BP004  a handoff cannot go there                             receipt, handoff: its row
--     BP005  what is to be changed is not there                    what, id
--     BP006  an offer's key is taken in its scope                  offered, handoff: the one that has it
--     BP007  the lease under which it is done is lost              handoff
--     BP008  a limit does not hold once the charges are counted    account, unit, used, most
--     BP009  the key that signed a decision is not an active approver's    key
CREATE OR REPLACE FUNCTION batonpass_append(
    new_stream text,
    new_root text,
    new_seq bigint,
    new_previous text,
    new_head text,
    new_epoch bigint,
    held_epoch bigint,
    stays_open boolean,
    new_id text,
    new_kind text,
    new_payload bytea,
    new_relay_signature bytea,
    new_cosignature bytea,
    recorded_by text,
    content_ids text[],
    content_salts bytea[],
    content_bodies bytea[],
    change jsonb,
    enrols_itself boolean
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    known streams;
    stream_number bigint;
    receipt_number bigint;
    part jsonb;
    moving handoffs;
    last_act text;
    broken record;
BEGIN
    -- Whoever takes a key's right away first waits for all appends that are under way, and keeps new ones out until the
    -- commit. See the insertion into receipts below, which is where an append asks whether its key is active. As for a key, so
    -- for a grant: calls that are under way commit first and get lower numbers, and those that come later wait and then see it.
    IF change ? 'key_changed' THEN
        LOCK TABLE receipts IN SHARE ROW EXCLUSIVE MODE;
    ELSIF change ? 'ends_grants' THEN
        PERFORM batonpass_lock_receipts();
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
    IF change IS NULL THEN
        RETURN;
    END IF;

    part := change -> 'fences';
    IF part IS NOT NULL THEN
        UPDATE streams SET open = false
        WHERE id = part ->> 'run' AND open AND seq = (part ->> 'seq')::bigint AND head = part ->> 'head';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the run does not stand where it is to be fenced' USING ERRCODE = 'BP003', DETAIL = part;
        END IF;
    END IF;
    part := change -> 'run_opened';
    IF part IS NOT NULL THEN
        INSERT INTO runs (
            id, root, parent, handoff, attempt, agent, principal, state, started_at, ended_at, series, session
        ) VALUES (
            part ->> 'id', part ->> 'root', part ->> 'parent', part ->> 'handoff', (part ->> 'attempt')::bigint,
            part ->> 'agent', part ->> 'principal', part ->> 'state', (part ->> 'started_at')::bigint,
            (part ->> 'ended_at')::bigint, part ->> 'series', part ->> 'session'
        );
        INSERT INTO standing (id, state) VALUES (part ->> 'id', part ->> 'state');
    END IF;
    part := change -> 'run_ended';
    IF part IS NOT NULL THEN
        UPDATE runs SET state = part ->> 'state', ended_at = (part ->> 'at')::bigint WHERE id = part ->> 'run';
        IF NOT FOUND THEN
            PERFORM batonpass_require(false, 'run', part ->> 'run');
        END IF;
        UPDATE standing SET state = part ->> 'state' WHERE state = 'open' AND id = part ->> 'run';
        IF NOT FOUND THEN
            INSERT INTO standing (id, state) VALUES (part ->> 'run', part ->> 'state') ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    part := change -> 'handoff_opened';
    IF part IS NOT NULL THEN
        -- Of two that offer under one key at once, the second waits here for the first one's commit, and then finds it.
        INSERT INTO handoffs (
            id, root, parent, agent, carrier, state, attempt, run, initiated, seq, scope, key, deadline
        ) VALUES (
            part ->> 'id', part ->> 'root', part ->> 'parent', part ->> 'agent', part ->> 'carrier', part ->> 'state',
            (part ->> 'attempt')::bigint, part ->> 'run', part ->> 'initiated', (part ->> 'seq')::bigint,
            part ->> 'scope', part ->> 'key', (part ->> 'deadline')::bigint
        )
        ON CONFLICT (scope, key) WHERE key IS NOT NULL DO NOTHING;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the key is taken in its scope' USING ERRCODE = 'BP006', DETAIL = (
                SELECT jsonb_build_object('offered', part ->> 'id', 'handoff', id) FROM handoffs
                WHERE scope = part ->> 'scope' AND key = part ->> 'key'
            );
        END IF;
        INSERT INTO standing (id, state) VALUES (part ->> 'id', part ->> 'state');
        IF part ->> 'carrier' = 'worker' AND part ->> 'state' = 'ready' THEN
            INSERT INTO leases (handoff, agent) VALUES (part ->> 'id', part ->> 'agent');
            PERFORM batonpass_wake(part ->> 'agent');
        END IF;
    END IF;
    part := change -> 'handoff_moved';
    IF part IS NOT NULL THEN
        LOOP
            UPDATE handoffs SET
                agent = coalesce(part ->> 'to', agent),
                state = part -> carrier ->> 'target',
                attempt = coalesce((part ->> 'attempt')::bigint, attempt), run = coalesce(part ->> 'run', run)
            WHERE
                id = part ->> 'handoff' AND state = ANY ((part -> carrier ->> 'sources')::text[])
                AND attempt = coalesce((part ->> 'held_attempt')::bigint, attempt)
                AND part ->> 'ends' IS NOT DISTINCT FROM (CASE state WHEN 'running' THEN run END)
            RETURNING * INTO moving;
            EXIT WHEN FOUND;
            -- With the row locked it is what it is. It may have come to where it should be only now; then once more.
            SELECT * INTO moving FROM handoffs WHERE id = part ->> 'handoff' FOR UPDATE;
            IF NOT FOUND THEN
                PERFORM batonpass_require(false, 'handoff', part ->> 'handoff');
            END IF;
            CONTINUE WHEN moving.state = ANY ((part -> moving.carrier ->> 'sources')::text[])
                AND moving.attempt = coalesce((part ->> 'held_attempt')::bigint, moving.attempt)
                AND part ->> 'ends' IS NOT DISTINCT FROM (CASE moving.state WHEN 'running' THEN moving.run END);
            RAISE EXCEPTION 'the handoff cannot go there' USING ERRCODE = 'BP004', DETAIL =
                jsonb_build_object('receipt', new_id, 'handoff', jsonb_build_array(
                    moving.id, moving.root, moving.parent, moving.agent, moving.carrier, moving.state,
                    moving.attempt, moving.run, moving.initiated, moving.seq, moving.scope, moving.key, moving.deadline
                ));
        END LOOP;
        IF part ? 'anchor' THEN
            -- An attempt hangs from the last thing that happened to its handoff. Whoever acts on the handoff updates its
            -- stream's row, so with this lock they come before us, and we see it, or after our commit.
            SELECT head INTO last_act FROM streams WHERE id = moving.id FOR SHARE;
            IF part ->> 'anchor' <> coalesce(last_act, moving.initiated) THEN
                RAISE EXCEPTION 'the handoff moved on' USING ERRCODE = 'BP003', DETAIL =
                    jsonb_build_object('run', moving.id, 'seq', 0);
            END IF;
        END IF;
        UPDATE standing SET state = moving.state
        WHERE id = moving.id AND state = ANY ((part -> moving.carrier ->> 'sources')::text[]);
        IF NOT FOUND THEN
            INSERT INTO standing (id, state) VALUES (moving.id, moving.state) ON CONFLICT DO NOTHING;
        END IF;
        IF part ? 'token' THEN
            -- The row stays locked until the commit: whoever would take the lease over comes before this, or after it.
            PERFORM FROM leases WHERE handoff = moving.id AND token = (part ->> 'token')::bigint FOR UPDATE;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'BP007', DETAIL = part;
            END IF;
        END IF;
        -- The lease of a worker-carried handoff follows its state.
        IF moving.carrier = 'worker' THEN
            IF moving.state = 'ready' THEN
                INSERT INTO leases (handoff, agent) VALUES (moving.id, moving.agent)
                ON CONFLICT (handoff) DO UPDATE SET agent = excluded.agent, holder = NULL, token = NULL, until = NULL;
                PERFORM batonpass_wake(moving.agent);
            ELSIF moving.state <> 'running' THEN
                DELETE FROM leases WHERE handoff = moving.id;
            ELSIF NOT part ? 'token' THEN
                DELETE FROM leases WHERE handoff = moving.id AND holder IS NULL;
            END IF;
        END IF;
    END IF;
    IF change ? 'stated' THEN
        INSERT INTO statements (item, root, digest, author, at)
        SELECT item, root, digest, author, at FROM jsonb_populate_recordset(NULL::statements, change -> 'stated');
    END IF;
    IF change ? 'key_added' THEN
        INSERT INTO keys SELECT * FROM jsonb_populate_record(NULL::keys, change -> 'key_added');
    END IF;
    part := change -> 'key_changed';
    IF part IS NOT NULL THEN
        UPDATE keys SET status = part ->> 'status' WHERE id = part ->> 'key';
        IF NOT FOUND THEN
            PERFORM batonpass_require(false, 'key', part ->> 'key');
        END IF;
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
    IF change ? 'charges' THEN
        -- Of two that want the last unit, the second waits at the row for the first one's commit, and then counts it in. Rows
        -- are taken in one order, so that no two wait for each other.
        INSERT INTO charged AS kept (account, unit, used)
        SELECT given.account, given.unit, given.amount
        FROM jsonb_to_recordset(change -> 'charges') AS given (account text, unit text, amount bigint)
        ORDER BY given.account COLLATE "C", given.unit COLLATE "C"
        ON CONFLICT (account, unit) DO UPDATE SET used = kept.used + excluded.used;
    END IF;
    IF change ? 'within' THEN
        SELECT given.account, given.unit, coalesce(charged.used, 0) AS used, given.most INTO broken
        FROM jsonb_to_recordset(change -> 'within') AS given (account text, unit text, most bigint)
        LEFT JOIN charged ON charged.account = given.account AND charged.unit = given.unit
        WHERE coalesce(charged.used, 0) > given.most
        LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'a limit does not hold' USING ERRCODE = 'BP008', DETAIL = to_jsonb(broken);
        END IF;
    END IF;
    part := change -> 'cached';
    IF part IS NOT NULL THEN
        INSERT INTO cached (call, key, receipt, until)
        VALUES (part ->> 'call', part ->> 'key', part ->> 'receipt', (part ->> 'until')::bigint);
    END IF;
    part := change -> 'call_held';
    IF part IS NOT NULL THEN
        INSERT INTO held_calls (call, run, receipt) VALUES (part ->> 'call', part ->> 'run', part ->> 'receipt');
    END IF;
    part := change -> 'call_decided';
    IF part IS NOT NULL THEN
        -- Of two that decide at once, the second waits here for the first one's commit, and is then refused.
        INSERT INTO decided_calls (call, run, receipt, approved)
        VALUES (part ->> 'call', part ->> 'run', part ->> 'receipt', (part ->> 'approved')::boolean);
    END IF;
    IF change ? 'remarks' THEN
        INSERT INTO remarks (said, name, receipt)
        SELECT said, name, receipt FROM jsonb_populate_recordset(NULL::remarks, change -> 'remarks')
        ON CONFLICT DO NOTHING;
    END IF;
    IF change ? 'proven_by' THEN
        -- After the insertion into receipts, whose lock keeps a revocation waiting for our commit, or waited for that one's.
        PERFORM batonpass_require_approver(change ->> 'proven_by');
    END IF;
END $$;
