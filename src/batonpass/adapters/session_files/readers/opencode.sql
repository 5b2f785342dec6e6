-- What is asked of OpenCode's database, which is never written.

-- name: sessions
SELECT session.id, session.parent_id, session.directory, session.version, session.time_created,
       session.time_updated, count(part.id), coalesce(sum(length(part.data)), 0)
FROM session LEFT JOIN part ON part.session_id = session.id GROUP BY session.id ORDER BY session.id;

-- name: parts
SELECT part.id, part.time_created, part.data, message.data
FROM part JOIN message ON message.id = part.message_id
WHERE part.session_id = ? ORDER BY part.time_created, part.id;

-- name: mention
SELECT 1 FROM part WHERE session_id = ? AND instr(data, ?) LIMIT 1;
