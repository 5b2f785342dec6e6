"""Lists and lookups: by state, by agent, from a position, and with a limit."""

from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from batonpass.model.base.ids import AgentId, HandoffId, ReceiptId, RunId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Outcome, ToolCompleted, ToolFailed, ToolRequested
from batonpass.model.ledger.run import RunState
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery
from batonpass.testing.builders import Scribe
from batonpass.testing.conformance.leases import claimed, waiting
from batonpass.testing.conformance.support import WithScribe
from batonpass.wire.receipt_codec import decode_receipt


def handoffs(store: LedgerStore, *states: State, to: str | None = None) -> list[HandoffId]:
    """Return the handoffs in these states."""
    with store.view() as view:
        return [known.id for known in view.find_handoffs(states=states, to=None if to is None else AgentId(to))]


def latest_first(ids: Iterable[str]) -> list[str]:
    """Return ids in the order of a list."""
    return sorted(ids, reverse=True)


def open_requests(view: LedgerView, runs: int, of_each: int, most: int) -> Iterator[ReceiptId]:
    """Yield requests without an outcome the slow way: run by run, from the end of each."""
    latest = sorted(view.find_runs(limit=runs), key=lambda run: run.state is RunState.COMPLETED)
    seen = 0
    for run in latest:
        if seen >= most:
            return
        ended: set[str] = set()
        for stored in reversed(list(view.find_receipts(ReceiptQuery(stream=StreamId(run.id))))[-of_each:]):
            seen += 1
            body = decode_receipt(stored.payload).body
            if isinstance(body, ToolCompleted | ToolFailed):
                ended.add(body.call)
            elif isinstance(body, ToolRequested) and body.call not in ended:
                yield ReceiptId(stored.id)


class Lists(WithScribe):
    """Lists, filtered and limited by the store, the latest first."""

    def test_runs_are_found_by_state(self, store: LedgerStore, scribe: Scribe) -> None:
        """Runs are filtered by one state, by several, and by a state without members."""
        lead = scribe.start()
        done, failed = scribe.delegate(lead), scribe.delegate(lead, "reviewer")
        scribe.recording.close(done, report="done")
        scribe.recording.close(failed, outcome=Outcome.FAILED, report="it broke")
        with store.view() as view:
            found = {state: [run.id for run in view.find_runs(states=[state])] for state in RunState}
            ended = [run.id for run in view.find_runs(states={RunState.FAILED, RunState.COMPLETED})]
            narrowed = [run.id for run in view.find_runs(states=[RunState.FAILED], agent=AgentId("editor"))]
            below = [run.id for run in view.find_runs(states=[RunState.OPEN, RunState.FAILED], parent=lead.run.id)]
            tree = [run.id for run in view.find_runs(states=[RunState.OPEN, RunState.FAILED], root=lead.run.id)]

        expected = {
            RunState.OPEN: [lead.run.id],
            RunState.COMPLETED: [done.run.id],
            RunState.FAILED: [failed.run.id],
        }
        assert {state: expected.get(state, []) for state in RunState} == found
        assert latest_first([done.run.id, failed.run.id]) == ended
        assert ([], [failed.run.id]) == (narrowed, below)
        assert latest_first([lead.run.id, failed.run.id]) == tree

    def test_roots_are_found_without_their_children(self, store: LedgerStore, scribe: Scribe) -> None:
        """Root runs can be filtered by state and agent, with a limit."""
        first, last = scribe.start(), scribe.start(agent="boss")
        child = scribe.delegate(last)
        with store.view() as view:
            roots = [run.id for run in view.find_runs(roots=True)]
            latest = [run.id for run in view.find_runs(roots=True, limit=1)]
            still_open = [run.id for run in view.find_runs(roots=True, states=[RunState.OPEN])]
            leads = [run.id for run in view.find_runs(roots=True, agent=AgentId("lead"))]
            of_the_tree = [run.id for run in view.find_runs(roots=True, root=last.run.id)]
            below = [*view.find_runs(roots=True, parent=last.run.id)]
            everybody = [run.id for run in view.find_runs()]

        assert [last.run.id, first.run.id] == roots == still_open
        assert ([last.run.id], [first.run.id], [last.run.id], []) == (latest, leads, of_the_tree, below)
        assert [child.run.id, last.run.id, first.run.id] == everybody

    @pytest.mark.parametrize("narrowed", ["all", "agent", "state", "states", "parent", "root"])
    def test_runs_are_read_page_by_page(self, store: LedgerStore, scribe: Scribe, narrowed: str) -> None:
        """Each page starts after the last run of the one before; together they list everything once."""
        lead = scribe.start()
        children = [scribe.delegate(lead).run.id for _ in range(5)]
        by = {
            "all": {},
            "agent": {"agent": AgentId("editor")},
            "state": {"states": [RunState.OPEN]},
            "states": {"states": [RunState.OPEN, RunState.FAILED]},
            "parent": {"parent": lead.run.id},
            "root": {"root": lead.run.id},
        }[narrowed]
        everything = latest_first(children if narrowed in {"agent", "parent"} else [lead.run.id, *children])
        pages: list[list[RunId]] = []
        with store.view() as view:
            while not pages or pages[-1]:
                before = pages[-1][-1] if pages else None
                pages.append([run.id for run in view.find_runs(**by, before=before, limit=2)])  # type: ignore[arg-type]

        assert everything == [run for page in pages for run in page]
        assert [2, 2] == [len(page) for page in pages[:2]]

    @pytest.mark.parametrize("narrowed", ["all", "to", "state", "states", "parent", "root"])
    def test_handoffs_are_read_page_by_page(self, store: LedgerStore, scribe: Scribe, narrowed: str) -> None:
        """Pages of handoffs work like pages of runs."""
        lead = scribe.start()
        offered = latest_first([scribe.offer(lead) for _ in range(5)])
        by = {
            "all": {},
            "to": {"to": AgentId("editor")},
            "state": {"states": [State.OFFERED]},
            "states": {"states": [State.OFFERED, State.READY, State.CLAIMED]},
            "parent": {"parent": lead.run.id},
            "root": {"root": lead.run.id},
        }[narrowed]
        pages: list[list[HandoffId]] = []
        with store.view() as view:
            while not pages or pages[-1]:
                before = pages[-1][-1] if pages else None
                found = view.find_handoffs(**by, before=before, limit=2)  # type: ignore[arg-type]
                pages.append([handoff.id for handoff in found])

        assert offered == [handoff for page in pages for handoff in page]
        assert [2, 2, 1, 0] == [len(page) for page in pages]

    def test_handoffs_are_found_by_state(self, store: LedgerStore, scribe: Scribe) -> None:
        """A handoff with a lease is listed as claimed, although no receipt says so."""
        lead = scribe.start()
        offered = scribe.offer(lead)
        failed = scribe.delegate(lead, "reviewer")
        scribe.recording.close(failed, outcome=Outcome.FAILED, report="it broke")
        first, second = waiting(scribe, parent=lead), waiting(scribe, parent=lead)
        lease = claimed(store)
        ready = ({first, second} - {lease.handoff}).pop()
        assert failed.run.handoff is not None

        expected = {
            State.OFFERED: [offered],
            State.FAILED: [failed.run.handoff],
            State.READY: [ready],
            State.CLAIMED: [lease.handoff],
        }
        assert {state: expected.get(state, []) for state in State} == {state: handoffs(store, state) for state in State}
        assert latest_first([offered, first, second]) == handoffs(store, State.OFFERED, State.READY, State.CLAIMED)
        assert latest_first([first, second]) == handoffs(store, State.READY, State.CLAIMED, to="editor")
        assert [] == handoffs(store, State.FAILED, to="editor")
        with store.view() as view:
            (shown,) = view.find_handoffs(states=[State.CLAIMED])
            of_the_run = [known.id for known in view.find_handoffs(parent=lead.run.id, states=[State.CLAIMED])]
            of_the_tree = [known.id for known in view.find_handoffs(root=lead.run.id, states=[State.CLAIMED])]
            named = [known.id for known in view.find_handoffs(root=lead.run.id, to=AgentId("reviewer"))]
        assert State.CLAIMED == shown.state
        assert ([lease.handoff], [lease.handoff], [failed.run.handoff]) == (of_the_run, of_the_tree, named)

    def test_words_are_counted_where_they_are(self, store: LedgerStore, scribe: Scribe) -> None:
        """Sizes count contents in rows and in files, and erased ones separately."""
        lead = scribe.start("four")
        call = scribe.recording.request(lead, "read", "{}")
        scribe.recording.finish(lead, call, b"x" * 2_000_000)
        with store.view() as view:
            before = view.content_sizes()
            (first,) = (one for one in view.find_content_ids() if view.get_content(one).body == b"four")
        scribe.erasure.erase([first], by="user:ana", reason="privacy")
        with store.view() as view:
            after = view.content_sizes()

        total = [sizes.row_bytes + sizes.file_bytes for sizes in (before, after)]
        assert 2_000_000 < total[0] < 2_000_300
        assert (0, 1) == (before.erased, after.erased)
        assert after.rows + after.files == before.rows + before.files
        assert total[1] - total[0] == len(b"privacy") - len(b"four")

    def test_what_runs_under_a_lease_is_not_claimed(self, store: LedgerStore, scribe: Scribe) -> None:
        """A leased handoff whose work has started is listed as running."""
        handoff = waiting(scribe)
        lease = claimed(store)
        scribe.recording.accept(lease.handoff, token=lease.token)

        assert ([], [], [handoff]) == tuple(
            handoffs(store, state) for state in (State.READY, State.CLAIMED, State.RUNNING)
        )

    def test_ids_are_found_by_an_ending_of_any_length(self, store: LedgerStore, scribe: Scribe) -> None:
        """Endings of any length find all ids that end so."""
        lead = scribe.start()
        for _ in range(40):
            scribe.offer(lead)
        with store.view() as view:
            for prefix in ("run", "handoff", "receipt", "content", "relay"):
                known = list(view.find_ids(prefix, ""))
                for length in (1, 2, 3, 4, 5, 26, len(known[0])):
                    ending = known[0][-length:]
                    assert latest_first(one for one in known if one.endswith(ending)) == list(
                        view.find_ids(prefix, ending)
                    )
                assert [] == list(view.find_ids(prefix, f"x{known[0]}"))
                assert [] == list(view.find_ids(prefix, "%"))

    def test_receipts_are_found_by_the_call_they_are_about(self, store: LedgerStore, scribe: Scribe) -> None:
        """An ending of any length finds the calls; from four characters on, it finds few others."""
        lead = scribe.start()
        calls = [scribe.recording.request(lead, "write_file", "{}") for _ in range(40)]
        scribe.call(lead)
        with store.view() as view:
            requests = {
                call: stored
                for stored in view.find_receipts(ReceiptQuery(kind="tool.requested"))
                for call in calls
                if call.encode() in stored.payload
            }
            for call in (calls[0], calls[-1]):
                for length in (1, 3, 4, 6, 26, 31):
                    found = list(view.find_call_receipts(call[-length:]))
                    assert requests[call] in found
                    assert sorted(found, key=lambda stored: stored.id) == found
            assert [requests[calls[0]]] == list(view.find_call_receipts(calls[0][-12:]))
            assert [] == list(view.find_call_receipts("UUUU"))

    def test_requests_without_an_outcome_are_found(self, store: LedgerStore, scribe: Scribe) -> None:
        """The search is bounded: the latest runs, open ones first, the end of each, and a limit in all."""
        for number in range(12):
            run = scribe.start()
            calls = [scribe.recording.request(run, "write_file", "{}") for _ in range(number * 5 % 6)]
            for call in calls[number % 3 :: 2]:
                scribe.recording.finish(run, call, "{}")
            for call in calls[number % 3 + 1 :: 4]:
                scribe.recording.fail_call(run, call, "os-error", "no")
            if number % 2:
                scribe.recording.close(run, report="done")
        with store.view() as view:
            for runs, of_each, most in product((1, 4, 12, 100), (1, 3, 100), (1, 10, 1_000)):
                found = [stored.id for stored in view.find_open_requests(runs=runs, of_each=of_each, most=most)]
                assert sorted(open_requests(view, runs, of_each, most)) == sorted(found)
