"""Appending: which receipts are written, and which are refused."""

import pytest
from msgspec.structs import replace

from batonpass.errors import (
    DuplicateReceiptError,
    FencedError,
    NotFoundError,
    RewoundError,
    StaleHeadError,
    StreamClosedError,
)
from batonpass.model.base.ids import Digest, StreamId, new_run_id
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import Scribe, a_small_tree
from batonpass.testing.conformance.support import (
    NOW,
    WithScribe,
    all_receipts,
    an_entry,
    append_at_once,
    at_once,
    head_of,
    in_a_fork,
    mark_of,
)


class Appending(WithScribe):
    """Appending: which receipts are written, and which are refused."""

    def test_appended_bytes_come_back_unchanged(self, store: LedgerStore, scribe: Scribe) -> None:
        """A store gives back the exact bytes, signatures and columns it was given."""
        lead = scribe.start()
        entry = an_entry(scribe, lead, head_of(store, lead))
        store.append([entry])
        signed = entry.signed

        with store.view() as view:
            found = view.get_receipt(signed.receipt.id)

        assert (signed.payload, signed.relay_signature, signed.cosignature) == (
            found.payload,
            found.relay_signature,
            found.cosignature,
        )
        assert (signed.receipt.id, signed.receipt.stream, 2, "tool.requested") == (
            found.id,
            found.stream,
            found.seq,
            found.kind,
        )

    def test_stale_append_is_refused(self, store: LedgerStore, scribe: Scribe) -> None:
        """Two writers that read the same head cannot both append."""
        lead = scribe.start()
        head = head_of(store, lead)
        store.append([an_entry(scribe, lead, head)])

        with pytest.raises(StaleHeadError):
            store.append([an_entry(scribe, lead, head)])

        assert 2 == head_of(store, lead).seq

    def test_racing_writers_of_one_stream_have_one_winner(self, store: LedgerStore, scribe: Scribe) -> None:
        """Of many threads that append to one head at once, exactly one succeeds."""
        lead = scribe.start()
        head = head_of(store, lead)
        entries = [an_entry(scribe, lead, head) for _ in range(8)]
        outcomes = append_at_once(store, entries)

        assert 1 == outcomes.count(None)
        assert 7 == sum(isinstance(outcome, StaleHeadError) for outcome in outcomes)

    def test_a_repeated_append_of_the_same_bytes_succeeds(self, store: LedgerStore, scribe: Scribe) -> None:
        """A writer that got no answer may append the same bytes again; they are written once."""
        lead = scribe.start()
        entry = an_entry(scribe, lead, head_of(store, lead))
        store.append([entry])
        store.append([entry])

        assert 2 == head_of(store, lead).seq
        assert 3 == len(all_receipts(store))

    def test_an_append_ahead_of_the_store_is_a_rewind(self, store: LedgerStore, scribe: Scribe) -> None:
        """A writer whose head the store does not have is told that the store lost receipts."""
        lead = scribe.start()
        head = head_of(store, lead)
        ahead = replace(head, seq=head.seq + 3, head=head.head)

        with pytest.raises(RewoundError):
            store.append([an_entry(scribe, lead, ahead)])

    def test_a_fork_of_the_head_is_a_rewind(self, store: LedgerStore, scribe: Scribe) -> None:
        """A writer whose head differs from the store's at the same seq is refused."""
        lead = scribe.start()
        forked = replace(head_of(store, lead), head=Digest("ab" * 32))

        with pytest.raises(RewoundError):
            store.append([an_entry(scribe, lead, forked)])

    def test_a_passed_epoch_is_fenced(self, store: LedgerStore, scribe: Scribe) -> None:
        """After a rekey, the holder of the old epoch can write nothing."""
        lead = scribe.start()
        scribe.recording.rekey(lead.run.id)
        head = head_of(store, lead)

        with pytest.raises(FencedError):
            store.append([an_entry(scribe, lead, head, epoch=1)])

        assert 2 == head.epoch

    def test_whoever_was_fenced_is_told_so(self, store: LedgerStore, scribe: Scribe) -> None:
        """Also if the stream has gone on since, or has ended: any other reason would let the holder try again."""
        lead = scribe.start()
        late = an_entry(scribe, lead, head_of(store, lead))
        taken_over = scribe.recording.rekey(lead.run.id)

        with pytest.raises(FencedError):
            store.append([late])
        scribe.recording.close(taken_over)
        with pytest.raises(FencedError):
            store.append([late])

    def test_an_epoch_ahead_is_refused(self, store: LedgerStore, scribe: Scribe) -> None:
        """Nobody enters an epoch by claiming it: only a rekey begins one."""
        lead = scribe.start()

        with pytest.raises(FencedError):
            store.append([an_entry(scribe, lead, head_of(store, lead), epoch=2)])

    def test_a_closed_stream_refuses(self, store: LedgerStore, scribe: Scribe) -> None:
        """After its close-out, a run accepts no more receipts."""
        lead = scribe.start()
        scribe.recording.close(lead)
        scribe.run_keys.keep(lead.run.id, 1, scribe.run_keys.new())

        with pytest.raises(StreamClosedError):
            store.append([an_entry(scribe, lead, head_of(store, lead))])

    def test_a_batch_is_written_whole_or_not_at_all(self, store: LedgerStore, scribe: Scribe) -> None:
        """If one entry of a batch is refused, none of the batch is written."""
        first, second = scribe.start(), scribe.start()
        good = an_entry(scribe, first, head_of(store, first))
        bad = an_entry(scribe, second, replace(head_of(store, second), seq=7))

        with pytest.raises(RewoundError):
            store.append([good, bad])

        assert (1, 1) == (head_of(store, first).seq, head_of(store, second).seq)
        with pytest.raises(NotFoundError), store.view() as view:
            view.get_content(good.contents[0].ref.id)

    def test_nothing_is_written_where_what_was_acknowledged_is_gone(self, store: LedgerStore, scribe: Scribe) -> None:
        """An entry that follows an acknowledged receipt is refused if the store has lost that receipt."""
        if store.confirm_every is not None:
            pytest.skip("whoever writes asks such a store now and then")
        first, second = scribe.start(), scribe.start()
        old = mark_of(store, first)
        store.append([an_entry(scribe, first, head_of(store, first))])
        latest = mark_of(store, first)
        gone = (
            replace(latest, seq=latest.seq + 1),
            replace(latest, head=Digest("0" * 64)),
            replace(old, head=latest.head),
            replace(latest, stream=StreamId(new_run_id(NOW))),
        )
        for mark in gone:
            with pytest.raises(RewoundError, match="was replaced or restored"):
                store.append([replace(an_entry(scribe, second, head_of(store, second)), after=mark)])
        assert 1 == head_of(store, second).seq
        for number, mark in enumerate((old, latest, mark_of(store, second)), 2):
            store.append([replace(an_entry(scribe, second, head_of(store, second)), after=mark)])
            assert number == head_of(store, second).seq

    def test_a_batch_may_extend_one_stream_twice(self, store: LedgerStore, scribe: Scribe) -> None:
        """Entries of one batch may follow each other."""
        lead = scribe.start()
        head = head_of(store, lead)
        first = an_entry(scribe, lead, head)
        second = an_entry(scribe, lead, replace(head, seq=2, head=first.signed.digest))
        store.append([first, second])

        assert (3, second.signed.digest) == (head_of(store, lead).seq, head_of(store, lead).head)

    def test_a_receipt_id_is_used_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """Two receipts cannot have one id."""
        first, second = scribe.start(), scribe.start()
        entry = an_entry(scribe, first, head_of(store, first))
        other = an_entry(scribe, second, head_of(store, second))
        store.append([entry])
        clash = replace(other.signed, receipt=replace(other.signed.receipt, id=entry.signed.receipt.id))

        with pytest.raises(DuplicateReceiptError):
            store.append([replace(other, signed=clash)])

    def test_a_fork_must_open_its_own(self, store: LedgerStore, scribe: Scribe) -> None:
        """In a forked child, the parent's store refuses instead of corrupting."""
        scribe.start()
        code = in_a_fork(lambda: store.append([]))

        assert 42 == code

    def test_many_streams_at_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """Threads that write different streams all succeed, and every chain is whole."""
        errors: list[BaseException] = []

        def work(_: int) -> None:
            try:
                for _ in range(3):
                    a_small_tree(scribe)
            except BaseException as error:  # noqa: BLE001 - shown by the assertion below
                errors.append(error)

        at_once(work, range(8))

        assert [] == errors
        assert 1 + 8 * 3 * 16 == len(all_receipts(store))
