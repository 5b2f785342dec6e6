-- The queue of workers. What waits is taken in the order in which it was written here, whatever the clock of its producer
-- said. A lease ends by the clock that counts since the machine was started, which nobody sets: a clock that jumps an hour
-- neither ends leases nor prolongs them. `lasts` tells a lease from before a restart: it would begin in the future. `ends_at`
-- is the end by the calendar, for people. Rows cannot get an order by ALTER TABLE, so the table is made anew; a lease that is
-- held now ends at once.
DROP INDEX leases_free;
DROP INDEX leases_held;
DROP VIEW handoffs_seen;
ALTER TABLE leases RENAME TO leases_before;

CREATE TABLE leases (
    number INTEGER PRIMARY KEY,
    handoff TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    holder TEXT,
    token INTEGER,
    until INTEGER,
    lasts INTEGER,
    ends_at INTEGER
);

INSERT INTO leases (handoff, agent, holder, token, until, lasts, ends_at)
SELECT
    handoff, agent, holder, token,
    CASE WHEN holder IS NOT NULL THEN 0 END, CASE WHEN holder IS NOT NULL THEN 0 END, until
FROM leases_before ORDER BY handoff;

DROP TABLE leases_before;

CREATE INDEX leases_free ON leases (agent, number) WHERE holder IS NULL;
CREATE INDEX leases_held ON leases (until) WHERE until IS NOT NULL;

CREATE VIEW handoffs_seen AS
SELECT
    id, root, parent, agent, carrier,
    CASE
        WHEN state = 'ready' AND EXISTS (SELECT 1 FROM leases WHERE handoff = handoffs.id AND holder IS NOT NULL)
            THEN 'claimed'
        ELSE state
    END AS state,
    attempt, run, initiated, seq, scope, key, deadline, settled
FROM handoffs;

-- Handoffs that nobody may claim for a while, because an attempt has just failed. By the same clock as leases.
CREATE TABLE postponed (
    handoff TEXT NOT NULL PRIMARY KEY,
    until INTEGER NOT NULL,
    lasts INTEGER NOT NULL
) WITHOUT ROWID;
