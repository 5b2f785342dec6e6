-- What LangGraph's PostgreSQL saver keeps: each value of a channel once, and which of them a checkpoint has.

-- name: threads
SELECT c.thread_id, count(*), sum(octet_length(c.checkpoint::text)), max(c.checkpoint_id),
       (SELECT count(*) FROM checkpoint_writes AS w WHERE w.thread_id = c.thread_id)
FROM checkpoints AS c GROUP BY c.thread_id ORDER BY min(c.checkpoint_id);

-- name: places
SELECT DISTINCT ON (checkpoint_ns) checkpoint_ns, metadata::text, checkpoint_id FROM checkpoints
WHERE thread_id = %s ORDER BY checkpoint_ns, checkpoint_id;

-- name: checkpoints
SELECT checkpoint_ns, checkpoint_id, 'json', convert_to(checkpoint::text, 'UTF8') FROM checkpoints
WHERE thread_id = %s ORDER BY checkpoint_id;

-- name: writes
SELECT channel, type, blob FROM checkpoint_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s ORDER BY task_id, idx;

-- name: task
SELECT channel, type, blob FROM checkpoint_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND task_id = %s ORDER BY idx;

-- name: value
SELECT type, blob FROM checkpoint_blobs
WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND version = %s;
