"""Derived rows: contents, runs and handoffs."""

import os

import pytest
from msgspec.structs import replace

from batonpass.errors import DuplicateReceiptError, IllegalTransitionError, NotFoundError, StreamClosedError
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, ContentId, RunId, StreamId, content_named
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.ledger.content import Place, new_content
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.run import RunState
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing.builders import ANA, Scribe
from batonpass.testing.conformance.support import NOW, WithScribe, all_receipts, an_entry, head_of
from batonpass.wire.receipt_codec import decode_receipt


class Deriving(WithScribe):
    """Derived rows: contents, runs and handoffs."""

    def test_content_comes_with_its_receipt(self, store: LedgerStore, scribe: Scribe) -> None:
        """The salt and body of a content are written together with its receipt."""
        lead = scribe.start()
        entry = an_entry(scribe, lead, head_of(store, lead))
        store.append([entry])
        (content,) = entry.contents

        with store.view() as view:
            found = view.get_content(content.ref.id)
            (same,) = view.find_contents([content.ref.id, ContentId("content_" + "0" * 26)])
            known = set(view.find_content_ids())

        assert (content.salt, content.body) == (found.salt, found.body)
        assert (found, entry.signed.receipt.id) == (same, found.receipt)
        assert content.ref.id in known

    @pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 1_000_000], ids=lambda size: f"{size} bytes")
    def test_content_of_any_size_comes_back(self, store: LedgerStore, scribe: Scribe, size: int) -> None:
        """Small bodies and large ones read the same."""
        lead = scribe.start()
        body = os.urandom(size)
        content = new_content("arguments", body, NOW, media_type="application/octet-stream")
        entry = an_entry(scribe, lead, head_of(store, lead))
        receipt = replace(entry.signed.receipt, content={"arguments": content.ref})
        store.append([Entry(signed=replace(entry.signed, receipt=receipt), contents=(content,))])

        with store.view() as view:
            assert body == view.get_content(content.ref.id).body

    def test_the_id_of_a_content_is_taken_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """A root run with a content that another root has is not written, and the content still leads to the first."""
        named = content_named("the key of a run")

        def start() -> Working:
            content = new_content("key", "nightly", NOW)
            keyed = replace(content, ref=replace(content.ref, id=named))
            return scribe.recording.start("Go", agent="lead", by=ANA, contents=(keyed,))

        first = start().run
        for _ in range(2):
            with pytest.raises(DuplicateReceiptError):
                start()

        with store.view() as view:
            introduced = view.get_content(named).receipt
            assert introduced is not None
            assert StreamId(first.id) == view.get_receipt(introduced).stream
            assert [first] == list(view.find_runs())

    def test_erased_content_is_gone_and_its_receipt_is_not(self, store: LedgerStore, scribe: Scribe) -> None:
        """Erasing removes salt and body, keeps the row, and adds a receipt."""
        lead = scribe.start("call me on 555-0100")
        with store.view() as view:
            (started,) = view.find_receipts(ReceiptQuery(stream=StreamId(lead.run.id)))
            content = decode_receipt(started.payload).content["intent"].id
        scribe.erasure.erase([content], by=ANA, reason="asked to")

        with store.view() as view:
            erased = view.get_content(content)
            assert started == view.get_receipt(started.id)
        assert (Place.ERASED, None, None) == (erased.place, erased.salt, erased.body)

    def test_erasing_what_is_not_there_is_refused(self, store: LedgerStore, scribe: Scribe) -> None:
        """An erasure that names an unknown content writes nothing."""
        before = len(all_receipts(store))
        missing = ContentId("content_" + "0" * 26)

        with pytest.raises(NotFoundError):
            scribe.erasure.erase([missing], by=ANA, reason="asked to")

        assert before == len(all_receipts(store))

    def test_a_run_is_derived_from_its_receipts(self, store: LedgerStore, scribe: Scribe) -> None:
        """Acceptance opens a run under its parent; the close-out ends it."""
        lead = scribe.start()
        editor = scribe.delegate(lead)
        with store.view() as view:
            opened = view.get_run(editor.run.id)
        scribe.recording.close(editor)
        with store.view() as view:
            closed = view.get_run(editor.run.id)

        assert editor.run == opened
        assert (lead.run.id, RunState.OPEN, None) == (opened.parent, opened.state, opened.ended_at)
        assert RunState.COMPLETED == closed.state
        assert closed.ended_at is not None

    def test_a_handoff_follows_the_table(self, store: LedgerStore, scribe: Scribe) -> None:
        """Offer, accept and close leave a handoff offered, running and completed."""
        lead = scribe.start()
        handoff = scribe.offer(lead)
        states = []
        for act in (lambda: None, lambda: scribe.recording.accept(handoff)):
            act()
            with store.view() as view:
                states.append(view.get_handoff(handoff).state)
        with store.view() as view:
            run = view.get_run(view.get_handoff(handoff).run or RunId(""))
        scribe.recording.close(Working(run=run))
        with store.view() as view:
            states.append(view.get_handoff(handoff).state)

        assert [State.OFFERED, State.RUNNING, State.COMPLETED] == states

    def test_a_handoff_is_accepted_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """A second acceptance of a running handoff is refused, and its run does not exist."""
        lead = scribe.start()
        handoff = scribe.offer(lead)
        scribe.recording.accept(handoff)
        before = len(all_receipts(store))

        with pytest.raises(IllegalTransitionError):
            scribe.recording.accept(handoff)

        assert before == len(all_receipts(store))

    def test_a_lapsed_attempt_is_fenced_and_the_next_one_hangs_from_its_end(
        self,
        store: LedgerStore,
        scribe: Scribe,
    ) -> None:
        """A lapse ends the attempt's run and its stream; the handoff can be taken again."""
        lead = scribe.start()
        handoff = scribe.recording.offer(lead, AgentId("editor"), "edit", carrier=Carrier.WORKER)
        first = scribe.recording.accept(handoff)
        head = head_of(store, first)
        scribe.recording.lapse(handoff)

        with pytest.raises(StreamClosedError):
            store.append([an_entry(scribe, first, head)])
        second = scribe.recording.accept(handoff)
        with store.view() as view:
            assert RunState.LAPSED == view.get_run(first.run.id).state
            assert (2, second.run.id) == (view.get_handoff(handoff).attempt, view.get_handoff(handoff).run)

    def test_a_cancelled_handoff_cannot_be_accepted(self, store: LedgerStore, scribe: Scribe) -> None:
        """A cancelled handoff stays cancelled."""
        handoff = scribe.offer(scribe.start())
        scribe.recording.cancel(handoff, by=ANA, reason="changed my mind")

        with pytest.raises(IllegalTransitionError):
            scribe.recording.accept(handoff)
        with store.view() as view:
            assert State.CANCELLED == view.get_handoff(handoff).state
