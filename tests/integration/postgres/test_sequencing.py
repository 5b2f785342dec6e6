"""Positions: without a gap, in the order of every stream, whatever commits when."""

import pytest

from batonpass.model.base.ids import ReceiptId
from batonpass.store.port import ReceiptQuery
from batonpass.store.postgres.append import write
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe, a_small_tree
from batonpass.testing.conformance.support import all_receipts, an_entry, head_of
from tests.integration.postgres.support import a_transaction, database_of, entries_after
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres


def sequenced(store: PostgresStore) -> list[ReceiptId]:
    """Return the ids of what has a position, by position, after a look at the positions themselves."""
    found = all_receipts(store, ReceiptQuery(first=1))
    assert list(range(1, len(found) + 1)) == [receipt.position for receipt in found]
    return [receipt.id for receipt in found]


def test_a_late_commit_gets_a_later_position(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A transaction that is open for long holds up no sequencing; its receipts come after those that overtook them."""
    slow, quick = scribe.start(), scribe.start()
    late = entries_after(scribe, slow, head_of(store, slow), 2)
    early = entries_after(scribe, quick, head_of(store, quick), 2)
    before = 3  # the relay's enrolment and two runs
    with a_transaction(postgres, postgres_url) as other:
        write(other, late)
        store.append([early[0]])
        assert before + 1 == store.sequence()
        store.append([early[1]])
        assert 1 == store.sequence()
        assert before + 2 == len(sequenced(store))
    after = entries_after(scribe, slow, head_of(store, slow), 1)
    store.append(after)
    assert 3 == store.sequence()

    expected = [entry.signed.receipt.id for entry in (*early, *late, *after)]
    assert expected == sequenced(store)[before:]


def test_what_has_no_position_yet_shows_without_one(store: PostgresStore, scribe: Scribe) -> None:
    """Readers of a stream see a receipt at once; readers by position see it when it has one."""
    lead = scribe.start()
    store.sequence()
    entry = an_entry(scribe, lead, head_of(store, lead))
    store.append([entry])

    with store.view() as view:
        assert None is view.get_receipt(entry.signed.receipt.id).position
        assert 2 == view.last_position()
    assert [1, 2] == [found.position for found in all_receipts(store, ReceiptQuery(last=9))]
    assert [entry.signed.receipt.id] == [found.id for found in all_receipts(store, ReceiptQuery(unsequenced=True))]
    assert 3 == len(all_receipts(store))


def test_a_second_sequencer_goes_away(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """While one sequencer is at work another one does nothing, and what the first did is there afterwards."""
    a_small_tree(scribe)
    count = len(all_receipts(store))
    with a_transaction(postgres, postgres_url) as other:
        assert (count,) == other.execute("SELECT batonpass_sequence(10000)").fetchone()
        assert 0 == store.sequence()
    assert 0 == store.sequence()

    assert count == len(sequenced(store))


def test_a_backlog_is_worked_off_in_batches(postgres: Server, postgres_url: str, store: PostgresStore) -> None:
    """More than one batch gets its positions in one call, in order."""
    database = database_of(postgres_url)
    postgres.execute("INSERT INTO unsequenced SELECT 2 * n FROM generate_series(1, 20001) AS n", database=database)

    assert 20001 == store.sequence()
    wrong = postgres.execute("SELECT count(*) FROM positions WHERE receipt <> 2 * position", database=database)
    assert [(0,)] == wrong
    with store.view() as view:
        assert 20001 == view.last_position()
