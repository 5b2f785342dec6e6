-- What waits for somebody: a hold may have a time limit. Beside the handoffs and not an index on their state, which would
-- make every move of every handoff write all of their indexes anew.
CREATE TABLE held (
    handoff text COLLATE "C" NOT NULL PRIMARY KEY
);
INSERT INTO held (handoff) SELECT id FROM handoffs WHERE state = 'held';

-- How much of a limit is used up, by everybody who shares it. Derived from receipts and checked against them by the verifier.
CREATE TABLE charged (
    account text COLLATE "C" NOT NULL,
    unit text COLLATE "C" NOT NULL CHECK (unit IN ('calls', 'spend', 'rows', 'bytes', 'tokens')),
    used bigint NOT NULL,
    PRIMARY KEY (account, unit)
);

ALTER FUNCTION batonpass_project (text, bigint, jsonb) RENAME TO batonpass_project_rows;

-- As before, and then who waits, and what is used up. A refusal more:
--
--     BP008  a limit does not hold once the charges are counted    account, unit, used, most
CREATE FUNCTION batonpass_project(receipt text, receipt_number bigint, change jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moved jsonb := change -> 'handoff_moved';
    broken record;
BEGIN
    PERFORM batonpass_project_rows(receipt, receipt_number, change);
    IF change -> 'handoff_opened' ->> 'state' = 'held' THEN
        INSERT INTO held (handoff) VALUES (change -> 'handoff_opened' ->> 'id');
    ELSIF moved -> 'caller' ->> 'target' = 'held' THEN
        INSERT INTO held (handoff) VALUES (moved ->> 'handoff');
    ELSIF moved -> 'caller' -> 'sources' ? 'held' THEN
        DELETE FROM held WHERE handoff = moved ->> 'handoff';
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
