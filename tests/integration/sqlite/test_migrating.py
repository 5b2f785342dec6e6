"""A ledger of the first schema becomes one of the present, and says of its runs what their receipts always said."""

import contextlib
from pathlib import Path

import apsw
import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import EditedError, StoreAlteredError
from batonpass.model.base.ids import SessionId
from batonpass.model.baton.items import Decision
from batonpass.model.ledger.remark import RemarkKind
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import ANA, a_scribe, a_small_tree
from batonpass.testing.conformance.decided_calls import decided, held
from batonpass.testing.conformance.remarks import endorsed, remarks
from tests.integration.full_ledger import record_everything
from tests.integration.sqlite.answers import everything_in
from tests.integration.sqlite.earlier import make_earlier

# What earlier versions could not record has no room in their tables: approvers, charges, what is said of files.
FULL_FROM = 6
SESSION = SessionId("session_" + "0" * 26)


def test_sessions_are_found_in_a_ledger_that_is_older_than_them(tmp_path: Path) -> None:
    """Opening it fills the column in from the signed bytes, and the verifier agrees."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    scribe = a_scribe(store)
    a_small_tree(scribe)
    root = scribe.recording.start("again", agent="lead", by=ANA, session=SESSION).run
    store.close()
    make_earlier(path, 1)
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
    make_earlier(path, 3)
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
    make_earlier(path, 1)
    connection = apsw.Connection(str(path))
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
    make_earlier(path, 5)
    opened = SqliteStore(path)

    assert 1 == len(remarks(opened, RemarkKind.ENDORSED))
    verify_ledger(opened)
    opened.close()


def test_refuted_results_are_found_in_a_ledger_that_is_older_than_fates(tmp_path: Path) -> None:
    """What was refuted before travels as refuted from now on."""
    path = tmp_path / ".batonpass" / "ledger.db"
    with Relay.open(path) as relay:
        lead = relay.start("Convert", by=ANA)
        found = lead.hand_off("finder", "Find the rate")
        with found as finder:
            finder.report("3 %")
        found.refute("no", by=ANA)
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("DELETE FROM remarks WHERE said = 'refuted'")  # which a table of then does not take
    make_earlier(path, 7)
    with Relay.open(path) as relay:
        assert 1 == len(remarks(relay.store, RemarkKind.REFUTED))
        relay.verify()
        writer = relay.resume(lead.id).hand_off("writer", "Write it up")
        assert ["refuted"] == [str(known.fate) for known in writer.baton().fates.values()]


def test_what_was_taken_out_is_found_in_a_ledger_that_is_older_than_its_remarks(tmp_path: Path) -> None:
    """What a person took out before does not come along from now on."""
    path = tmp_path / ".batonpass" / "ledger.db"
    with Relay.open(path) as relay:
        with relay.start("One", by=ANA, series="nightly") as lead:
            lead.record(Decision("include returns"))
        relay.prune_session("nightly", ["include"], by=ANA, reason="done")
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("DELETE FROM remarks WHERE said = 'pruned'")  # which a table of then does not take
    make_earlier(path, 10)
    with Relay.open(path) as relay:
        assert [lead.id] == [one.name for one in remarks(relay.store, RemarkKind.PRUNED)]
        relay.verify()
        assert () == relay.start("Two", by=ANA, series="nightly").session.kept


def test_rulings_are_found_in_a_ledger_that_is_older_than_their_remarks(tmp_path: Path) -> None:
    """Who ruled on what before is known from now on."""
    path = tmp_path / ".batonpass" / "ledger.db"
    with Relay.open(path) as relay:
        handoff = relay.start("One", by=ANA).hand_off("mailer", "Tell them", hold=True)
        handoff.deny(by=ANA, reason="not today")
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("DELETE FROM remarks WHERE said = 'ruled'")  # which a table of then does not take
    make_earlier(path, 15)
    with Relay.open(path) as relay:
        assert [ANA] == [one.name for one in remarks(relay.store, RemarkKind.RULED)]
        relay.start("Two", by=ANA).hand_off("mailer", "Tell them", hold=True).approve(by=ANA)
        assert 2 == len(remarks(relay.store, RemarkKind.RULED))
        relay.verify()


def test_lists_are_found_in_a_ledger_that_is_older_than_their_indexes(tmp_path: Path) -> None:
    """Also where somebody had edited signed bytes before: the verifier names them then, and opening does not fail."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    scribe = a_scribe(store)
    lead = a_small_tree(scribe)
    store.close()
    make_earlier(path, 6)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE receipts SET payload = x'ff00' WHERE kind = 'tool.requested' AND seq = 2")
    connection.close()
    opened = SqliteStore(path)
    with opened.view() as view:
        found = [run.id for run in view.find_runs(roots=True, states=[RunState.COMPLETED])]
    with pytest.raises(EditedError, match="cannot be read"):
        verify_ledger(opened)
    opened.close()

    assert [lead.run.id] == found


@pytest.mark.parametrize("version", [*range(1, 8), 14])
def test_an_earlier_ledger_with_everything_in_it_says_what_it_said(tmp_path: Path, version: int) -> None:
    """Opening it applies the steps that are missing; every way to ask gives the same answer, and it goes on."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    scribe = a_scribe(store)
    if version >= FULL_FROM:
        record_everything(scribe)
    else:
        a_small_tree(scribe)
    before = everything_in(store)
    store.close()
    make_earlier(path, version)
    opened = SqliteStore(path)
    after = everything_in(opened)
    verify_ledger(opened)
    a_small_tree(a_scribe(opened, identity=scribe.identity, root=scribe.root))
    verify_ledger(opened)
    opened.close()

    assert before == after
