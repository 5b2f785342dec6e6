"""A ledger of the first schema becomes one of the present, and says of its runs what their receipts always said."""

from pathlib import Path

import apsw
import pytest

from batonpass.audit.verify import verify_ledger
from batonpass.errors import StoreAlteredError
from batonpass.model.ids import SessionId
from batonpass.model.remark import Said
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import ANA, a_scribe, a_small_tree
from batonpass.testing.conformance.deciding import decided, held
from batonpass.testing.conformance.remarks import endorsed, remarks

BEFORE_APPROVERS = """
    DROP TABLE held_calls;
    DROP TABLE decided_calls;
    DROP INDEX keys_of_approvers;
    ALTER TABLE keys DROP COLUMN principal;
    DELETE FROM schema_migrations WHERE version = 4;
"""
SESSION = SessionId("session_" + "0" * 26)
BACK = """
    DROP TABLE cached;
    DROP INDEX runs_by_session;
    ALTER TABLE runs DROP COLUMN session;
    DELETE FROM schema_migrations WHERE version = 2;
"""


def test_sessions_are_found_in_a_ledger_that_is_older_than_them(tmp_path: Path) -> None:
    """Opening it fills the column in from the signed bytes, and the verifier agrees."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    scribe = a_scribe(store)
    a_small_tree(scribe)
    root = scribe.recording.start("again", agent="lead", by=ANA, session=SESSION).run
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute(BACK)
    connection.close()
    opened = SqliteStore(path)
    with opened.view() as view:
        found = list(view.find_runs(session=SESSION))
    receipts = verify_ledger(opened).receipts
    opened.close()

    assert ([root], True) == (found, receipts > 0)


def test_held_calls_are_found_in_a_ledger_that_is_older_than_approvers(tmp_path: Path) -> None:
    """A root's call that waited then waits now, its keys are as they were, and somebody can decide about it."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    scribe = a_scribe(store)
    lead = scribe.start()
    waiting = held(scribe, lead)
    held(scribe, scribe.delegate(lead))
    with store.view() as view:
        keys = list(view.find_keys())
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute(BEFORE_APPROVERS)
    connection.close()
    opened = SqliteStore(path)
    decided(a_scribe(opened, identity=scribe.identity, root=scribe.root), waiting)
    with opened.view() as view:
        found = (list(view.find_held_calls()), list(view.find_keys()))
    verify_ledger(opened)
    opened.close()

    assert ([waiting], keys) == found


def test_a_trigger_in_an_older_ledger_does_not_run_while_it_is_migrated(tmp_path: Path) -> None:
    """What is missing is no reason to refuse it, and what nobody of us ever made is."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    a_small_tree(a_scribe(store))
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute(BACK)
    connection.execute("CREATE TRIGGER quiet AFTER UPDATE ON runs BEGIN DELETE FROM receipts; END")
    connection.close()
    with pytest.raises(StoreAlteredError, match="trigger quiet is not ours"):
        SqliteStore(path)


def test_endorsements_are_found_in_a_ledger_that_is_older_than_remarks(tmp_path: Path) -> None:
    """What people answered for before is found by its name, as what they answer for now."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    scribe = a_scribe(store)
    endorsed(scribe)
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE remarks; DELETE FROM schema_migrations WHERE version = 6")
    connection.close()
    opened = SqliteStore(path)

    assert 1 == len(remarks(opened, Said.ENDORSED))
    verify_ledger(opened)
    opened.close()
