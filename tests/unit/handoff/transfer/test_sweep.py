"""Sweeping: what a dead worker or a deadline left behind goes on, or ends, and is recorded."""

from datetime import UTC, datetime, timedelta

import pytest

from batonpass.errors import StreamClosedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Decision
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, AT_ONCE, LONG, Places, at_once, bodies, kinds

PAST = datetime(2020, 1, 1, tzinfo=UTC)
FUTURE = datetime(2200, 1, 1, tzinfo=UTC)


def claimed(relay: Relay, lease_for: timedelta) -> LiveRun:
    lease = relay.claim(holder="worker", lease_for=lease_for)
    assert lease is not None
    return relay.handoff(lease.handoff).accept(lease=lease)


@pytest.fixture
def relay(places: Places) -> Relay:
    """Return a relay whose clock is years behind the store's: what is overdue there can still be accepted here."""
    return places.relay(clock=FrozenClock(PAST - timedelta(days=1)))


def test_a_dead_workers_attempt_lapses_and_the_handoff_goes_on(relay: Relay, lead: LiveRun) -> None:
    """Its run takes nothing more; the next worker claims the same handoff."""
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    dead = claimed(relay, AT_ONCE)

    assert (1, State.READY) == (relay.sweep(), handoff.state())
    with pytest.raises(StreamClosedError):
        dead.record(Decision("too late"))
    with relay.store.view() as view:
        assert RunState.LAPSED is view.get_run(dead.id).state
    assert 2 == claimed(relay, LONG).attempt
    assert 0 == relay.sweep()


def test_a_claim_that_was_never_begun_is_given_back(relay: Relay, lead: LiveRun) -> None:
    """Nothing is recorded of it: a claim leaves no receipt."""
    lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    relay.claim(holder="dies", lease_for=AT_ONCE)
    before = kinds(relay)

    assert (1, before) == (relay.sweep(), kinds(relay))
    assert 1 == claimed(relay, LONG).attempt


def test_a_heartbeat_keeps_an_attempt_alive(relay: Relay, lead: LiveRun) -> None:
    """A lease that is renewed in time is not swept."""
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    lease = relay.claim(holder="w", lease_for=AT_ONCE)
    assert lease is not None
    run = relay.handoff(handoff.id).accept(lease=lease)
    relay.heartbeat(lease, LONG)

    assert (0, State.RUNNING) == (relay.sweep(), handoff.state())
    run.close()


@pytest.mark.parametrize("state", [State.OFFERED, State.READY, State.HELD, State.ASKED, State.RUNNING])
def test_what_is_overdue_expires(relay: Relay, lead: LiveRun, state: State) -> None:
    """Wherever it is, once; a run that works on it is fenced."""
    carrier = Carrier.WORKER if state is State.READY else Carrier.CALLER
    handoff = lead.hand_off("worker", "one", deadline=PAST, carrier=carrier, hold=state is State.HELD)
    if state is State.ASKED:
        handoff.ask("which?")
    run = handoff.accept() if state is State.RUNNING else None
    assert state is handoff.state()

    assert (1, State.EXPIRED, 0) == (relay.sweep(), handoff.state(), relay.sweep())
    if run is not None:
        with pytest.raises(StreamClosedError):
            run.close()


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.DECLINED, State.CANCELLED])
def test_what_is_over_does_not_expire(relay: Relay, lead: LiveRun, state: State) -> None:
    """A deadline that passed afterwards is nobody's concern."""
    handoff = lead.hand_off("worker", "one", deadline=PAST)
    match state:
        case State.COMPLETED:
            handoff.run(lambda _: "done")
        case State.FAILED:
            handoff.run(lambda _: 1 / 0)
        case State.DECLINED:
            handoff.decline("no")
        case _:
            handoff.cancel(reason="no")

    assert (0, state) == (relay.sweep(), handoff.state())


def test_what_is_below_an_expired_handoff_is_withdrawn(relay: Relay, lead: LiveRun) -> None:
    """Nobody waits for it any more: it does not run on, nor wait for ever."""
    handoff = lead.hand_off("worker", "mid", deadline=PAST)
    mid = handoff.accept()
    running, ready = mid.hand_off("leaf", "runs"), mid.hand_off("leaf", "waits", carrier=Carrier.WORKER)
    leaf = running.accept()
    deepest = leaf.hand_off("leaf", "deepest", hold=True)
    relay.sweep()

    assert [State.EXPIRED, State.CANCELLED, State.CANCELLED, State.CANCELLED] == [
        one.state() for one in (handoff, running, ready, deepest)
    ]


def test_sweepers_do_not_stumble_over_each_other(places: Places) -> None:
    """Four at once end every dead attempt once."""
    relay = places.relay()
    lead = relay.start("begin", by=ANA)
    for number in range(4):
        lead.hand_off("worker", f"lapses {number}", carrier=Carrier.WORKER)
        claimed(relay, AT_ONCE)
        lead.hand_off("worker", f"expires {number}", deadline=PAST)
    found = at_once(*[places.relay().sweep for _ in range(4)])

    assert (4, 4) == (len(bodies(relay, "handoff.lapsed")), len(bodies(relay, "handoff.expired")))
    assert [] == [answer for answer in found if not isinstance(answer, int)]


class TestClocks:
    """Relays whose clocks are a day apart work on one ledger."""

    @pytest.mark.parametrize("days", [-1, 1])
    def test_leases_are_counted_by_the_store(self, places: Places, days: int) -> None:
        """A worker whose clock is wrong neither loses its lease at once nor keeps it for a day."""
        wrong = FrozenClock(datetime.now(UTC) + timedelta(days=days))
        lead = places.relay().start("begin", by=ANA)
        handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
        run = claimed(places.relay(clock=wrong), LONG)

        assert (0, State.RUNNING) == (places.relay(clock=wrong).sweep(), handoff.state())
        run.close()
        lead.hand_off("worker", "two", carrier=Carrier.WORKER)
        claimed(places.relay(clock=wrong), AT_ONCE)
        assert 1 == places.relay(clock=FrozenClock(wrong.now() - timedelta(days=2 * days))).sweep()

    @pytest.mark.parametrize("days", [-1, 1])
    def test_deadlines_are_those_of_the_store(self, places: Places, days: int) -> None:
        """A sweeper in tomorrow expires nothing of today; one in yesterday expires what is due."""
        sweeper = places.relay(clock=FrozenClock(datetime.now(UTC) + timedelta(days=days)))
        lead = places.relay().start("begin", by=ANA)
        soon = lead.hand_off("worker", "soon", deadline=datetime.now(UTC) + timedelta(hours=1))
        due = lead.hand_off("worker", "due", deadline=datetime.now(UTC) - timedelta(seconds=1))

        assert (1, State.OFFERED, State.EXPIRED) == (sweeper.sweep(), soon.state(), due.state())

    def test_the_order_of_a_tree_does_not_depend_on_clocks(self, places: Places) -> None:
        """Three relays hand a tree to and fro, a day apart each: it verifies, and attempts stay in order."""
        clocks = [FrozenClock(datetime.now(UTC) + timedelta(days=days)) for days in (0, 1, -1)]
        relays = [places.relay(clock=clock) for clock in clocks]
        lead = relays[0].start("begin", by=ANA)
        handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
        done: list[int] = []
        for relay in relays:
            run = claimed(relay, AT_ONCE)
            run.call(done.append, 1)
            run.checkpoint(run.attempt)
            relays[0].sweep()
            relays[0].store.postpone(handoff.id, AT_ONCE)
        for relay in relays[1:]:
            lead = relay.resume(lead.id)
            lead.add_intent(f"said on {relay.admin.identity()[0]}")
        last = claimed(relays[0], LONG)

        assert ([1], 3, 3) == (done, last.messages(), last.earlier.attempts)
        last.close()
        assert (1, 3) == (len(handoff.baton().intent), len(lead.hand_off("worker", "after").baton().intent))


def test_a_far_deadline_is_kept_as_it_is(lead: LiveRun) -> None:
    """To the microsecond, in UTC."""
    deadline = FUTURE.replace(microsecond=123_456)

    assert deadline == lead.hand_off("worker", "one", deadline=deadline).baton().deadline
