"""Calls read back: what was asked, what became of it, and what is in doubt."""

import pytest

from batonpass.model.base.ids import StreamId
from batonpass.records.call import CallOutcome, arguments_in, call_of, find_calls, read_arguments, read_call, read_calls
from batonpass.records.text import read_receipt
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.testing import Scribe, a_scribe


@pytest.fixture
def scribe() -> Scribe:
    """Return somebody who writes into an empty ledger."""
    return a_scribe(MemoryStore())


def test_calls_have_outcomes(scribe: Scribe) -> None:
    """A call completed, failed with a code, or nobody knows."""
    lead = scribe.start()
    recording = scribe.recording
    recording.finish(lead, recording.request(lead, "read", "{}"), "ok")
    recording.fail_call(lead, recording.request(lead, "mail", "{}"), "smtp.timeout", "no answer")
    recording.request(lead, "pay", "{}")
    with scribe.store.view() as view:
        calls = read_calls(view, view.get_run(lead.run.id)).values()

    assert [
        ("read", CallOutcome.COMPLETED, None, True, False),
        ("mail", CallOutcome.FAILED, "smtp.timeout", True, False),
        ("pay", None, None, False, False),
    ] == [(call.tool, call.outcome, call.error, call.ended_at is not None, call.in_doubt) for call in calls]


def test_a_call_without_an_outcome_is_in_doubt_once_its_run_is_over(scribe: Scribe) -> None:
    """While its run is open somebody may still say what became of it; of a run that is not given, nobody will."""
    lead = scribe.start()
    call = scribe.recording.request(lead, "pay", "{}")
    with scribe.store.view() as view:
        receipts = [read_receipt(one) for one in view.find_receipts(ReceiptQuery(stream=StreamId(lead.run.id)))]
        run = view.get_run(lead.run.id)

    assert (False, True) == (find_calls(receipts, [run])[call].in_doubt, find_calls(receipts)[call].in_doubt)


def test_any_receipt_about_a_call_leads_to_all_of_it(scribe: Scribe) -> None:
    """By its request or by its outcome, also when others were made in between; what is about none gives none."""
    lead = scribe.start()
    recording = scribe.recording
    first = recording.request(lead, "write", '{"arguments": {"path": "a.py"}}')
    second = recording.request(lead, "read", '{"path": "b.py"}')
    recording.finish(lead, second, "b")
    recording.finish(lead, first, "a")
    with scribe.store.view() as view:
        receipts = [read_receipt(one) for one in view.find_receipts(ReceiptQuery(stream=StreamId(lead.run.id)))]
        found = [read_call(view, receipt) for receipt in receipts]
        given = [None if call is None else read_arguments(view, call) for call in found]

    assert [None, first, second, second, first] == [None if call is None else call.id for call in found]
    assert [None, first, second, second, first] == [call_of(receipt) for receipt in receipts]
    assert {CallOutcome.COMPLETED} == {call.outcome for call in found if call is not None}
    assert [None, {"path": "a.py"}, {"path": "b.py"}, {"path": "b.py"}, {"path": "a.py"}] == given


@pytest.mark.parametrize("body", [None, b"", b"[1]", b"[" * 100_000, b'"x"', b"\xff", b'{"arguments": 3}'])
def test_arguments_that_cannot_be_read_are_said_to_be_unknown(body: bytes | None) -> None:
    """Whoever edited the words cannot make a reader fail."""
    assert arguments_in(body) is None
