-- What a list shows and what a name or the end of an id means is found by index, however much else there is.

CREATE INDEX runs_by_state ON runs (state, id);
CREATE INDEX runs_by_agent ON runs (agent, id);
CREATE INDEX runs_roots ON runs (id) WHERE parent IS NULL;
CREATE INDEX runs_roots_of_session ON runs (session, id) WHERE parent IS NULL AND session IS NOT NULL;

DROP INDEX handoffs_held;
CREATE INDEX handoffs_by_state ON handoffs (state, id);
CREATE INDEX handoffs_by_agent ON handoffs (agent, id);

-- People type the last characters of an id. Four of them leave a few candidates among a million.
CREATE INDEX runs_by_ending ON runs (substr(id, -4));
CREATE INDEX handoffs_by_ending ON handoffs (substr(id, -4));
CREATE INDEX receipts_by_ending ON receipts (substr(id, -4));

-- The last four characters of the call that a receipt is about: `"call":"` and an id of 31 characters. Not json_extract, which
-- would fail on bytes that somebody edited, and keep the verifier from naming them. Whoever asks reads the receipt and sees
-- whether it is about that call.
CREATE INDEX receipts_by_call ON receipts (
    substr(CAST(payload AS TEXT), instr(CAST(payload AS TEXT), '"call":"call_') + 35, 4)
) WHERE kind IN ('tool.requested', 'tool.denied', 'tool.held');
