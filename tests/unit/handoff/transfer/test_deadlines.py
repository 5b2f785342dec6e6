"""Deadlines hold also if nobody sweeps: at the acceptance, at a call, at a heartbeat and at the close."""

from datetime import UTC, datetime, timedelta

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import DeadlinePassedError, HandoffEndedError, LeaseLostError, StreamClosedError
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import Kind
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.testing.clock import FrozenClock
from tests.unit.handoff.places import ANA, Places

LONG = timedelta(minutes=10)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FrozenClock:
    """Return a clock two hours behind the store's: a deadline in an hour has passed there, and here when it moves."""
    return FrozenClock(datetime.now(UTC) - 2 * HOUR)


@pytest.fixture
def late_relay(places: Places, clock: FrozenClock) -> Relay:
    return places.relay(clock=clock)


def test_what_is_out_of_time_is_not_accepted(late_relay: Relay, clock: FrozenClock) -> None:
    """An offer that nobody took in time expires when somebody tries, and so does one that was just written."""
    lead = late_relay.start("Edit it", by=ANA)
    old = lead.hand_off("editor", "old", deadline=HOUR)
    clock.tick(2 * HOUR)
    new = lead.hand_off("editor", "new", deadline=clock.now() - HOUR)
    for handoff in (old, new):
        with pytest.raises(HandoffEndedError, match="expired"):
            handoff.accept()

    assert [State.EXPIRED] * 2 == [old.state(), new.state()]


def test_no_call_is_made_after_the_deadline(late_relay: Relay, clock: FrozenClock) -> None:
    """Observed or not, the call is denied with a receipt, and the close ends the handoff as expired."""
    lead = late_relay.start("Edit it", by=ANA)
    handoff = lead.hand_off("editor", "a part", deadline=HOUR)
    run = handoff.accept()
    run.call(len, "in time")
    child = run.hand_off("printer", "print it", carrier=Carrier.WORKER)
    clock.tick(2 * HOUR)
    with pytest.raises(DeadlinePassedError, match="hand the rest off again with more time"):
        run.call(len, "too late")
    with pytest.raises(StreamClosedError):
        run.close()

    assert (State.EXPIRED, State.CANCELLED) == (handoff.state(), child.state())
    with late_relay.store.view() as view:
        denied = [*view.find_receipts(ReceiptQuery(stream=run.id, kind=Kind.TOOL_DENIED))]  # type: ignore[arg-type]
        assert (1, RunState.EXPIRED) == (len(denied), view.get_run(run.id).state)
    lead.close()
    verify_ledger(late_relay.store)


def test_a_heartbeat_after_the_deadline_ends_the_work(late_relay: Relay, clock: FrozenClock) -> None:
    """A worker that is too late loses its lease, and the handoff expires."""
    handoff = late_relay.start("Edit it", by=ANA).hand_off("editor", "a part", deadline=HOUR, carrier=Carrier.WORKER)
    lease = late_relay.claim(holder="worker", lease_for=LONG)
    assert lease is not None
    run = handoff.accept(lease=lease)
    late_relay.heartbeat(lease, LONG)
    clock.tick(2 * HOUR)
    with pytest.raises(LeaseLostError):
        late_relay.heartbeat(lease, LONG)

    assert (State.EXPIRED, 1) == (handoff.state(), run.attempt)


def test_whoever_waits_wakes_at_the_deadline(late_relay: Relay, clock: FrozenClock) -> None:
    """No worker came, and nobody sweeps: the wait ends all the same."""
    handoff = late_relay.start("Edit it", by=ANA).hand_off("nobody", "a part", deadline=HOUR, carrier=Carrier.WORKER)
    with pytest.raises(TimeoutError):
        handoff.wait(timedelta(0))
    clock.tick(2 * HOUR)

    assert State.EXPIRED is handoff.wait().state


def test_a_clock_that_runs_ahead_ends_no_work(places: Places) -> None:
    """The store decides what is out of time, as it does for a sweep."""
    clock = FrozenClock(datetime.now(UTC))
    handoff = places.relay(clock=clock).start("Edit it", by=ANA).hand_off("editor", "a part", deadline=HOUR)
    run = handoff.accept()
    clock.tick(2 * HOUR)
    run.call(len, "in time")
    run.close()

    assert State.COMPLETED is handoff.state()
