"""Attempts that stop in order to wait for a handoff below them, and go on when the wait is over."""

import pytest

from batonpass.errors import HandoffSuspendedError, NothingToDecideError, StreamClosedError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.transfer.wait import resume_above, suspend
from batonpass.model.base.kinds import WaitUntil
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Decision
from batonpass.model.bodies.body import HandoffParked, HandoffResumed, Kind
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay, desk_of
from batonpass.store.port import LedgerView
from tests.unit.handoff.places import ANA, LONG, bodies


def claimed(relay: Relay) -> LiveRun:
    """Claim the oldest handoff and accept it."""
    lease = relay.claim(holder="worker", lease_for=LONG)
    assert lease is not None
    return relay.handoff(lease).accept(lease=lease)


def stop(
    relay: Relay, run: LiveRun, awaits: LiveHandoff, until: WaitUntil = WaitUntil.SETTLED
) -> HandoffSuspendedError:
    """Let a run stop and wait for one of its handoffs."""
    return suspend(desk_of(relay), run._holding, awaits.id, until)


def leases(view: LedgerView) -> int:
    """Return how many leases are held."""
    return len(list(view.find_leases()))


def test_an_attempt_that_waits_holds_nothing_and_goes_on_afterwards(relay: Relay, lead: LiveRun) -> None:
    """Its run is over and so is its lease; when the child has ended, the next attempt finds the child by its task."""
    above = lead.hand_off("parent", "both", carrier=Carrier.WORKER)
    parent = claimed(relay)
    below = parent.hand_off("child", "half", carrier=Carrier.WORKER)
    stopped = stop(relay, parent, below)

    assert (above.id, below.id) == (stopped.handoff, stopped.awaits)
    with relay.store.view() as view:
        assert (RunState.SUSPENDED, 0) == (view.get_run(parent.id).state, leases(view))
    assert (State.HELD, None, False) == (above.state(), above.result().blocked_by, above.result().settled)
    with pytest.raises(StreamClosedError):
        parent.record(Decision("too late"))
    with pytest.raises(NothingToDecideError, match=f"waits for {below.id}"):
        above.approve(by=ANA)
    claimed(relay).close()
    assert (0, State.READY) == (relay.sweep(), above.state())
    again = claimed(relay)
    same = again.hand_off("child", "half", carrier=Carrier.WORKER)
    assert (2, below.id, True) == (again.attempt, same.id, same.wait().delivered)
    again.close()

    assert State.COMPLETED is above.state()
    assert [HandoffResumed(handoff=above.id, attempt=1, awaits=below.id)] == bodies(relay, Kind.HANDOFF_RESUMED)
    relay.verify()


def test_a_child_that_ends_before_the_wait_is_recorded_is_noticed(relay: Relay, lead: LiveRun) -> None:
    """Nobody waited for it yet when it ended, so the attempt that stops looks once more itself."""
    above = lead.hand_off("parent", "both", carrier=Carrier.WORKER)
    parent = claimed(relay)
    below = parent.hand_off("child", "half", carrier=Carrier.WORKER)
    claimed(relay).close()
    stop(relay, parent, below)

    assert (State.READY, 0) == (above.state(), relay.sweep())


@pytest.mark.parametrize(
    ("until", "expected"),
    [(WaitUntil.SETTLED, State.READY), (WaitUntil.DECIDED, State.HELD)],
    ids=["until it needs somebody", "through a decision"],
)
def test_a_hold_ends_only_a_wait_that_says_so(relay: Relay, lead: LiveRun, until: WaitUntil, expected: State) -> None:
    """A parent that wants to act on a hold goes on; one that waits for the decision does not."""
    above = lead.hand_off("parent", "both", carrier=Carrier.WORKER)
    parent = claimed(relay)
    below = parent.hand_off("child", "half", carrier=Carrier.WORKER, hold=True)
    stop(relay, parent, below, until)

    assert expected is above.state()


def test_a_decision_goes_up_through_all_who_wait(relay: Relay, lead: LiveRun) -> None:
    """Whoever decides resumes the whole way: each level is carried by its caller, so each can be taken again."""
    above = lead.hand_off("top", "all")
    top = above.accept()
    middle = top.hand_off("middle", "most")
    run = middle.accept()
    below = run.hand_off("bottom", "some", hold=True)
    stop(relay, run, below, WaitUntil.DECIDED)
    stop(relay, top, middle, WaitUntil.DECIDED)
    assert [below.id] * 2 == [above.result().blocked_by, middle.result().blocked_by]
    below.approve(by=ANA)

    assert [State.OFFERED] * 3 == [handoff.state() for handoff in (above, middle, below)]
    assert 0 == resume_above(desk_of(relay), below.id)
    relay.verify()


def test_a_parked_handoff_says_why(relay: Relay, lead: LiveRun) -> None:
    """It has failed with the code of its receipt, and its attempts have not."""
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    desk = desk_of(relay)
    parked = HandoffParked(handoff=handoff.id, attempt=0, error="attempts-exhausted")
    desk.recording.act(handoff.id, lambda *_: parked, (desk.text("reason", "25 workers died of it"),))

    result = handoff.result()
    assert (State.FAILED, "attempts-exhausted", "25 workers died of it") == (result.state, result.error, result.reason)
    assert State.READY is handoff.retry(by=ANA).handoff.state
