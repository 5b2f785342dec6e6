-- What is read from files whose sessions are mixed, put in order on disk for the time of an import.

-- name: create_item
CREATE TABLE item (
    seq INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    at REAL NOT NULL,
    tells INTEGER NOT NULL,
    body BLOB NOT NULL
);

-- name: index_item
CREATE UNIQUE INDEX item_by_name ON item (session, name);

-- name: create_named
CREATE TABLE named (session TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;

-- name: add
INSERT OR IGNORE INTO item (session, name, at, tells, body) VALUES (?, ?, ?, ?, ?);

-- name: same
SELECT 1 FROM item WHERE session = ? AND name = ? AND body = ?;

-- name: call
INSERT OR IGNORE INTO named (session, name) VALUES (?, ?);

-- name: sessions
SELECT coalesce(named.name, item.session) AS called, count(*), sum(length(item.body)), min(item.at), max(item.at)
FROM item LEFT JOIN named ON named.session = item.session
GROUP BY called HAVING max(item.tells) ORDER BY min(item.seq);

-- name: index_named
CREATE INDEX named_by_name ON named (name);

-- name: items
SELECT session, body FROM item
WHERE session IN (SELECT session FROM named WHERE name = ?1)
   OR (session = ?1 AND NOT EXISTS (SELECT 1 FROM named WHERE session = ?1))
ORDER BY at, seq;
