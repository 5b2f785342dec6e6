-- Results that somebody refuted, found by the root of their tree, as whoever hands something off there has to know of them.
ALTER TABLE remarks DROP CONSTRAINT remarks_said_check;
ALTER TABLE remarks ADD CONSTRAINT remarks_said_check CHECK (said IN ('tainted', 'endorsed', 'committed', 'refuted'));

INSERT INTO remarks (said, name, receipt)
SELECT 'refuted', convert_from(payload, 'UTF8')::jsonb -> 'predicate' ->> 'root', id
FROM receipts WHERE kind = 'verification.failed' AND convert_from(payload, 'UTF8')::jsonb -> 'predicate' ? 'root';

-- As before, and how many results of a tree were refuted.
--
--     BP011  that is not so
DROP FUNCTION batonpass_require_premises(text[], bigint[], text[]);
CREATE FUNCTION batonpass_require_premises(of_roots text[], so_many bigint[], refuted bigint[], untouched text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    broken text;
BEGIN
    SELECT given.root INTO broken
    FROM unnest(of_roots, so_many, refuted) AS given (root, said, refuted)
    WHERE given.said <> (SELECT count(*) FROM statements WHERE statements.root = given.root)
        OR given.refuted <> (SELECT count(*) FROM remarks WHERE remarks.said = 'refuted' AND remarks.name = given.root)
    LIMIT 1;
    IF broken IS NULL AND EXISTS (SELECT FROM streams WHERE streams.id = ANY(untouched)) THEN
        broken := of_roots[1];
    END IF;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION 'something happened in the tree' USING ERRCODE = 'BP011', DETAIL = jsonb_build_object('root', broken);
    END IF;
END $$;
