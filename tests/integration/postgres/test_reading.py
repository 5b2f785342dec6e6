"""Views: one moment each, read as it comes, and never in anybody's way."""

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import DerivedStateError, MissingError, NotALedgerError, NotFoundError
from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.store.port import ReceiptQuery
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe, a_small_tree
from batonpass.testing.conformance.support import all_receipts, an_entry, head_of
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.postgres.support import database_of
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres


def test_a_receipt_is_found_by_its_place(store: PostgresStore, scribe: Scribe) -> None:
    """A stream and a seq name one receipt, or none."""
    lead = scribe.start()
    entry = an_entry(scribe, lead, head_of(store, lead))
    store.append([entry])
    with store.view() as view:
        assert entry.signed.receipt.id == view.get_receipt_at(StreamId(lead.run.id), 2).id
        with pytest.raises(NotFoundError, match=f"3 of {lead.run.id}"):
            view.get_receipt_at(StreamId(lead.run.id), 3)


def test_reading_can_stop_in_the_middle(store: PostgresStore, scribe: Scribe) -> None:
    """What was not read to its end is ended with its view, and its connection serves the next one."""
    a_small_tree(scribe)
    with store.view() as view:
        unfinished = view.find_receipts(ReceiptQuery())
        first = next(unfinished)
    with store.view() as view:
        again = next(view.find_receipts(ReceiptQuery()))
        del unfinished
        assert view.counts().receipts > 1

    assert first == again


def test_several_readings_go_on_side_by_side(store: PostgresStore, scribe: Scribe) -> None:
    """While receipts are read, what they refer to can be looked up in the same moment."""
    a_small_tree(scribe)
    with store.view() as view:
        looked_up = [
            view.get_content(reference.id).receipt == found.id
            for found in view.find_receipts(ReceiptQuery())
            for reference in decode_receipt(found.payload).content.values()
        ]

    assert [True] * 14 == looked_up


def test_more_than_a_page_is_read(postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe) -> None:
    """A long stream is fetched piece by piece and comes whole."""
    lead = scribe.start()
    store.append([an_entry(scribe, lead, head_of(store, lead))])
    postgres.execute(
        "INSERT INTO receipts (id, stream, seq, kind, payload, relay_signature) "
        "SELECT id || n, stream, seq + n, kind, payload, relay_signature "
        "FROM receipts, generate_series(1, 1200) AS n WHERE kind = 'tool.requested'",
        database=database_of(postgres_url),
    )

    found = all_receipts(store, ReceiptQuery(stream=StreamId(lead.run.id)))
    assert list(range(1, 1203)) == [receipt.seq for receipt in found]


def test_a_row_that_makes_no_sense_is_named(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A derived row that cannot be a value was tampered with; the error says which it is."""
    lead = scribe.start()
    postgres.execute("UPDATE runs SET started_at = 1::bigint << 62", database=database_of(postgres_url))
    with store.view() as view, pytest.raises(DerivedStateError, match=lead.run.id):
        view.get_run(lead.run.id)
    postgres.execute("UPDATE runs SET started_at = 0, attempt = -1", database=database_of(postgres_url))
    with store.view() as view, pytest.raises(DerivedStateError, match="field attempt"):
        view.get_run(lead.run.id)


def test_a_receipt_without_its_stream_still_comes(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """Whoever removes a stream's row does not hide its receipts from a verifier."""
    lead = scribe.start()
    postgres.execute("DELETE FROM streams WHERE id = %s", lead.run.id, database=database_of(postgres_url))

    assert ["relay.enrolled", "run.started"] == [found.kind for found in all_receipts(store)]


def test_an_unfounded_store_has_no_name(store: PostgresStore) -> None:
    """A database with tables in which nothing was recorded is not a ledger yet."""
    with store.view() as view, pytest.raises(NotALedgerError, match="nothing has been recorded in postgresql://relay@"):
        view.info()


def test_the_parts_of_a_tree_are_found_by_its_root(store: PostgresStore, scribe: Scribe) -> None:
    """Runs and handoffs can be asked for by tree, agent and parent at once."""
    mine, _ = a_small_tree(scribe), a_small_tree(scribe)
    with store.view() as view:
        runs = list(view.find_runs(root=mine.run.id))
        editors = list(view.find_runs(root=mine.run.id, parent=mine.run.id, agent=AgentId("editor")))
        handoffs = list(view.find_handoffs(root=mine.run.id))
        streams = [stream.id for stream in view.find_streams() if stream.root == mine.run.id]

    assert [StreamId(run.id) for run in runs[::-1]] == streams
    assert ["reviewer", "editor", "lead"] == [run.agent for run in runs]
    assert ["editor"] == [run.agent for run in editors]
    assert ["reviewer", "editor"] == [handoff.to for handoff in handoffs]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM standing WHERE id = (SELECT max(id) FROM runs)",
        "DELETE FROM standing WHERE id = (SELECT max(id) FROM handoffs)",
        "UPDATE standing SET state = 'failed' WHERE id = (SELECT max(id) FROM handoffs)",
    ],
    ids=["a run that is left out", "a handoff that is left out", "a handoff under another state"],
)
def test_a_list_by_state_that_leaves_somebody_out_is_found(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe, statement: str
) -> None:
    """What stands in which state is kept beside the rows: whoever edits it shows nothing untrue, and hides nothing."""
    a_small_tree(scribe)
    store.sequence()
    postgres.execute(statement, database=database_of(postgres_url))
    with store.view() as view:
        assert [] == list(view.find_handoffs(states=[State.FAILED]))

    with pytest.raises(MissingError, match="by state"):
        verify_ledger(store)
