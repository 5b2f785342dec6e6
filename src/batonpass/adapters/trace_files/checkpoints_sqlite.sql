-- What LangGraph's SQLite saver keeps.

-- name: threads
SELECT c.thread_id, count(*), sum(length(c.checkpoint)), max(c.checkpoint_id),
       (SELECT count(*) FROM writes AS w WHERE w.thread_id = c.thread_id)
FROM checkpoints AS c GROUP BY c.thread_id ORDER BY min(c.checkpoint_id);

-- name: places
SELECT checkpoint_ns, metadata, min(checkpoint_id) FROM checkpoints
WHERE thread_id = ? GROUP BY checkpoint_ns ORDER BY 3;

-- name: checkpoints
SELECT checkpoint_ns, checkpoint_id, type, checkpoint FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id;

-- name: writes
SELECT channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx;

-- name: task
SELECT channel, type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND task_id = ? ORDER BY idx;
