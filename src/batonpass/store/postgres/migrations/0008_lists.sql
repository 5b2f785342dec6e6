-- What a list shows and what a name or the end of an id means is found by index, however much else there is.

-- Which runs and handoffs are in which state: what `held` was for one state. Beside the rows and not an index on them, which
-- would make every move of a handoff write all of its indexes anew. Renamed and not made anew: what roles were granted on it
-- stays granted.
ALTER TABLE held RENAME TO standing;
ALTER TABLE standing RENAME COLUMN handoff TO id;
ALTER TABLE standing ADD COLUMN state text COLLATE "C";
ALTER TABLE standing DROP CONSTRAINT held_pkey;
DELETE FROM standing;
INSERT INTO standing (id, state) SELECT id, state FROM handoffs;
INSERT INTO standing (id, state) SELECT id, state FROM runs;
ALTER TABLE standing ADD PRIMARY KEY (state, id);

-- As before, with all states instead of one.
CREATE OR REPLACE FUNCTION batonpass_project(receipt text, receipt_number bigint, change jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moved jsonb := change -> 'handoff_moved';
    broken record;
BEGIN
    PERFORM batonpass_project_rows(receipt, receipt_number, change);
    IF change ? 'run_opened' THEN
        INSERT INTO standing (id, state) SELECT id, state FROM runs WHERE id = change -> 'run_opened' ->> 'id';
    END IF;
    IF change ? 'run_ended' THEN
        DELETE FROM standing WHERE state = 'open' AND id = change -> 'run_ended' ->> 'run';
        INSERT INTO standing (id, state) SELECT id, state FROM runs WHERE id = change -> 'run_ended' ->> 'run';
    END IF;
    IF change ? 'handoff_opened' THEN
        INSERT INTO standing (id, state) SELECT id, state FROM handoffs WHERE id = change -> 'handoff_opened' ->> 'id';
    END IF;
    IF moved IS NOT NULL THEN
        -- The row of the handoff is locked by now. Which of the states it came from it was in is not known any more, so each of
        -- them is looked up; there are a few.
        DELETE FROM standing
        WHERE
            id = moved ->> 'handoff'
            AND state = ANY (
                ARRAY(SELECT jsonb_array_elements_text(moved -> 'caller' -> 'sources'))
                || ARRAY(SELECT jsonb_array_elements_text(moved -> 'worker' -> 'sources'))
            );
        INSERT INTO standing (id, state) SELECT id, state FROM handoffs WHERE id = moved ->> 'handoff';
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
END $$;

CREATE INDEX runs_by_agent ON runs (agent, id);
CREATE INDEX runs_roots ON runs (id) WHERE parent IS NULL;
CREATE INDEX runs_roots_of_session ON runs (session, id) WHERE parent IS NULL AND session IS NOT NULL;

CREATE INDEX handoffs_by_agent ON handoffs (agent, id);

-- People type the last characters of an id. Four of them leave a few candidates among a million.
CREATE INDEX runs_by_ending ON runs (right(id, 4));
CREATE INDEX handoffs_by_ending ON handoffs (right(id, 4));
CREATE INDEX receipts_by_ending ON receipts (right(id, 4));

-- The last four characters of the call that a receipt is about. Not as jsonb, which would fail on bytes that somebody edited, and
-- keep the verifier from naming them. Whoever asks reads the receipt and sees whether it is about that call.
CREATE INDEX receipts_by_call ON receipts (
    substring(encode(payload, 'escape') FROM '"call":"call_[0-9a-z]{22}([0-9a-z]{4})"')
) WHERE kind IN ('tool.requested', 'tool.denied', 'tool.held');
