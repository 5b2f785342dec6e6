-- The bytes of each checkpoint of a thread, in order, with the writes that were kept for it.
SELECT
    length(checkpoint) + length(metadata) + coalesce((
        SELECT sum(length(value))
        FROM writes
        WHERE writes.thread_id = checkpoints.thread_id
            AND writes.checkpoint_ns = checkpoints.checkpoint_ns
            AND writes.checkpoint_id = checkpoints.checkpoint_id
    ), 0)
FROM checkpoints
WHERE thread_id = :thread
ORDER BY checkpoint_id
