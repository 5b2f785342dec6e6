-- What a column may hold, said by comparisons. For a list of more than two values SQLite makes a table of its own, with a
-- cache of pages, each time that a statement checks it: half the time of the statement. Rows stay as they are, and so does
-- what they may hold, so only the text is changed. SQLite cannot do that by ALTER TABLE, and describes this way instead.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = 'CREATE TABLE contents (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    receipt INTEGER NOT NULL,
    place TEXT NOT NULL CHECK (place = ''row'' OR place = ''file'' OR place = ''erased''),
    salt BLOB,
    body BLOB
)' WHERE type = 'table' AND name = 'contents';

UPDATE sqlite_schema SET sql = 'CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    parent TEXT,
    handoff TEXT,
    attempt INTEGER NOT NULL,
    agent TEXT NOT NULL,
    principal TEXT NOT NULL,
    state TEXT NOT NULL CHECK (
        state = ''open'' OR state = ''completed'' OR state = ''failed'' OR state = ''cancelled'' OR state = ''lapsed''
        OR state = ''suspended'' OR state = ''expired''
    ),
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    series TEXT,
    session TEXT,
    settled INTEGER NOT NULL DEFAULT 1 CHECK (settled IN (0, 1))
) WITHOUT ROWID' WHERE type = 'table' AND name = 'runs';

UPDATE sqlite_schema SET sql = 'CREATE TABLE handoffs (
    id TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    parent TEXT NOT NULL,
    agent TEXT NOT NULL,
    carrier TEXT NOT NULL CHECK (carrier IN (''caller'', ''worker'')),
    state TEXT NOT NULL CHECK (
        state = ''held'' OR state = ''offered'' OR state = ''ready'' OR state = ''claimed'' OR state = ''asked''
        OR state = ''running'' OR state = ''completed'' OR state = ''failed'' OR state = ''declined'' OR state = ''denied''
        OR state = ''cancelled'' OR state = ''expired'' OR state = ''verified'' OR state = ''refuted''
    ),
    attempt INTEGER NOT NULL,
    run TEXT,
    initiated TEXT NOT NULL,
    seq INTEGER NOT NULL,
    scope TEXT,
    key TEXT,
    deadline INTEGER,
    settled INTEGER NOT NULL DEFAULT 1 CHECK (settled IN (0, 1))
) WITHOUT ROWID' WHERE type = 'table' AND name = 'handoffs';

PRAGMA writable_schema = RESET;

-- Others notice a changed schema by its number, which only a statement that makes or drops something changes.
CREATE TABLE compared (only INTEGER PRIMARY KEY);
DROP TABLE compared;
