-- The writes of an append. No row changed: what the receipt expected is not so, and admission explains why.

-- A relay's first receipt enrols it; everything else is written by a relay that is enrolled.

-- name: open_stream
INSERT INTO streams SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13
WHERE ?7 = ?1 OR EXISTS (SELECT 1 FROM streams WHERE id = ?7)
ON CONFLICT DO NOTHING;

-- name: advance_stream
UPDATE streams SET seq = ?1, head = ?2, epoch = ?3, state = ?4, recorder = ?5, last_at = ?6
WHERE id = ?7 AND seq = ?1 - 1 AND head = ?8 AND epoch = ?9 AND state = 'open' AND recorder = coalesce(?10, recorder)
    AND EXISTS (SELECT 1 FROM streams WHERE id = ?5);

-- name: append_receipt
INSERT INTO receipts (stream, seq, payload, signature, cosignature, contents) VALUES (?, ?, ?, ?, ?, ?);

-- name: found_ledger
INSERT INTO ledger VALUES (1, ?) ON CONFLICT DO NOTHING;

-- name: has_genesis
SELECT 1 FROM ledger WHERE genesis = ?;

-- name: open_handoff
INSERT INTO handoffs VALUES (?, ?, ?, ?, ?, ?, 0, NULL, ?, ?) ON CONFLICT DO NOTHING;

-- name: move_handoff
UPDATE handoffs
SET state = coalesce(?1, state), attempt = coalesce(?2, attempt), run = coalesce(?3, run), last = coalesce(?4, last)
WHERE id = ?5 AND instr(' ' || ?6 || ' ', ' ' || state || ' ') AND attempt = coalesce(?7, attempt) AND run IS coalesce(?8, run)
    AND last = coalesce(?9, last) AND parent = coalesce(?10, parent) AND agent = coalesce(?11, agent);

-- name: fence_stream
UPDATE streams SET epoch = epoch + 1, state = iif(state = 'open', ?, state) WHERE id = ? AND seq = ? AND head = ?;

-- name: is_holder
SELECT 1 FROM streams WHERE id = ? AND epoch = ?;

-- name: is_attempt
SELECT 1 FROM streams WHERE id = ? AND handoff = ?;

-- name: open_call
INSERT INTO open_calls VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: close_call
DELETE FROM open_calls WHERE id = ? AND run = ?;

-- name: add_request
INSERT INTO requests VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: revoke
INSERT INTO revoked VALUES (?) ON CONFLICT DO NOTHING;

-- name: touch
INSERT INTO touches VALUES (?, ?, ?);

-- name: all_receipts
SELECT position, stream, seq, payload, signature, cosignature, contents FROM receipts ORDER BY position;
