-- What only this store asks.

-- name: append
SELECT append($1);

-- name: change_type
SELECT 'change'::regtype::oid;

-- name: begin_schema
-- Two processes may create it at once.
SELECT pg_advisory_xact_lock(4207849071);

-- name: schema_version
SELECT to_regclass('receipts'), obj_description(to_regclass('receipts'), 'pg_class');

-- name: begin_view
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: hold_writers
SELECT pg_advisory_lock(4207849071);

-- name: release_writers
-- The first statement of the transaction: its snapshot is taken before the lock is given back.
SELECT pg_advisory_unlock(4207849071);

-- name: all_receipts
SELECT row_number() OVER (ORDER BY place), stream, seq, payload, signature, cosignature, contents
FROM receipts ORDER BY place;
