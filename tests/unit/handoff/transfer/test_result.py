"""What came of a handoff, as a value: a decline or a failure is an answer, not a crash."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Constraint, Decision, RejectedPath, Report
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA

PAST = datetime(2020, 1, 1, tzinfo=UTC)


def boom(run: LiveRun) -> None:
    run.record(RejectedPath("regex", "too slow"), Decision("half a decision"))
    raise ValueError("first line\n\nlast line\n\n")


ACTS: dict[State, list[Callable[[LiveHandoff], object]]] = {
    State.COMPLETED: [lambda handoff: handoff.run(lambda _: "done")],
    State.VERIFIED: [lambda handoff: handoff.run(lambda _: "done"), lambda handoff: handoff.verify(verdict="right")],
    State.REFUTED: [lambda handoff: handoff.run(lambda _: "done"), lambda handoff: handoff.refute("it is wrong")],
    State.FAILED: [lambda handoff: handoff.run(boom)],
    State.RUNNING: [lambda handoff: handoff.accept()],
    State.ASKED: [lambda handoff: handoff.ask("which?")],
    State.DECLINED: [lambda handoff: handoff.decline("not mine")],
    State.DENIED: [lambda handoff: handoff.deny(by=ANA, reason="too risky")],
    State.CANCELLED: [lambda handoff: handoff.cancel(reason="not needed")],
}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State.COMPLETED, ""),
        (State.VERIFIED, ""),
        (State.REFUTED, "it is wrong"),
        (State.FAILED, "last line"),
        (State.DECLINED, "not mine"),
        (State.DENIED, "too risky"),
        (State.CANCELLED, "not needed"),
        (State.EXPIRED, "its deadline has passed"),
        (State.HELD, ""),
        (State.ASKED, ""),
        (State.OFFERED, ""),
        (State.RUNNING, ""),
    ],
)
def test_every_state_is_a_result(lead: LiveRun, relay: Relay, state: State, reason: str) -> None:
    """With the reason that somebody gave, and whether waiting would change anything."""
    held = state in {State.HELD, State.DENIED}
    handoff = lead.hand_off("worker", "one", hold=held, deadline=PAST if state is State.EXPIRED else None)
    for act in ACTS.get(state, ()):
        act(handoff)
    if state is State.EXPIRED:
        relay.sweep()
    result = handoff.result()

    assert (state, reason) == (result.state, result.reason)
    assert (state in {State.COMPLETED, State.VERIFIED}) is result.delivered
    assert (state not in {State.OFFERED, State.RUNNING}) is result.settled


def test_a_result_has_a_value_for_programs(lead: LiveRun) -> None:
    """What the runner returned, or its words, or nothing."""
    results = [
        lead.hand_off("worker", "number", run=lambda _: {"n": [1, 2.5, None]}),
        lead.hand_off("worker", "words", run=lambda _: "done"),
        lead.hand_off("worker", "nothing", run=lambda _: None),
        lead.hand_off("worker", "report", run=lambda _: Report(result="r", value=json.dumps([1]))),
    ]

    assert [{"n": [1, 2.5, None]}, "done", None, [1]] == [handoff.wait().value for handoff in results]


def test_a_failed_childs_findings_are_known_and_its_result_is_not(lead: LiveRun) -> None:
    """What it ruled out is not tried again; what it had half done is nobody's result."""
    failed = lead.hand_off("worker", "one")
    run = failed.accept()
    run.report("half done")
    with pytest.raises(ValueError, match="last line"), run:
        boom(run)
    failed.result()
    lead.hand_off("worker", "one").run(boom)
    after = lead.hand_off("worker", "two").accept()
    assert after.baton is not None

    assert ((RejectedPath("regex", "too slow"),), (), ()) == (
        after.baton.rejected_paths,
        after.baton.completed,
        after.baton.reports,
    )


def test_what_binds_a_child_is_not_its_parents_to_inherit(lead: LiveRun) -> None:
    """A constraint that a child set for itself stays below it."""
    with lead.hand_off("worker", "one") as child:
        child.record(Constraint("only for me"))
        child.report("done")

    assert [Report(result="done")] == [item.value for item in lead.notes]


def test_what_grandchildren_found_reaches_the_root(lead: LiveRun) -> None:
    """Through every hop, once."""
    with lead.hand_off("mid", "one") as mid:
        with mid.hand_off("leaf", "two") as leaf:
            leaf.record(Decision("from the leaf"))
            leaf.attach("leaf.txt", "leaf")
            leaf.report("leaf done")
        mid.report("mid done")
    with lead.hand_off("other", "three") as other:
        assert other.baton is not None
        assert ["from the leaf"] == [decision.what for decision in other.baton.decisions]
        assert ["leaf done", "mid done"] == [work.what for work in other.baton.completed]
        assert b"leaf" == other.read("leaf.txt")
