"""What a policy requires is really said: in batons, and in the reports that come back."""

from typing import Any

import pytest

from batonpass import Brief, Decision
from batonpass.errors import IncompleteBatonError, IncompleteReportError, UnverifiedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.kinds import Relation
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Constraint, OpenQuestion, RejectedPath, Report
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.model.policy.offer_options import Handling
from batonpass.model.policy.policy_rules import Demand, Policy, Posture, Requirement
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, Places, bodies

TASK = "Make total() round half-even"
PARTS = ("rationale", "criteria", "constraint", "decision", "question", "rejected")
REQUIRED = HandoffPolicy(require={Relation.LEAD_TO_WORKER: PARTS})

# Each fills every part that the policy requires, and says nothing.
JUNK = {
    "n/a everywhere": ["n/a"] * 6,
    "question marks": ["???", "??", "?", "…", "...", "???"],
    "to be done": ["tbd", "TODO", "t.b.d.", "to be determined", "TBA", "todo"],
    "dashes": ["-", "--", "—", "–", "- -", "_"],
    "nothing yet": ["none yet", "nothing so far", "not yet", "pending", "later", "will follow"],
    "a copy of the task": [TASK] * 6,
    "a copy of the task in other clothes": [TASK.upper(), f"{TASK}.", f"  {TASK}", f"Please {TASK}", TASK, f"{TASK}!!"],
    "the same sentence in each field": ["We will look into this carefully and act on it"] * 6,
    "words that fill": ["ok", "done", "as discussed", "see above", "various", "standard"],
    "templates": ["<insert text here>", "[rationale]", "{{why}}", "xxx", "lorem ipsum", "[TODO]"],
    "none, but not where none is said": ["none", "None.", "nothing", "NONE", "(none)", "none known"],
    "the name of the field": ["rationale", "criteria", "decided", "question?", "rejected", "it is required"],
    "held keys": ["aaaa", "asdf", "xxxxxx", "......", "qwerty", "blah blah"],
}


def offer(lead: LiveRun, words: list[str]) -> Any:  # noqa: ANN401
    """Offer a task with these words in its parts."""
    why, criterion, constraint, decision, question, rejected = words
    return lead.hand_off(
        "editor",
        TASK,
        brief=Brief(rationale=why, criteria=[criterion]),
        items=[Constraint(constraint), Decision(decision), OpenQuestion(question), RejectedPath(rejected)],
    )


@pytest.mark.parametrize("words", JUNK.values(), ids=JUNK)
def test_junk_is_refused_where_the_policy_requires(places: Places, words: list[str]) -> None:
    """A filled field is no answer; nothing of it is offered, and the refusal names every part."""
    relay = places.relay(policy=REQUIRED)
    with pytest.raises(IncompleteBatonError) as refused:
        offer(relay.start("begin", by=ANA), words)

    assert sorted(PARTS) == sorted(refused.value.missing)
    assert ([], ["handoff.incomplete"]) == (
        bodies(relay, "handoff.initiated"),
        [body.error for body in bodies(relay, "handoff.failed")],
    )


@pytest.mark.parametrize("words", JUNK.values(), ids=JUNK)
def test_junk_is_reported_where_it_is_only_observed(lead: LiveRun, relay: Relay, words: list[str]) -> None:
    """The offer goes on, and its receipt names the parts as missing."""
    offer(lead, words)
    (body,) = bodies(relay, "handoff.initiated")

    assert set(PARTS) <= set(body.missing)


def test_a_typed_none_and_real_words_are_answers(places: Places) -> None:
    """An explicit none is said where it can be seen; a few real words are enough."""
    relay = places.relay(policy=REQUIRED)
    lead = relay.start("begin", by=ANA)
    none = Brief(rationale="two invoices were rejected", criteria=["0.125 gives 0.12"], none=["question", "rejected"])
    constraint, decision = Constraint("no new dependency"), Decision("half-even", why="tax office")

    assert lead.hand_off("editor", TASK, brief=none, items=[constraint, decision]).id
    assert [()] == [body.missing and () for body in bodies(relay, "handoff.initiated")]


REPORTED = ("completed", "question", "rejected", "assumption")
STRICT = HandoffPolicy(require={Relation.WORKER_TO_LEAD: REPORTED})


def report(words: list[str]) -> Report:
    """Return a report with these words in its parts."""
    result, *_, question, rejected, assumption = words
    return Report(
        result=result,
        open_questions=[question],  # type: ignore[arg-type]
        rejected_paths=[rejected],  # type: ignore[arg-type]
        assumptions=[assumption],  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("words", JUNK.values(), ids=JUNK)
def test_a_junk_report_is_refused_where_the_policy_requires(places: Places, words: list[str]) -> None:
    """Whoever reports can report again: the run stays open until its report says what it must."""
    relay = places.relay(policy=STRICT)
    child = relay.start("begin", by=ANA).hand_off("editor", TASK).accept()
    with pytest.raises(IncompleteReportError) as refused:
        child.report(report(words))
    with pytest.raises(IncompleteReportError):
        child.close()
    child.report("total() rounds half-even", none=["question", "rejected", "assumption"])
    child.close()

    assert sorted(REPORTED) == sorted(refused.value.missing)
    assert 1 == len(bodies(relay, "handoff.completed"))


@pytest.mark.parametrize("words", JUNK.values(), ids=JUNK)
def test_a_junk_report_is_flagged_where_it_is_only_observed(lead: LiveRun, relay: Relay, words: list[str]) -> None:
    """It is delivered, and its receipt says which parts say nothing."""
    with lead.hand_off("editor", TASK) as child:
        child.report(report(words))
    (body,) = bodies(relay, "handoff.completed")

    assert {f"gap.{part}" for part in REPORTED} <= set(body.flags)


def test_an_attempt_without_a_report_is_refused_too(places: Places) -> None:
    """Silence is no report: a runner that returns nothing has failed."""
    relay = places.relay(policy=STRICT)
    result = relay.start("begin", by=ANA).hand_off("editor", TASK, run=lambda _: None).wait()

    assert (State.FAILED, "handoff.report_incomplete") == (result.state, result.error)


def test_items_of_the_run_count_as_reported(places: Places) -> None:
    """What a run recorded comes back with its report."""
    relay = places.relay(policy=HandoffPolicy(require={Relation.WORKER_TO_LEAD: ("completed", "decision")}))
    with relay.start("begin", by=ANA).hand_off("editor", TASK) as child:
        child.record(Decision("half-even", why="tax office"))
        child.report("done as asked")

    assert 1 == len(bodies(relay, "handoff.completed"))


def test_a_policy_of_one_offer_holds_for_its_report_in_any_process(places: Places) -> None:
    """It travels with the offer, so that a worker elsewhere obeys it."""
    handoff = places.relay().start("begin", by=ANA).hand_off("editor", TASK, handling=Handling(policy=STRICT))
    if places.url == "memory:":
        pytest.skip("what is in memory has one process")
    elsewhere = places.relay().handoff(handoff.id)
    child = elsewhere.accept()
    with pytest.raises(IncompleteReportError):
        child.report("done as asked")
    child.report("done as asked", none=["question", "rejected", "assumption"])
    child.close()


@pytest.mark.parametrize("demand", [Demand.REPORT, Demand.REFUSE])
def test_verification_is_demanded_of_reports(places: Places, demand: Demand) -> None:
    """A worker that builds on a result which nobody verified is reported, or refused, when it closes."""
    wanted = Requirement(posture=Posture.EVALUATE, verification=demand)
    relay = places.relay(policy=Policy(requirements={Relation.WORKER_TO_LEAD: wanted}))
    worker = relay.start("begin", by=ANA).hand_off("worker", "collect it").accept()
    inner = worker.hand_off("helper", "find it")
    with inner as helper:
        helper.report("found it")
    worker.report("it is this")
    if demand is Demand.REFUSE:
        with pytest.raises(UnverifiedError):
            worker.close()
        inner.accept_unverified("it is obvious")
    worker.close()
    flags = bodies(relay, "handoff.completed")[-1].flags

    assert (demand is Demand.REPORT) == ("would_deny.verification.worker-to-lead" in flags)
