-- What somebody with a shell and your uid can do to a ledger. The demonstration does it to a copy.

-- name: delete_tree
DELETE FROM touches WHERE receipt IN (
    SELECT receipts.position FROM receipts JOIN streams ON streams.number = receipts.stream WHERE streams.root = :root
);
DELETE FROM contents WHERE receipt IN (
    SELECT receipts.position FROM receipts JOIN streams ON streams.number = receipts.stream WHERE streams.root = :root
);
DELETE FROM receipts WHERE stream IN (SELECT number FROM streams WHERE root = :root);
DELETE FROM streams WHERE root = :root;
DELETE FROM runs WHERE root = :root;
DELETE FROM leases WHERE handoff IN (SELECT id FROM handoffs WHERE root = :root);
DELETE FROM handoffs WHERE root = :root;
DELETE FROM statements WHERE root = :root;
-- The seal that lies beside the ledger goes too. The one that was kept elsewhere does not.
DELETE FROM seals;
