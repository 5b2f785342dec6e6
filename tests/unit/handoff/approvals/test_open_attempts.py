"""Attempts that cannot be suspended: their held calls are decided like a root's, while they go on."""

from datetime import timedelta

import pytest

from batonpass.accounts.why.why import explain
from batonpass.audit.meant_ids import find_waiting_calls, get_waiting
from batonpass.errors import CallDecidedError, CallDeniedError, CallSuspendedError, HandoffEndedError, NotFoundError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import CallId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import HeldCall, RunState
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.testing import FrozenClock
from tests.unit.handoff.approvers import ANA, Desk, a_desk, deploy
from tests.unit.handoff.places import bodies

OPEN = Policy(enforce=True, proven=False)


def an_open_attempt(desk: Desk) -> LiveRun:
    """Return an attempt whose program goes on while a call waits."""
    run = desk.lead.hand_off("helper", "Ship it", criteria=["it answers"]).accept()
    run._holding.stays_open = True
    return run


def held_call(run: LiveRun, place: str = "prod") -> CallId:
    """Return a call of a run that waits."""
    with pytest.raises(CallSuspendedError, match="batonpass handoff approve") as held:
        run.call(deploy, place)
    return CallId(held.value.call)


def test_a_held_call_leaves_the_attempt_open() -> None:
    """Its handoff does not wait: the call does, and is found, listed and shown like a root's."""
    desk = a_desk(OPEN)
    run = an_open_attempt(desk)
    call = held_call(run)
    with desk.store.view() as view:
        known = view.get_run(run.id)
        assert known.handoff is not None
        assert (RunState.OPEN, State.RUNNING) == (known.state, view.get_handoff(known.handoff).state)
        found = get_waiting(view, call)
        assert isinstance(found, HeldCall)
        assert [call] == [each.call for each in find_waiting_calls(view, root=desk.lead.id)]
        assert [] == list(find_waiting_calls(view, root=run.id))
    text = desk.relay.held_call(call).material().text

    for part in ("which goes on meanwhile, waits before a call", "task      Ship it", 'place = "prod"', call):
        assert part in text
    assert call == held_call(run)
    desk.relay.verify()


def test_it_is_made_once_somebody_let_it() -> None:
    """Exactly that call, once; other calls are made meanwhile, and the attempt closes as usual."""
    desk = a_desk(Policy(enforce=True))
    run = an_open_attempt(desk)
    call = held_call(run)
    assert call != held_call(run, "staging")
    desk.relay.held_call(call).approve(by=desk.ana)

    assert "deployed prod" == run.call(deploy, "prod")
    assert call != held_call(run)
    with pytest.raises(CallDecidedError):
        desk.relay.held_call(call).deny(by=desk.ana, reason="late")
    requested = bodies(desk.relay, "tool.requested")[-1]
    with desk.store.view() as view:
        why = explain(view, requested.call)
    assert "user:ana approved it (proven)" in why.answer
    run.close()
    desk.relay.verify()


def test_it_is_refused_for_good() -> None:
    """Also for another process that goes on with the attempt."""
    desk = a_desk(OPEN)
    run = an_open_attempt(desk)
    desk.relay.held_call(held_call(run)).deny(by=ANA, reason="never")

    with pytest.raises(CallDeniedError, match="user:ana denied deploy"):
        run.call(deploy, "prod")


def test_a_process_that_goes_on_with_the_attempt_heeds_what_was_decided() -> None:
    """The decision came before it was resumed."""
    desk = a_desk(OPEN)
    run = an_open_attempt(desk)
    desk.relay.held_call(held_call(run)).approve(by=ANA)
    resumed = desk.relay.resume(run.id)
    resumed._holding.stays_open = True

    assert "deployed prod" == resumed.call(deploy, "prod")
    desk.relay.verify()


def test_a_time_limit_refuses_it() -> None:
    """Its receipt says until when, and whoever makes it again after that is told."""
    clock = FrozenClock()
    relay = Relay(MemoryStore(), policy=Policy(enforce=True, hold_for=timedelta(hours=1)), clock=clock)
    run = relay.start("Ship it", by=ANA).hand_off("helper", "Ship it").accept()
    run._holding.stays_open = True
    held_call(run)
    (held,) = bodies(relay, "tool.held")
    assert (clock.now() + timedelta(hours=1), True) == (held.until, held.stays)
    clock.tick(timedelta(hours=1))

    with pytest.raises(CallDeniedError, match="service:time-limit"):
        run.call(deploy, "prod")


def test_a_call_of_an_attempt_that_is_over_is_not_decided_about() -> None:
    """Nobody would heed it; and a call whose attempt was suspended is decided about with its handoff."""
    desk = a_desk(OPEN)
    run = an_open_attempt(desk)
    call = held_call(run)
    run.close()
    with pytest.raises(HandoffEndedError):
        desk.relay.held_call(call).approve(by=ANA)
    desk.held_attempt()
    suspended = bodies(desk.relay, "tool.held")[-1]

    assert not suspended.stays
    with pytest.raises(NotFoundError):
        desk.relay.held_call(suspended.call)
