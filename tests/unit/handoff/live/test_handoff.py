"""A handoff as synchronous programs see it."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from batonpass.errors import InvalidValueError, StreamClosedError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, LONG, Places, at_once, bodies

SOON = timedelta(milliseconds=20)


def counted() -> tuple[list[str], Callable[[LiveRun], str]]:
    """Return a runner, and where it writes down what it was asked to do."""
    calls: list[str] = []

    def work(run: LiveRun) -> str:
        calls.append(run.task)
        return "done"

    return calls, work


def test_waiting_runs_what_is_ours_to_run(lead: LiveRun) -> None:
    """A caller-carried handoff with a runner is worked on by whoever waits for it, once."""
    calls, work = counted()
    handoff = lead.hand_off("worker", "one", run=work)

    assert (["done", "done"], ["one"]) == ([handoff.wait().value, handoff.wait().value], calls)


def test_a_time_that_is_none_is_refused_before_anybody_works(lead: LiveRun) -> None:
    """Otherwise the work would be done, and its result would be lost in the error."""
    calls, work = counted()
    handoff = lead.hand_off("worker", "one", run=work)

    with pytest.raises(InvalidValueError, match="timeout"):
        handoff.wait("10x")
    assert (State.OFFERED, []) == (handoff.state(), calls)


def test_threads_that_wait_get_one_result(lead: LiveRun) -> None:
    """One of them works, the others wait for it, and all get what came of it."""
    calls, work = counted()
    handoff = lead.hand_off("worker", "one", run=work)
    found = at_once(*[lambda: handoff.wait(timedelta(seconds=30)).value] * 4)

    assert (["done"] * 4, ["one"]) == (found, calls)


def test_waiting_ends_where_somebody_has_to_act(lead: LiveRun) -> None:
    """A held or asked handoff is returned, not waited for."""
    held, asked = lead.hand_off("worker", "one", hold=True), lead.hand_off("worker", "two")
    asked.ask("which?")

    assert (State.HELD, "which?") == (held.wait().state, asked.wait().question)


def test_waiting_for_nobody_times_out_and_loses_nothing(lead: LiveRun) -> None:
    """A worker that never comes is a timeout; the handoff is as it was."""
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)

    with pytest.raises(TimeoutError, match="is ready after"):
        handoff.wait(SOON)
    assert State.READY is handoff.state()


def test_whoever_looks_at_a_result_may_build_on_it(places: Places) -> None:
    """Reading it without waiting does not make it a verified one."""
    relay = places.relay(policy=HandoffPolicy(verified_only=True))
    lead = relay.start("begin", by=ANA)
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    lease = relay.claim(holder="w", lease_for=LONG)
    relay.handoff(handoff.id).run(lambda _: "done", lease=lease)

    assert "done" == handoff.result().value
    with pytest.raises(Exception, match="nobody has verified"):
        lead.hand_off("worker", "two")


def test_a_block_whose_attempt_was_ended_says_so(relay: Relay, lead: LiveRun) -> None:
    """Unless something went wrong inside, which says more."""
    one, two = lead.hand_off("worker", "one"), lead.hand_off("worker", "two")

    def work(handoff: LiveHandoff, error: Exception | None = None) -> None:
        with handoff:
            relay.handoff(handoff.id).cancel(by=ANA, reason="stop")
            if error is not None:
                raise error

    with pytest.raises(StreamClosedError):
        work(one)
    with pytest.raises(ValueError, match="boom"):
        work(two, ValueError("boom"))


def test_running_what_is_taken_gives_what_came_of_it(lead: LiveRun, relay: Relay) -> None:
    """Nobody works twice; the second is told how it stands."""
    handoff = lead.hand_off("worker", "one")
    child = handoff.accept()

    assert State.RUNNING is relay.handoff(handoff.id).run(lambda _: "twice").state
    child.close()
    assert 1 == len(bodies(relay, "handoff.accepted"))


@pytest.mark.filterwarnings("ignore::batonpass.errors.handoff.ReusedResultWarning")
def test_replaying_a_finished_handoff_is_one_run_and_one_result(lead: LiveRun, relay: Relay) -> None:
    """As often as it is asked for."""
    for _ in range(3):
        with lead.hand_off("worker", "one") as child:
            child.report("done")

    assert (1, 1) == (len(bodies(relay, "handoff.accepted")), len(bodies(relay, "handoff.completed")))


@pytest.mark.parametrize("settlement", ["", "maybe", None])
def test_a_settlement_is_one_of_two(lead: LiveRun, settlement: str) -> None:
    """Repeat it, or take it as done."""
    handoff = lead.hand_off("worker", "one")

    with pytest.raises((InvalidValueError, ValueError)):
        handoff.settle("call_" + "0" * 26, settlement)  # type: ignore[arg-type]
