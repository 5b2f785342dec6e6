-- What closed handoffs came to, and their sums by day. Made from receipts by position, off the way of appends; they can
-- be made anew at any time, so the verifier leaves them out.
CREATE TABLE rolled (
    one integer PRIMARY KEY CHECK (one = 1),
    version integer NOT NULL,
    position bigint NOT NULL
);
INSERT INTO rolled (one, version, position) VALUES (1, 0, 0);

CREATE TABLE rolled_handoffs (
    handoff text PRIMARY KEY,
    agent text NOT NULL,
    task_kind text NOT NULL,
    config text NOT NULL,
    closed_at bigint NOT NULL,
    contents text NOT NULL,
    body bytea NOT NULL
);
CREATE INDEX rolled_handoffs_by_agent ON rolled_handoffs (agent, closed_at, handoff);
CREATE INDEX rolled_handoffs_by_kind ON rolled_handoffs (task_kind, closed_at, handoff);
CREATE INDEX rolled_handoffs_by_time ON rolled_handoffs (closed_at, handoff);

CREATE TABLE rolled_days (
    agent text NOT NULL,
    task_kind text NOT NULL,
    config text NOT NULL,
    day text NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (agent, task_kind, config, day)
);
CREATE INDEX rolled_days_by_day ON rolled_days (day);
