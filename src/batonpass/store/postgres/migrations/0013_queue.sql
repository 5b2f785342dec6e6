-- The queue of workers. What waits is taken in the order in which it was written here, whatever the clock of its producer
-- said.
ALTER TABLE leases ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY;
DROP INDEX leases_free;
CREATE INDEX leases_free ON leases (agent, number) WHERE holder IS NULL;

-- Handoffs that nobody may claim for a while, because an attempt has just failed.
CREATE TABLE postponed (
    handoff text COLLATE "C" NOT NULL PRIMARY KEY,
    until bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Whoever works with the leases works with these, too.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role
        FROM pg_class CROSS JOIN aclexplode(relacl)
        WHERE relnamespace = current_schema()::regnamespace AND relname = 'leases' AND privilege_type = 'DELETE'
    LOOP
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON postponed TO ' || granted.role;
    END LOOP;
END $$;
