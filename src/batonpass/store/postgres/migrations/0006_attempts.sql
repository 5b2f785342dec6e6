-- The attempts at one handoff of a run with ten thousand are found without reading the others.
DROP INDEX runs_by_parent;
CREATE INDEX runs_by_parent ON runs (parent, handoff, attempt) WHERE parent IS NOT NULL;
