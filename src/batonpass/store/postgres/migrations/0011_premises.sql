-- What was taken for granted when receipts were made: how many statements humans have made in a tree, and that nobody has acted on
-- some handoffs. Asked in the round trip and the transaction of the append, so that whoever offers does not have to look before.
--
--     BP011  that is not so
CREATE FUNCTION batonpass_require_premises(of_roots text[], so_many bigint[], untouched text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    broken text;
BEGIN
    SELECT given.root INTO broken
    FROM unnest(of_roots, so_many) AS given (root, said)
    WHERE given.said <> (SELECT count(*) FROM statements WHERE statements.root = given.root)
    LIMIT 1;
    IF broken IS NULL AND EXISTS (SELECT FROM streams WHERE streams.id = ANY(untouched)) THEN
        broken := of_roots[1];
    END IF;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION 'something happened in the tree' USING ERRCODE = 'BP011', DETAIL = jsonb_build_object('root', broken);
    END IF;
END $$;
