-- What closed handoffs came to, and their sums by day. Made from receipts by position, off the way of appends; they can
-- be made anew at any time, so the verifier leaves them out.
CREATE TABLE rolled (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    position INTEGER NOT NULL
);
INSERT INTO rolled (one, version, position) VALUES (1, 0, 0);

CREATE TABLE rolled_handoffs (
    handoff TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    task_kind TEXT NOT NULL,
    config TEXT NOT NULL,
    closed_at INTEGER NOT NULL,
    contents TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX rolled_handoffs_by_agent ON rolled_handoffs (agent, closed_at, handoff);
CREATE INDEX rolled_handoffs_by_kind ON rolled_handoffs (task_kind, closed_at, handoff);
CREATE INDEX rolled_handoffs_by_time ON rolled_handoffs (closed_at, handoff);

CREATE TABLE rolled_days (
    agent TEXT NOT NULL,
    task_kind TEXT NOT NULL,
    config TEXT NOT NULL,
    day TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (agent, task_kind, config, day)
);
CREATE INDEX rolled_days_by_day ON rolled_days (day);
