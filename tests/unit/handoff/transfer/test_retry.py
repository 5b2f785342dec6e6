"""Trying again: the same baton, what was finished kept, what is in doubt put before whoever goes on."""

from datetime import timedelta

import pytest

from batonpass import Brief, Decision
from batonpass.errors import IllegalTransitionError, InvalidValueError, NotFoundError, StreamClosedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import CallId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, LONG, begin_only, bodies, receipts, words


def boom(_: object) -> None:
    raise ValueError("boom")


def test_a_retry_begins_no_run_by_itself(lead: LiveRun, relay: Relay) -> None:
    """The handoff waits for its next attempt with the same baton; its parent is not asked."""
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER, brief=Brief(rationale="r"))
    handoff.run(boom, lease=relay.claim(holder="w", lease_for=LONG))
    before = handoff.baton()
    again = handoff.retry(reason="once more")

    assert (State.READY, 1, before) == (again.handoff.state, again.kept.attempts, handoff.baton())
    assert "once more" == words(relay, receipts(relay, "handoff.retried")[0], "reason")


def test_another_agent_takes_the_same_baton(lead: LiveRun, relay: Relay) -> None:
    """Its calls, its items and its task are those of the first."""
    done: list[str] = []
    handoff = lead.hand_off("worker", "one", items=[Decision("d")])
    first = handoff.accept()
    first.call(done.append, "a")
    first.fail(ValueError("boom"))
    handoff.replace("expert", by=ANA, reason="it is hard")
    with handoff as child:
        child.call(done.append, "a")
        assert child.baton is not None
        assert ("expert", "d", "one") == (child.agent, child.baton.decisions[0].what, child.task)

    assert (["a"], "expert", 1) == (done, handoff.info().to, bodies(relay, "handoff.completed")[0].kept)


@pytest.mark.parametrize("to", ["", "two words", "\x1b"])
def test_a_replacement_has_a_name(lead: LiveRun, to: str) -> None:
    """One that is no agent's takes nothing."""
    handoff = lead.hand_off("worker", "one")
    handoff.run(boom)

    with pytest.raises(InvalidValueError):
        handoff.replace(to)
    assert State.FAILED is handoff.state()


@pytest.mark.parametrize("state", ["offered", "running", "completed", "cancelled"])
def test_only_what_failed_was_declined_or_refuted_is_tried_again(lead: LiveRun, state: str) -> None:
    """Everything else goes on, or is over."""
    handoff = lead.hand_off("worker", "one")
    match state:
        case "running":
            handoff.accept()
        case "completed":
            handoff.accept().close()
        case "cancelled":
            handoff.cancel(reason="no")

    with pytest.raises(IllegalTransitionError):
        handoff.retry()
    with pytest.raises(IllegalTransitionError):
        handoff.replace("expert")


def test_a_retry_may_settle_what_is_in_doubt(lead: LiveRun, relay: Relay) -> None:
    """What to repeat and what to skip is decided with the retry, one receipt each."""
    done: list[str] = []
    handoff = lead.hand_off("worker", "one")
    child = handoff.accept()
    repeat, skip = begin_only(child, done.append, "a"), begin_only(child, done.append, "b")
    child.fail(ValueError("died"))
    again = handoff.retry(by=ANA, repeat=[repeat], skip=[skip])
    with handoff as child:
        child.call(done.append, "a")
        child.call(done.append, "b")

    assert (["a"], 2) == (done, len(bodies(relay, "handoff.settled")))
    assert {repeat: "repeat", skip: "skip"} == dict(again.kept.settled)


def test_a_retry_that_settles_what_is_not_in_doubt_is_none(lead: LiveRun) -> None:
    """Nothing is tried again under a wrong assumption."""
    handoff = lead.hand_off("worker", "one")
    handoff.run(boom)

    with pytest.raises(NotFoundError):
        handoff.retry(repeat=[CallId("call_" + "0" * 26)])
    assert State.FAILED is handoff.state()


def test_cancelling_ends_everything_below(lead: LiveRun) -> None:
    """Running, waiting, and what earlier attempts left behind."""
    handoff = lead.hand_off("worker", "mid")
    first = handoff.accept()
    orphan = first.hand_off("leaf", "of the first attempt", carrier=Carrier.WORKER)
    first.fail(ValueError("died"))
    handoff.retry()
    second = handoff.accept()
    waiting, running = second.hand_off("leaf", "waits"), second.hand_off("leaf", "runs")
    deepest = running.accept().hand_off("leaf", "deepest", hold=True)
    handoff.cancel(reason="not needed")

    assert [State.CANCELLED] * 5 == [one.state() for one in (handoff, orphan, waiting, running, deepest)]


def test_somebody_has_to_decide(relay: Relay, lead: LiveRun) -> None:
    """Without a parent at hand, whoever acts is named."""
    handoff = relay.handoff(lead.hand_off("worker", "one").id)

    for act in (handoff.retry, lambda: handoff.cancel(reason="no"), lambda: handoff.verify(verdict="x")):
        with pytest.raises(InvalidValueError, match="say who decides"):
            act()


def test_a_late_outcome_is_accepted_in_one_step(relay: Relay, lead: LiveRun) -> None:
    """The attempt lapsed while its call was under way; the result that came afterwards is the next attempt's result."""
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    lease = relay.claim(holder="w", lease_for=timedelta(0))
    first = handoff.accept(lease=lease)
    made: list[str] = []

    def slow(name: str) -> dict[str, str]:
        made.append(name)
        relay.sweep()
        return {"wrote": name}

    with pytest.raises(StreamClosedError):
        first.call(slow, "a")
    (late,) = bodies(relay, "handoff.late")
    handoff.settle(late.call, "late", by=ANA, reason="the bank's list has it")
    second = handoff.accept(lease=relay.claim(holder="w", lease_for=LONG))

    assert ({"wrote": "a"}, ["a"]) == (second.call(slow, "a"), made)
    second.close()
    assert (1, State.COMPLETED) == (bodies(relay, "handoff.completed")[0].kept, handoff.state())


def test_only_a_result_that_came_late_is_accepted_late(relay: Relay, lead: LiveRun) -> None:
    """A call of which nobody ever heard has no late outcome."""
    handoff = lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    begun = begin_only(handoff.accept(lease=relay.claim(holder="w", lease_for=timedelta(0))), len, "a")
    relay.sweep()

    with pytest.raises(NotFoundError, match="late result of call"):
        handoff.settle(CallId(begun), "late", by=ANA)
