"""What was written last is in no index yet: it is found all the same, and nobody writes it twice."""

import contextlib
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import (
    DuplicateReceiptError,
    StaleHeadError,
    StoreAlteredError,
    VerificationError,
)
from batonpass.store.sqlite import append, tail
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import a_scribe, a_small_tree
from batonpass.testing.clock import FrozenClock
from batonpass.testing.conformance.support import an_entry, append_at_once, head_of
from batonpass.testing.conformance.touched_paths import a_change, a_changing_call
from tests.integration.full_ledger import record_everything
from tests.integration.sqlite.answers import everything_in
from tests.integration.sqlite.tails import settle


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """Return an empty ledger."""
    with contextlib.closing(SqliteStore(tmp_path / "ledger.db")) as opened:
        yield opened


def late(store: SqliteStore) -> list[int]:
    """Return how many receipts, contents, runs and handoffs are in no index."""
    with contextlib.closing(apsw.Connection(str(store._path))) as connection:
        counts = (
            "SELECT count(*) FROM receipts WHERE position > (SELECT receipt FROM settled)",
            "SELECT count(*) FROM contents WHERE number > (SELECT content FROM settled)",
            "SELECT count(*) FROM runs WHERE settled = 0",
            "SELECT count(*) FROM handoffs WHERE settled = 0",
        )
        return [connection.execute(count).get for count in counts]


def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody settle anything."""
    monkeypatch.setattr(append, "LONGEST", 1_000_000)


def test_every_question_has_the_same_answer_before_and_after(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked of a ledger of which nothing is in an index, it answers as one of which everything is."""
    never(monkeypatch)
    record_everything(a_scribe(store))
    none = late(store)
    before = everything_in(store)
    verify_ledger(store)
    settle(store)
    all_of_it = late(store)
    after = everything_in(store)
    verify_ledger(store)

    assert (True, [0, 0, 0, 0]) == (all(none), all_of_it)
    assert before == after


def test_half_of_it_is_found_as_well(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are put together from what is in the indexes and what came later, in one order."""
    never(monkeypatch)
    scribe = a_scribe(store)
    record_everything(scribe)
    settle(store)
    for _ in range(3):
        a_small_tree(scribe, calls=2)
    half = late(store)
    before = everything_in(store)
    settle(store)

    assert all(half)
    assert before == everything_in(store)


def test_a_tail_is_settled_before_it_gets_long(store: SqliteStore) -> None:
    """However much is written, a reader looks at no more than so many rows."""
    scribe = a_scribe(store)
    longest = 0
    for _ in range(20):
        a_small_tree(scribe, calls=3)
        receipts, contents, _, _ = late(store)
        longest = max(longest, receipts + contents)

    assert 0 < longest < tail.LONGEST


@pytest.mark.parametrize("settled", [False, True], ids=["in the tail", "in the indexes"])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["by this process", "by another"])
def test_an_id_is_taken_wherever_it_stands(store: SqliteStore, *, settled: bool, elsewhere: bool) -> None:
    """The id of a receipt or a content that is there is refused, whoever wrote it and whether or not it is settled."""
    scribe = a_scribe(store)
    lead, other = scribe.start(), scribe.start()
    first = a_changing_call(scribe, lead, [a_change("src/a.py")])
    with contextlib.closing(SqliteStore(store._path)) as second:
        writer = second if elsewhere else store
        # Whoever is refused knew the ledger as it was before.
        store.append([an_entry(scribe, other, head_of(store, other))])
        writer.append([first])
        if settled:
            settle(writer)
        entry = an_entry(scribe, other, head_of(store, other))
        same_id = replace(entry.signed, receipt=replace(entry.signed.receipt, id=first.signed.receipt.id))
        for clash in (replace(entry, signed=same_id), replace(entry, contents=first.contents)):
            with pytest.raises(DuplicateReceiptError):
                store.append([clash])
        store.append([entry])
    verify_ledger(store)


def test_a_refused_append_leaves_its_ids_free(store: SqliteStore) -> None:
    """What was rolled back is not there: it can be written later, by whoever gets it right."""
    scribe = a_scribe(store)
    lead = scribe.start()
    entry = an_entry(scribe, lead, head_of(store, lead))
    stale = an_entry(scribe, lead, head_of(store, lead))
    with pytest.raises(StaleHeadError):
        store.append([entry, stale])
    outcomes = append_at_once(store, [entry, stale])
    verify_ledger(store)

    assert {type(None), StaleHeadError} == {type(error) for error in outcomes}


def test_what_is_older_than_what_is_settled_goes_into_the_indexes_at_once(store: SqliteStore) -> None:
    """After a clock was put back, or an import, runs and handoffs are in every list though the tail begins later."""
    scribe = a_scribe(store)
    a_small_tree(scribe)
    settle(store)
    earlier = FrozenClock(datetime.now(UTC) - timedelta(days=1))
    a_small_tree(a_scribe(store, clock=earlier, identity=scribe.identity, root=scribe.root))
    runs, handoffs = late(store)[2:]
    before = everything_in(store)
    verify_ledger(store)
    settle(store)

    assert (0, 0) == (runs, handoffs)
    assert before == everything_in(store)


def test_a_ledger_that_does_not_say_what_is_settled_is_not_written_to(store: SqliteStore) -> None:
    """Nobody can tell any more which ids are taken; the verifier says so too."""
    scribe = a_scribe(store)
    scribe.start()
    with contextlib.closing(apsw.Connection(str(store._path))) as connection:
        connection.execute("DELETE FROM settled")
    with pytest.raises(StoreAlteredError, match="nothing was recorded"):
        scribe.start()
    with pytest.raises(VerificationError):
        verify_ledger(store)


@pytest.mark.parametrize(
    "act",
    [
        "DELETE FROM receipt_names WHERE name = (SELECT id FROM receipts WHERE position = 2)",
        "DELETE FROM receipt_names WHERE name LIKE 'call_%'",
        "INSERT INTO receipt_names SELECT name, position + 1 FROM receipt_names WHERE name LIKE '-%' LIMIT 1",
        "UPDATE receipt_places SET position = 1 WHERE position = 2",
        "DELETE FROM receipt_places WHERE position = 2",
        "DELETE FROM content_ids WHERE number = 1",
        "UPDATE content_ids SET number = 1 WHERE number = 2",
        "UPDATE runs SET settled = 0",
        "UPDATE handoffs SET settled = 0",
        "UPDATE settled SET receipt = receipt - 1",
        "UPDATE settled SET receipt = receipt + 1",
        "UPDATE settled SET content = 0",
        "UPDATE settled SET run = run || 'z'",
        "UPDATE settled SET handoff = ''",
    ],
)
def test_an_index_of_our_own_that_leaves_something_out_is_found(store: SqliteStore, act: str) -> None:
    """A row that nobody finds is as good as gone, so whatever somebody does to these indexes is a finding."""
    a_small_tree(a_scribe(store), calls=2)
    settle(store)
    with contextlib.closing(apsw.Connection(str(store._path))) as connection:
        connection.execute(act)
        changes = connection.changes()
    with pytest.raises(VerificationError):
        verify_ledger(store)

    assert changes > 0


def test_what_a_killed_process_left_in_the_tail_is_found_by_the_next(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the files as they are now, which nobody closed, is a whole ledger to whoever opens it."""
    never(monkeypatch)
    scribe = a_scribe(store)
    a_small_tree(scribe)
    for ending in ("", "-wal"):
        shutil.copyfile(f"{store._path}{ending}", tmp_path / f"copy.db{ending}")
    with contextlib.closing(SqliteStore(tmp_path / "copy.db")) as copy:
        verify_ledger(copy)
        before = everything_in(copy)
        again = a_scribe(copy, identity=scribe.identity, root=scribe.root)
        monkeypatch.setattr(append, "LONGEST", 1)
        a_small_tree(again)
        verify_ledger(copy)
        left = late(copy)

    assert (everything_in(store), [0, 0, 0, 0]) == (before, left)


def test_a_commit_writes_few_pages(store: SqliteStore) -> None:
    """An index more, written at each commit, is what this is against: it would be a page more for each."""
    scribe = a_scribe(store)
    lead = scribe.start()
    assert store._writer is not None
    pages: list[int] = []

    def count(_connection: apsw.Connection, _name: str, in_log: int) -> int:
        pages.append(in_log)
        return apsw.SQLITE_OK

    store._writer._connection.set_wal_hook(count)
    for _ in range(100):
        scribe.recording.close(scribe.delegate(lead))

    # Settling included. With all indexes written at each commit it was 13.
    assert 300 == len(pages)
    assert pages[-1] / len(pages) < 7
