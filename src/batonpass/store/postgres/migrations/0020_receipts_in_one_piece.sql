-- An offer is a little larger than the quarter of a page beyond which PostgreSQL cuts values out of a row: it tried in vain to
-- compress the payload, which is digests and keys for the most part, and then wrote it to a table of its own with an index of
-- its own, for every offer, and read it from there with every claim. Up to half a page stays in its row.
ALTER TABLE receipts SET (toast_tuple_target = 4080);
