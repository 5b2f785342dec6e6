"""Somebody changes the database itself: triggers, rules, constraints and functions decide what is kept there."""

from typing import Final

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import SchemaAlteredError
from batonpass.store.postgres.schema import EXPECTED, read_parts
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe
from batonpass.testing.builders import a_small_tree
from tests.integration.postgres.support import database_of
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres

QUIET: Final = (
    "CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;"
    "CREATE TRIGGER quiet BEFORE INSERT ON contents FOR EACH ROW EXECUTE FUNCTION quiet()"
)
IDLE: Final = (
    "CREATE OR REPLACE FUNCTION batonpass_sequence(most bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 0::bigint $$"
)
ALTERED: Final = {
    "a trigger": (QUIET, "quiet"),
    "a rule": ("CREATE RULE quiet AS ON DELETE TO receipts DO INSTEAD NOTHING", "quiet"),
    "rows that are hidden": ("ALTER TABLE receipts ENABLE ROW LEVEL SECURITY", "receipts"),
    "an index that is gone": ("DROP INDEX runs_by_parent", "runs_by_parent"),
    "a constraint that is gone": ("ALTER TABLE charged DROP CONSTRAINT charged_unit_check", "charged_unit_check"),
    "a key that is gone": ("ALTER TABLE charged DROP CONSTRAINT charged_pkey", "charged_pkey"),
    "a column that may be empty": ("ALTER TABLE receipts ALTER COLUMN payload DROP NOT NULL", "payload"),
    "another function": (IDLE, "batonpass_sequence"),
}


def test_the_list_of_parts_is_that_of_a_new_database(store: PostgresStore) -> None:
    """Whoever adds a migration writes the list anew: it is what this test has on its left."""
    found = store._connections.repeat(read_parts)

    assert sorted(found) == sorted(EXPECTED)


@pytest.mark.parametrize("altered", ALTERED)
def test_a_schema_that_was_changed_is_found(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe, altered: str
) -> None:
    """Verification names the part, before it believes anything that it reads."""
    a_small_tree(scribe)
    store.sequence()
    verify_ledger(store)
    statements, name = ALTERED[altered]
    postgres.execute(statements, database=database_of(postgres_url))
    with pytest.raises(SchemaAlteredError) as found:
        verify_ledger(store)

    assert ("schema", name) == (found.value.stream, found.value.field)


def test_tables_of_others_beside_ours_are_their_own_business(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe
) -> None:
    """A database may hold more than a ledger."""
    a_small_tree(scribe)
    store.sequence()
    postgres.execute("CREATE TABLE theirs (a bigint PRIMARY KEY)", database=database_of(postgres_url))

    assert 1 == verify_ledger(store).relays
