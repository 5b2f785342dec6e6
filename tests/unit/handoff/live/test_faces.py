"""A run as synchronous programs see it: safe to use from many threads, and of no use after its end."""

import pytest

from batonpass.errors import HandoffEndedError, InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.baton.items import Constraint, Decision, OpenQuestion, Report
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, at_once, bodies

MANY = 8


def test_a_run_says_who_works_on_what_for_whom(lead: LiveRun) -> None:
    """Of a root and of a child."""
    child = lead.hand_off("editor", "make it so").accept()

    assert ("lead", ANA, "", 1, None) == (lead.agent, lead.principal, lead.task, lead.attempt, lead.parent)
    with pytest.raises(InvalidValueError, match="a root has none"):
        _ = lead.baton
    assert ("editor", ANA, "make it so", 1, lead.id) == (
        child.agent,
        child.principal,
        child.task,
        child.attempt,
        child.root,
    )


def test_a_report_is_said_in_parts_or_made_elsewhere(lead: LiveRun) -> None:
    """The same method takes both, and refuses parts beside a report that has its own."""
    lead.report("done", open_questions=["is it?"], confidence=700)
    said = lead.reported
    lead.report(Report(result="done", open_questions=(OpenQuestion("is it?"),), confidence=700))

    assert said == lead.reported
    with pytest.raises(InvalidValueError, match="confidence cannot be said beside it"):
        lead.report(Report(result="done"), confidence=700)


def test_many_threads_use_one_run(lead: LiveRun, relay: Relay) -> None:
    """They record, call, attach, hand off and check out at once; nothing is lost and nothing is doubled."""
    done: list[int] = []

    def work(number: int) -> str:
        for step in range(3):
            lead.record(Constraint(f"c {number} {step}"), Decision(f"d {number} {step}"))
            lead.call(done.append, number * 10 + step)
            lead.call(len, "the same")
            lead.attach(f"{number}-{step}.txt", f"{number} {step}")
            with lead.hand_off("worker", f"task {number} {step}") as child:
                child.call(len, "the same")
                child.report(f"done {number} {step}")
        lead.checkpoint(number)
        return lead.read(f"{number}-2.txt").decode()

    found = at_once(*[lambda number=number: work(number) for number in range(MANY)])
    lead.close()

    assert [f"{number} 2" for number in range(MANY)] == found
    assert MANY * 3 == len(set(done)) == len(done)
    assert MANY * 9 == len({body.key for body in bodies(relay, "tool.requested")})
    assert MANY * 3 == len(bodies(relay, "handoff.completed"))


def test_threads_that_call_the_same_get_keys_of_their_own(lead: LiveRun, relay: Relay) -> None:
    """A retry gives every one of them a result, and calls nothing."""
    done: list[int] = []
    handoff = lead.hand_off("worker", "one")
    child = handoff.accept()
    at_once(*[lambda: child.call(done.append, 1)] * MANY)
    child.fail(ValueError("died"))
    handoff.retry()
    child = handoff.accept()
    at_once(*[lambda: child.call(done.append, 1)] * MANY)

    assert (MANY, MANY) == (len(done), len({body.key for body in bodies(relay, "tool.requested")}))


def test_closing_while_others_work_leaves_one_end(lead: LiveRun, relay: Relay) -> None:
    """What comes too late is told so, and is not in the record."""

    def work() -> None:
        for number in range(5):
            lead.hand_off("worker", f"task {number}")

    at_once(work, work, lead.close)

    assert 1 == len(bodies(relay, "run.closed"))


def test_a_report_is_what_was_said_last(lead: LiveRun) -> None:
    """The shortest way to say something is its text alone."""
    lead.report("one")
    lead.report("two", open_questions=["q"], confidence=700)

    assert lead.reported is not None
    assert ("two", "q", 700) == (lead.reported.result, lead.reported.open_questions[0].text, lead.reported.confidence)


@pytest.mark.parametrize("wrong", [{"confidence": 0.7}, {"confidence": 1001}, {"completed": [5]}, {"result": None}])
def test_a_report_that_cannot_be_right_is_refused(lead: LiveRun, wrong: dict[str, object]) -> None:
    """When it is given, not when it is read."""
    with pytest.raises(InvalidValueError):
        lead.report(**wrong)  # type: ignore[arg-type]
    assert None is lead.reported


def test_a_coroutine_function_is_not_called_here(lead: LiveRun, relay: Relay) -> None:
    """It would be recorded as done before it has begun."""

    async def act() -> None: ...

    with pytest.raises(InvalidValueError, match="coroutine"):
        lead.call(act)  # type: ignore[unused-coroutine]
    assert [] == bodies(relay, "tool.requested")


@pytest.mark.filterwarnings("ignore::batonpass.errors.handoff.ReusedResultWarning")
def test_a_finished_run_hands_off_nothing_new(lead: LiveRun) -> None:
    """Going through it again, what it never handed off is refused."""
    with lead.hand_off("worker", "one") as child, child.hand_off("leaf", "a") as leaf:
        leaf.report("leaf")
    replayed = lead.hand_off("worker", "one").accept()
    replayed.report(Report(result="another"))
    again = replayed.hand_off("leaf", "a")

    assert "leaf" == again.result().value
    with pytest.raises(HandoffEndedError, match="never handed this off"):
        replayed.hand_off("leaf", "b")


def test_runs_that_are_open_survive_a_new_key(relay: Relay, lead: LiveRun) -> None:
    """A relay that rotates its key goes on with what it has in its hands."""
    child = lead.hand_off("worker", "one").accept()
    relay.admin.rotate()
    child.call(len, "a")
    child.close()
    lead.close()

    assert 1 == len(bodies(relay, "relay.rotated"))
