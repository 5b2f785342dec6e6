"""A ledger of the first schema becomes one of the present, and says of its runs what their receipts always said."""

from pathlib import Path

import apsw

from batonpass.audit.verify import verify_ledger
from batonpass.model.ids import SessionId
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import ANA, a_scribe, a_small_tree

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
