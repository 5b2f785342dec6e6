"""The beginning of a file: made once, whoever comes first, and brought up to date by whoever opens it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import NotALedgerError
from batonpass.store.port import ReceiptQuery
from batonpass.store.sqlite.connection import open_writer
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing import FrozenClock
from batonpass.testing.builders import a_scribe
from batonpass.testing.clock import NOON
from tests.children import run_at_once

RECORD = """
from pathlib import Path
from batonpass.relay import Relay, recording_of
from batonpass.testing.plain_acts import plainly
with Relay.open(f"sqlite:///{sys.argv[1]}", home=Path(sys.argv[2])) as relay:
    for number in range(5):
        working = recording_of(relay).start("begun", agent="lead", by="user:ana")
        plainly(recording_of(relay)).close(working)
    print(json.dumps(relay.admin.identity()[1]))
"""


@pytest.mark.slow
def test_processes_that_make_one_ledger_at_once_make_one(tmp_path: Path) -> None:
    """Four processes open a file that is not there yet and record: one founds it, all join, nothing is lost."""
    home = tmp_path / ".batonpass"
    relays = run_at_once(RECORD, str(home / "ledger.db"), str(home), processes=4)
    store = SqliteStore(home / "ledger.db")
    evidence = verify_ledger(store)
    store.close()

    assert 1 == len(set(relays)) == evidence.relays
    assert (41, 20) == (evidence.receipts, evidence.runs)


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    """A file that was made and never filled, by a crash or by mktemp, is taken."""
    (tmp_path / "ledger.db").touch()
    store = SqliteStore(tmp_path / "ledger.db")

    assert not store.founded()
    a_scribe(store).start()
    assert 2 == verify_ledger(store).receipts
    store.close()


def test_a_file_without_tables_becomes_a_ledger(tmp_path: Path) -> None:
    """Between the making of a file and its tables somebody crashed, or is about to go on: whoever comes goes on."""
    open_writer(tmp_path / "ledger.db").close()
    store = SqliteStore(tmp_path / "ledger.db")
    a_scribe(store).start()

    assert 2 == verify_ledger(store).receipts
    store.close()


def test_a_ledger_that_nobody_founded_says_so(tmp_path: Path) -> None:
    """A file with our tables and no ledger in them is not a ledger yet."""
    store = SqliteStore(tmp_path / "ledger.db")

    with pytest.raises(NotALedgerError, match="nothing has been recorded"):
        verify_ledger(store)
    store.close()


def test_steps_are_listed_with_their_time(tmp_path: Path) -> None:
    """A store says which steps its schema has taken, and when; applying them again changes nothing."""
    store = SqliteStore(tmp_path / "ledger.db")
    before = store.migrations()
    store.migrate()

    assert ["ledger", "sessions"] == [step.name for step in before][:2]
    assert all(step.applied_at is not None for step in before)
    assert all(abs(datetime.now(UTC) - step.applied_at) < timedelta(minutes=1) for step in before if step.applied_at)
    assert before == store.migrations()
    store.close()


def test_a_ledger_is_marked_as_ours(tmp_path: Path) -> None:
    """Other tools can tell a ledger from any other database, and see that it is written with a log."""
    SqliteStore(tmp_path / "ledger.db").close()
    connection = apsw.Connection(str(tmp_path / "ledger.db"))

    assert (0x4241544E, "wal") == (connection.pragma("application_id"), connection.pragma("journal_mode"))
    connection.close()


def test_receipts_are_found_by_when_they_were_made(tmp_path: Path) -> None:
    """Asking for what came since a moment leaves out what came before it."""
    store, clock = SqliteStore(tmp_path / "ledger.db"), FrozenClock()
    scribe = a_scribe(store, clock=clock)
    scribe.start()
    later = clock.tick(timedelta(hours=1))
    scribe.start()
    with store.view() as view:
        found = [
            len(list(view.find_receipts(ReceiptQuery(since=since))))
            for since in (NOON, NOON + timedelta(seconds=1), later, later + timedelta(seconds=1))
        ]
    store.close()

    assert [3, 1, 1, 0] == found
