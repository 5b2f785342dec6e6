-- What waits for somebody is found without a look at what does not: a hold may have a time limit.
CREATE INDEX handoffs_held ON handoffs (id) WHERE state = 'held';
