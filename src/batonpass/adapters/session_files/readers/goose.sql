-- What is asked of Goose's database, which is never written.

-- name: sessions
SELECT sessions.id, sessions.working_dir, sessions.session_type, coalesce(min(messages.created_timestamp), 0),
       coalesce(max(messages.created_timestamp), 0), count(messages.id),
       coalesce(sum(length(messages.content_json)), 0)
FROM sessions LEFT JOIN messages ON messages.session_id = sessions.id GROUP BY sessions.id ORDER BY sessions.id;

-- name: messages
SELECT id, message_id, role, created_timestamp, content_json FROM messages WHERE session_id = ? ORDER BY id;

-- name: started
SELECT content_json FROM messages WHERE session_id = ? AND instr(content_json, 'subagent_session_id');

-- name: mention
SELECT 1 FROM messages WHERE session_id = ? AND instr(content_json, ?) LIMIT 1;
