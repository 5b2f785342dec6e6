-- What both stores ask in the same words. `stored` is a view that each of them has: stream, seq, payload, signature,
-- cosignature, contents, and `place`, which sorts receipts in the order of their positions.

-- name: first_receipt
SELECT payload, signature, cosignature, contents FROM stored ORDER BY place LIMIT 1;

-- name: get_genesis
SELECT genesis FROM ledger;

-- name: get_stream
SELECT id, root, seq, head, epoch, state, recorder, started_at, last_at, agent, principal, handoff, attempt
FROM streams WHERE id = :id;

-- name: get_handoff
SELECT id, parent, root, seq, agent, state, attempt, run, last, offered_at FROM handoffs WHERE id = :id;

-- name: stream_receipts
SELECT payload, signature, cosignature, contents FROM stored WHERE stream = :stream AND seq > :after ORDER BY seq;

-- name: get_receipt
SELECT payload, signature, cosignature, contents FROM stored WHERE stream = :stream AND seq = :seq;

-- name: find_request
SELECT s.payload, s.signature, s.cosignature, s.contents
FROM requests AS r JOIN stored AS s ON s.stream = r.stream AND s.seq = r.seq
WHERE r.request = :request ORDER BY s.place;

-- name: has_request
SELECT 1 FROM requests WHERE request = :request AND part = :part;

-- name: get_open_call
SELECT id, run, key FROM open_calls WHERE id = :id;

-- name: is_revoked
SELECT 1 FROM revoked WHERE account = :account;

-- name: get_head
SELECT s.id, s.root, s.seq, s.head, s.epoch, s.state, s.recorder, s.started_at, s.last_at, s.agent, s.principal,
    s.handoff, s.attempt
FROM handoffs AS h JOIN streams AS s ON s.id = h.run WHERE h.id = :id;

-- name: list_open_calls
SELECT id, run, key FROM open_calls WHERE run = :run ORDER BY id;

-- name: list_touching
SELECT s.payload, s.signature, s.cosignature, s.contents
FROM touches AS t JOIN stored AS s ON s.stream = t.stream AND s.seq = t.seq
WHERE t.target = :target ORDER BY s.place;

-- name: runs_of_tree
SELECT id, root, seq, head, epoch, state, recorder, started_at, last_at, agent, principal, handoff, attempt
FROM streams WHERE root = :root AND agent IS NOT NULL ORDER BY id;

-- name: list_runs
SELECT id, root, seq, head, epoch, state, recorder, started_at, last_at, agent, principal, handoff, attempt
FROM streams
WHERE id < :before AND id > 'run_' AND agent IS NOT NULL
    AND state = coalesce(:state, state) AND agent = coalesce(:agent, agent)
ORDER BY id DESC LIMIT :limit;

-- name: runs_by_ending
SELECT id FROM streams WHERE agent IS NOT NULL AND substr(id, length(id) - length(:ending) + 1) = :ending
ORDER BY id DESC LIMIT :limit;

-- name: handoffs_by_ending
SELECT id FROM handoffs WHERE substr(id, length(id) - length(:ending) + 1) = :ending
ORDER BY offered_at DESC, id DESC LIMIT :limit;

-- name: runs_by_agent
SELECT id FROM streams WHERE agent = :agent ORDER BY id DESC LIMIT :limit;

-- name: handoffs_by_agent
SELECT id FROM handoffs WHERE agent = :agent ORDER BY offered_at DESC, id DESC LIMIT :limit;

-- name: all_ledger
SELECT genesis FROM ledger;

-- name: all_streams
SELECT id, root, seq, head, epoch, state, recorder, started_at, last_at, agent, principal, handoff, attempt
FROM streams ORDER BY id;

-- name: all_handoffs
SELECT id, parent, root, seq, agent, state, attempt, run, last, offered_at FROM handoffs ORDER BY id;

-- name: all_open_calls
SELECT id, run, key FROM open_calls ORDER BY id;

-- name: all_requests
SELECT request, part, fingerprint, stream, seq FROM requests ORDER BY request, part;

-- name: all_revoked
SELECT account FROM revoked ORDER BY account;

-- name: all_touches
SELECT target, stream, seq FROM touches ORDER BY target, stream, seq;
