"""How attempts end that did not close themselves: lapsed, cancelled, or taken over from a caller that is gone."""

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import (
    FencedError,
    IllegalTransitionError,
    LeaseLostError,
    NotFoundError,
    StaleHeadError,
    StreamClosedError,
)
from batonpass.ledger.position import need
from batonpass.model.base.ids import HandoffId, PrincipalId, StreamId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import (
    Body,
    ChildHead,
    HandoffCancelled,
    HandoffExpired,
    HandoffFailed,
    HandoffLapsed,
    HandoffRetried,
    Kind,
)
from batonpass.model.ledger.run import Handoff, RunState
from batonpass.store.memory import MemoryStore
from batonpass.testing.builders import ANA, Scribe, a_scribe
from tests.unit.ledger.reading import head_of, last_in, offered_to_workers, receipts_in, state_of, words_of
from tests.unit.ledger.stores import RacingStore, two_processes
from tests.unit.model.examples import EDITOR


def test_a_lapse_ends_the_attempt_and_not_the_handoff() -> None:
    """A worker that died is named with where it stood; the next attempt hangs from that; the dead one is shut out."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = offered_to_workers(scribe)
    dead = scribe.recording.accept(handoff)
    scribe.call(dead)
    stood = head_of(store, dead.run.id)
    scribe.recording.lapse(handoff)
    lapsed = last_in(store, handoff)
    heir = scribe.recording.accept(handoff)

    assert HandoffLapsed(handoff=handoff, attempt=1, ended=stood) == lapsed.body
    with store.view() as view:
        assert view.get_stream(StreamId(handoff)).head == receipts_in(store, heir.run.id)[0].previous
    assert 2 == heir.run.attempt
    with pytest.raises(StreamClosedError):
        scribe.call(dead)
    with store.view() as view:
        assert RunState.LAPSED == view.get_run(dead.run.id).state
    scribe.recording.close(heir)
    assert 3 == verify_ledger(store).runs


def test_a_lapse_of_a_run_that_just_moved_ends_it_where_it_stands_now() -> None:
    """Whoever ends the attempt of a worker that writes on meanwhile loses nothing that was written."""
    store = RacingStore()
    scribe = a_scribe(store)
    handoff = offered_to_workers(scribe)
    alive = scribe.recording.accept(handoff)
    store.first.append(lambda: scribe.call(alive))
    scribe.recording.lapse(handoff)

    assert State.READY == state_of(store, handoff)
    assert HandoffLapsed(handoff=handoff, attempt=1, ended=head_of(store, alive.run.id)) == (
        last_in(store, handoff).body
    )
    assert 3 == head_of(store, alive.run.id).seq
    with pytest.raises(StreamClosedError):
        scribe.call(alive)


def test_a_run_that_never_stands_still_cannot_be_ended() -> None:
    """A worker that writes before every try is not chased for ever; nothing is written about it."""
    store = RacingStore()
    scribe = a_scribe(store)
    handoff = offered_to_workers(scribe)
    alive = scribe.recording.accept(handoff)

    def write_on() -> None:
        store.first.clear()
        scribe.recording.request(alive, "t", "{}")
        store.first.append(write_on)

    store.first.append(write_on)
    with pytest.raises(StaleHeadError, match=handoff):
        scribe.recording.lapse(handoff)

    assert State.RUNNING == state_of(store, handoff)


@pytest.mark.parametrize("taken", [False, True], ids=["before anybody took it", "after somebody took it"])
def test_only_a_workers_handoff_lapses(taken: bool) -> None:  # noqa: FBT001
    """A handoff that its caller carries has no lease that could run out."""
    scribe = a_scribe(store := MemoryStore())
    handoff = scribe.offer(scribe.start())
    if taken:
        scribe.recording.accept(handoff)
    before = verify_ledger(store).receipts

    with pytest.raises((IllegalTransitionError, NotFoundError)):
        scribe.recording.lapse(handoff)

    assert before == verify_ledger(store).receipts


def test_a_cancelled_offer_ends_nothing_else() -> None:
    """Before anybody took it, cancelling is one receipt that names who did it."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = scribe.offer(scribe.start())
    scribe.recording.cancel(handoff, by=ANA, reason="changed my mind")

    assert HandoffCancelled(handoff=handoff, by=ANA) == last_in(store, handoff).body
    assert State.CANCELLED == state_of(store, handoff)
    with pytest.raises(IllegalTransitionError):
        scribe.recording.cancel(handoff, by=ANA, reason="again")
    assert 1 == verify_ledger(store).handoffs


def test_a_cancelled_run_is_fenced() -> None:
    """Cancelling a running handoff ends its run where it stood."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = scribe.offer(scribe.start())
    child = scribe.recording.accept(handoff)
    stood = head_of(store, child.run.id)
    scribe.recording.cancel(handoff, by=ANA, reason="stop")

    assert HandoffCancelled(handoff=handoff, by=ANA, ended=stood) == last_in(store, handoff).body
    with pytest.raises(StreamClosedError):
        scribe.recording.close(child)
    with store.view() as view:
        assert RunState.CANCELLED == view.get_run(child.run.id).state
    assert 2 == verify_ledger(store).runs


def test_what_somebody_does_to_a_handoff_is_made_from_how_it_stands() -> None:
    """The act is told the handoff and, only while an attempt runs, where its run stands; then it is written."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = scribe.offer(scribe.start())
    told: list[tuple[State, ChildHead | None]] = []

    def expire(known: Handoff, ended: ChildHead | None) -> Body:
        told.append((known.state, ended))
        return HandoffExpired(handoff=known.id, ended=ended)

    child = scribe.recording.accept(handoff)
    stood = head_of(store, child.run.id)
    signed = scribe.recording.act(handoff, expire)

    assert [(State.RUNNING, stood)] == told
    assert HandoffExpired(handoff=handoff, ended=stood) == signed.receipt.body == last_in(store, handoff).body
    with store.view() as view:
        assert RunState.EXPIRED == view.get_run(child.run.id).state
    assert State.EXPIRED == state_of(store, handoff)
    assert 2 == verify_ledger(store).runs


def test_an_act_on_a_handoff_that_nobody_runs_ends_no_run() -> None:
    """Before the first attempt there is nothing that could be ended, and whoever asks for it is told so."""
    scribe = a_scribe(MemoryStore())
    handoff = scribe.offer(scribe.start())

    def lapse(known: Handoff, ended: ChildHead | None) -> Body:
        return HandoffLapsed(handoff=known.id, attempt=1, ended=need(ended, known))

    with pytest.raises(NotFoundError, match="running attempt"):
        scribe.recording.act(handoff, lapse)


def test_an_act_under_a_lost_lease_is_refused() -> None:
    """Whoever shows the token of a lease that another holds may neither act on the handoff nor take it."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = offered_to_workers(scribe)

    with pytest.raises(LeaseLostError):
        scribe.recording.accept(handoff, token=7)
    with pytest.raises(LeaseLostError):
        scribe.recording.act(handoff, lambda known, _: HandoffCancelled(handoff=known.id, by=ANA), token=7)
    assert State.READY == state_of(store, handoff)


def a_caller_that_is_gone(first: Scribe) -> tuple[HandoffId, Handoff]:
    """Return a handoff that its caller has taken, with a call under way and a child that runs."""
    handoff = first.offer(first.start())
    child = first.recording.accept(handoff)
    first.recording.request(child, "t", "{}")
    first.delegate(child)
    with first.store.view() as view:
        return handoff, view.get_handoff(handoff)


def test_what_a_lost_caller_left_is_offered_again_in_one_commit() -> None:
    """Its run gets a new key and closes as failed with its children's heads; the handoff waits for another attempt."""
    store = RacingStore()
    first, second = two_processes(store)
    handoff, running = a_caller_that_is_gone(first)
    assert running.run is not None
    children = second.recording.children(running.run)
    store.tried.clear()
    second.recording.take_over(handoff, by="agent:lead", reason="its process is gone")
    closed = last_in(store, running.run)

    assert [[Kind.RUN_REKEYED, Kind.HANDOFF_FAILED, Kind.HANDOFF_RETRIED]] == [
        [entry.signed.receipt.kind for entry in batch] for batch in store.tried
    ]
    assert isinstance(closed.body, HandoffFailed)
    assert (2, "caller.lost", children) == (closed.epoch, closed.body.error, closed.body.children)
    assert {"message": b"its process is gone"} == words_of(store, closed)
    assert HandoffRetried(handoff=handoff, by=PrincipalId("agent:lead")) == last_in(store, handoff).body
    assert State.OFFERED == state_of(store, handoff)
    assert 2 == second.recording.accept(handoff).run.attempt
    assert 4 == verify_ledger(store).runs


def test_a_caller_that_was_only_slow_is_fenced() -> None:
    """Whoever held the run that was taken over writes nothing more."""
    store = MemoryStore()
    first, second = two_processes(store)
    handoff = first.offer(first.start())
    slow = first.recording.accept(handoff)
    second.recording.take_over(handoff, by="agent:lead", reason="its process is gone")

    with pytest.raises((FencedError, StreamClosedError)):
        first.recording.close(slow)
    assert State.OFFERED == state_of(store, handoff)


def test_an_attempt_that_is_over_is_not_taken_over() -> None:
    """A handoff that nobody took, or that came to its own end, stays as it is."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = scribe.offer(scribe.start())
    with pytest.raises(NotFoundError, match="attempt"):
        scribe.recording.take_over(handoff, by=ANA, reason="too early")
    scribe.recording.close(scribe.recording.accept(handoff))
    with pytest.raises(StreamClosedError):
        scribe.recording.take_over(handoff, by=ANA, reason="too late")

    assert State.COMPLETED == state_of(store, handoff)


def test_an_attempt_that_hangs_from_what_is_no_longer_last_is_refused() -> None:
    """Whoever takes a handoff as it stood a moment ago is told that it has moved on, and nothing is written."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = scribe.recording.offer(scribe.start(), EDITOR, "edit", carrier=Carrier.WORKER)
    with store.view() as view:
        known = view.get_handoff(handoff)
    scribe.recording.accept(handoff)
    scribe.recording.lapse(handoff)
    with store.view() as view:
        again = view.get_handoff(handoff)

    with pytest.raises(StaleHeadError, match=handoff):
        scribe.recording.accept(handoff, known=(again, known.initiated, ANA))

    assert State.READY == state_of(store, handoff)
    with store.view() as view:
        head = view.get_stream(StreamId(handoff)).head
    assert 2 == scribe.recording.accept(handoff, known=(again, head, ANA)).run.attempt
