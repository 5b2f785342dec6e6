"""Views, positions, queries and seals."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from batonpass.errors import NotFoundError, StaleHeadError
from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.bodies.body import HandoffRetried, Outcome
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing.builders import ANA, Scribe, a_small_tree
from batonpass.testing.conformance.support import WithScribe, a_seal, all_receipts, root_of, sequence_until


class Views(WithScribe):
    """Views, positions, queries and seals."""

    def test_a_view_is_one_moment(self, store: LedgerStore, scribe: Scribe) -> None:
        """Appends during an open view do not show in it, and do not wait for it."""
        scribe.start()
        with store.view() as view:
            before = view.counts().receipts
            scribe.start()
            after = len(list(view.find_receipts(ReceiptQuery())))

        assert before == after
        assert before + 1 == len(all_receipts(store))

    def test_positions_are_gapless_and_in_stream_order(self, store: LedgerStore, scribe: Scribe) -> None:
        """Positions count from 1 without a gap, and follow the order of each stream."""
        a_small_tree(scribe)
        store.sequence()
        with store.view() as view:
            found = list(view.find_receipts(ReceiptQuery(first=1)))
            last = view.last_position()

        assert list(range(1, last + 1)) == [receipt.position for receipt in found]
        assert last == len(all_receipts(store))
        for stream in {receipt.stream for receipt in found}:
            seqs = [receipt.seq for receipt in found if receipt.stream == stream]
            assert sorted(seqs) == seqs

    def test_two_sequencers_at_once_leave_no_gap(self, store: LedgerStore, scribe: Scribe) -> None:
        """Sequencing from many threads while others append gives each receipt one position."""
        stop = threading.Event()
        threads = [threading.Thread(target=sequence_until, args=(store, stop)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            a_small_tree(scribe)
        stop.set()
        for thread in threads:
            thread.join()
        store.sequence()
        with store.view() as view:
            positions = [receipt.position for receipt in view.find_receipts(ReceiptQuery(first=1))]

        assert list(range(1, len(all_receipts(store)) + 1)) == positions

    def test_queries_narrow(self, store: LedgerStore, scribe: Scribe) -> None:
        """Each part of a query filters the receipts."""
        first, second = a_small_tree(scribe), a_small_tree(scribe, calls=1)
        store.sequence()

        assert {first.run.root} == {
            root_of(store, found) for found in all_receipts(store, ReceiptQuery(root=first.run.id))
        }
        kinds = {found.kind for found in all_receipts(store, ReceiptQuery(kind="handoff"))}
        assert {"handoff.initiated", "handoff.accepted", "handoff.completed"} == kinds
        assert 2 == len(all_receipts(store, ReceiptQuery(kind="run.closed")))
        assert 6 + 4 == len(all_receipts(store, ReceiptQuery(agent=AgentId("editor"))))
        narrowed = ReceiptQuery(root=second.run.root, agent=AgentId("editor"), kind="tool")
        assert 2 == len(all_receipts(store, narrowed))
        assert [3, 4, 5] == [found.position for found in all_receipts(store, ReceiptQuery(first=3, last=5))]
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        assert [] == all_receipts(store, ReceiptQuery(since=tomorrow))
        yesterday = tomorrow - timedelta(days=2)
        assert len(all_receipts(store)) == len(all_receipts(store, ReceiptQuery(since=yesterday)))

    def test_ids_are_found_by_their_ending(self, store: LedgerStore, scribe: Scribe) -> None:
        """An id is found by its last characters."""
        lead = scribe.start()
        handoff = scribe.offer(lead)
        with store.view() as view:
            assert [lead.run.id] == list(view.find_ids("run", lead.run.id[-8:]))
            assert [handoff] == list(view.find_ids("handoff", handoff[-8:]))
            assert [scribe.identity.id] == list(view.find_ids("relay", scribe.identity.id[-8:]))
            (started,) = view.find_receipts(ReceiptQuery(stream=StreamId(lead.run.id), kind="run.started"))
            assert [started.id] == list(view.find_ids("receipt", started.id[-8:]))
            assert 3 <= len(list(view.find_ids("receipt", "")))

    def test_runs_come_latest_first(self, store: LedgerStore, scribe: Scribe) -> None:
        """The newest run comes first."""
        lead = a_small_tree(scribe)
        with store.view() as view:
            runs = list(view.find_runs())
            editors = list(view.find_runs(agent=AgentId("editor")))
            children = list(view.find_runs(parent=lead.run.id))
            handoffs = list(view.find_handoffs(root=lead.run.root))

        assert sorted((run.id for run in runs), reverse=True) == [run.id for run in runs]
        assert ["editor"] == [run.agent for run in editors]
        assert {"editor", "reviewer"} == {run.agent for run in children}
        assert {"editor", "reviewer"} == {handoff.to for handoff in handoffs}
        with store.view() as view:
            attempts = {handoff.to: [run.agent for run in view.find_attempts(handoff)] for handoff in handoffs}
        assert {"editor": ["editor"], "reviewer": ["reviewer"]} == attempts

    def test_receipts_of_some_streams_come_stream_by_stream(self, store: LedgerStore, scribe: Scribe) -> None:
        """A query for several streams returns all of their receipts, each stream's by seq, and no others."""
        lead = a_small_tree(scribe)
        with store.view() as view:
            runs = [StreamId(run.id) for run in view.find_runs(parent=lead.run.id)]
            found = [(stored.stream, stored.seq) for stored in view.find_receipts(ReceiptQuery(streams=tuple(runs)))]
            alone = {stream: list(view.find_receipts(ReceiptQuery(stream=stream))) for stream in runs}
            nobody = list(view.find_receipts(ReceiptQuery(streams=())))

        assert {stream: [stored.seq for stored in stored_of] for stream, stored_of in alone.items()} == {
            stream: [seq for of, seq in found if of == stream] for stream in runs
        }
        assert sum(map(len, alone.values())) == len(found)
        assert [] == nobody

    def test_receipts_of_all_attempts_come_attempt_by_attempt(self, store: LedgerStore, scribe: Scribe) -> None:
        """A query for the attempts at a handoff returns the receipts of its runs, the first attempt first."""
        lead = scribe.start()
        handoff, other = scribe.offer(lead), scribe.offer(lead)
        scribe.call(scribe.recording.accept(other))
        runs = []
        for _ in range(3):
            runs.append(scribe.recording.accept(handoff))
            scribe.call(runs[-1])
            scribe.recording.close(runs[-1], Outcome.FAILED)
            scribe.recording.act(handoff, lambda _, __: HandoffRetried(handoff=handoff, by=ANA))
        with store.view() as view:
            at = view.get_handoff(handoff)
            found = [*view.find_receipts(ReceiptQuery(attempts_at=at))]
            calls = [*view.find_receipts(ReceiptQuery(attempts_at=at, but=("handoff.accepted", "handoff.failed")))]

        assert [StreamId(run.run.id) for run in runs for _ in range(4)] == [stored.stream for stored in found]
        assert ["tool.requested", "tool.completed"] * 3 == [stored.kind for stored in calls]

    def test_kinds_can_be_left_out(self, store: LedgerStore, scribe: Scribe) -> None:
        """Excluding a kind excludes exactly this kind, not its family or kinds that start like it."""
        lead = a_small_tree(scribe)
        with store.view() as view:
            every = [stored.kind for stored in view.find_receipts(ReceiptQuery(root=lead.run.root))]
            some = [
                [stored.kind for stored in view.find_receipts(ReceiptQuery(root=lead.run.root, but=but))]
                for but in (("handoff.accepted",), ("handoff",), ("handoff.accept",))
            ]

        assert "handoff.accepted" in every
        assert [[kind for kind in every if kind != "handoff.accepted"], every, every] == some

    @pytest.mark.usefixtures("scribe")
    def test_what_is_missing_is_named(self, store: LedgerStore) -> None:
        """A failed lookup names the id."""
        nothing = "0" * 26
        with store.view() as view:
            for get, given in (
                (view.get_run, f"run_{nothing}"),
                (view.get_handoff, f"handoff_{nothing}"),
                (view.get_receipt, f"receipt_{nothing}"),
                (view.get_content, f"content_{nothing}"),
                (view.get_stream, f"run_{nothing}"),
            ):
                with pytest.raises(NotFoundError, match=given):
                    get(given)  # type: ignore[arg-type]

    @pytest.mark.usefixtures("scribe")
    def test_seals_are_kept_by_size(self, store: LedgerStore) -> None:
        """Seals are ordered by size, and the first of a size stays."""
        seals = [a_seal(1), a_seal(3, previous=1)]
        for seal in seals:
            store.add_seal(seal)
        store.add_seal(replace(seals[0], note="another"))

        with store.view() as view:
            assert seals == list(view.find_seals())

    @pytest.mark.usefixtures("scribe")
    def test_two_seals_cannot_follow_the_same(self, store: LedgerStore) -> None:
        """Of two processes that seal at once, one has to try again."""
        store.add_seal(a_seal(1))
        store.add_seal(a_seal(3, previous=1))

        with pytest.raises(StaleHeadError):
            store.add_seal(a_seal(5, previous=1))

    def test_counts_count(self, store: LedgerStore, scribe: Scribe) -> None:
        """The counts are those of the rows."""
        a_small_tree(scribe, calls=0)
        with store.view() as view:
            counts = view.counts()

        assert (9, 4, 3, 2, 6) == (counts.receipts, counts.streams, counts.runs, counts.handoffs, counts.contents)
