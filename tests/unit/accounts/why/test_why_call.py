"""Why a call was denied or made: what bound its run is worked out again, and never more than is recorded."""

import pytest

from batonpass import Brief, Grant
from batonpass.accounts.why.why_values import WhyVerdict
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import new_call_id
from batonpass.model.base.kinds import Mode, Settlement
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import Kind, ToolDenied
from batonpass.model.ledger.content import new_content
from batonpass.relay import recording_of
from batonpass.testing.clock import NOON
from tests.unit.accounts.trees import (
    ANA,
    SECOND,
    Place,
    break_off,
    calls_of,
    facts_of,
    fail,
    find,
    last,
    name_of,
    read,
    tried,
    write,
)

SIGMA = Constraint(key="threshold", operator="<=", value="3", unit="sigma", binds_to="call:find.threshold")


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def lead(place: Place) -> LiveRun:
    """Return a root that is held to its grant."""
    return place.relay().start("Find what is off", by=ANA, items=[SIGMA], mode=Mode.ENFORCED)


def try_again(handoff: LiveHandoff, run: LiveRun) -> LiveRun:
    run.fail(RuntimeError("gone"))
    handoff.retry(by=ANA)
    return handoff.accept()


def test_a_broken_constraint_is_named_with_whoever_set_it(place: Place, lead: LiveRun) -> None:
    """The denial records a rule; which constraint it was is worked out from the arguments that were recorded."""
    finder = lead.hand_off("finder", "Find it", grant=Grant(may=["call:*"], may_delegate=["call:*"])).accept()
    inner = finder.hand_off("helper", "Help", may=["call:find"]).accept()
    tried(lambda: inner.call(find, 4))

    why = last(place, Kind.TOOL_DENIED)

    assert (
        f'denied: {name_of(inner)} must keep to "threshold <= 3 sigma", tried find, '
        "where 'threshold' is 4; user:ana set it" == why.sentence
    )
    assert [
        f"\"threshold <= 3 sigma\" · set by user:ana · recorded in {name_of(lead)} · found: 'threshold' is 4"
    ] == facts_of(why, "constraint")
    assert [
        (name_of(inner), True, ("call:find",)),
        (name_of(finder), True, ("call:*",)),
        (name_of(lead), None, ()),
    ] == [(hop.name, hop.carried, hop.may) for hop in why.hops]
    assert ("constraint", ANA, Mode.ENFORCED) == (why.rule, why.principal, why.mode)


def test_a_constraint_of_the_run_itself_binds_it(place: Place, lead: LiveRun) -> None:
    """What a run recorded for itself is told as recorded there; what came later did not bind yet."""
    own = Constraint(key="threshold", operator=">", value="1", binds_to="call:find.threshold")
    finder = lead.hand_off("finder", "Find it").accept()
    finder.record(own)
    tried(lambda: finder.call(find, 1))
    finder.record(Constraint(key="threshold", operator=">", value="2", binds_to="call:find.threshold"))

    why = last(place, Kind.TOOL_DENIED)

    assert [f"\"threshold > 1\" · set by agent:finder · recorded in {name_of(finder)} · found: 'threshold' is 1"] == (
        facts_of(why, "constraint")
    )


def test_what_was_relaxed_does_not_bind(place: Place) -> None:
    """A relaxed constraint is not named; who released the run, and by what right, is an answer of its own."""
    lead = place.relay().start("Find it", by=ANA, items=[SIGMA])
    (item,) = [item for item in lead.notes if isinstance(item.value, Constraint)]
    lead.relax(item, by=ANA, reason="just once")
    lead.call(find, 4)

    assert [] == facts_of(last(place, Kind.TOOL_REQUESTED), "constraint")
    assert f'allowed: user:ana, who is the principal, released {name_of(lead)} from it: "just once"' == (
        last(place, Kind.RUN_RELAXED).sentence
    )


def test_an_author_may_relax_its_own(place: Place) -> None:
    """Who set a constraint stands in its words; without them the right to release from it is not recorded."""
    lead = place.relay().start("Find it", by=ANA)
    (item,) = lead.record(SIGMA)
    lead.relax(item, by="agent:lead", reason="too strict")

    before = last(place, Kind.RUN_RELAXED).answer
    place.relay().admin.erase([item.id], by=ANA, reason="they asked")
    after = last(place, Kind.RUN_RELAXED).answer

    assert ("who had set it", "whose right to do so is not recorded") == (before.split(", ")[1], after.split(", ")[1])


def test_without_the_arguments_nobody_can_tell(place: Place, lead: LiveRun) -> None:
    """Words that were erased are not guessed at; what was said to whoever was refused is still there."""
    finder = lead.hand_off("finder", "Find it").accept()
    tried(lambda: finder.call(find, 4))
    (call,) = calls_of(place.trail(lead.id), finder)
    assert call.arguments is not None
    place.relay().admin.erase([call.arguments.content], by=ANA, reason="they asked")

    said = "threshold <= 3 sigma is violated: 'threshold' is 4; respect it, or have its author relax it"
    assert f"denied: {said}" == last(place, Kind.TOOL_DENIED).sentence


def test_a_rule_of_a_newer_version_is_named(place: Place) -> None:
    """What this version cannot work out, it says so."""
    lead = place.relay().start("x", by=ANA)
    body = ToolDenied(run=lead.id, call=new_call_id(NOON), tool="send", rule="scope")
    recording_of(place.relay()).record(lead._holding.working, body)

    why = place.why(body.call)

    assert f"denied: {name_of(lead)} tried send; rule: scope; the reason is not recorded" == why.sentence


def test_the_sentence_of_a_refusal_is_told(place: Place) -> None:
    """Whatever the rule, what was said to whoever was refused is recorded, and is quoted."""
    lead = place.relay().start("x", by=ANA)
    body = ToolDenied(run=lead.id, call=new_call_id(NOON), tool="Bash", rule="user")
    message = new_content("message", "the user does not want it\nnow", NOON)
    recording_of(place.relay()).record(lead._holding.working, body, (message,))

    why = place.why(body.call)

    assert f'denied: {name_of(lead)} tried Bash; rule: user: "the user does not want it"' == why.sentence
    assert ['user: "the user does not want it"'] == facts_of(why, "rule")


def test_a_call_in_doubt_leads_to_the_earlier_one(place: Place) -> None:
    """It is not made again until somebody has found out, also where nothing is enforced."""
    lead = place.relay().start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell")
    first = handoff.accept()
    tried(lambda: first.call(break_off, "all"))
    second = try_again(handoff, first)
    tried(lambda: second.call(break_off, "all"))
    (doubt,) = calls_of(place.trail(lead.id), first)

    why = last(place, Kind.TOOL_DENIED)

    assert (
        f"denied: {name_of(second)} tried break_off to=all again, and nobody knows whether "
        f"break_off {doubt.record.id[-4:]} of {name_of(first)} happened: repeat or skip?" == why.sentence
    )
    assert [doubt.receipt] == [fact.receipt for fact in why.facts if fact.label == "earlier"]


def test_a_call_that_somebody_settled_says_who(place: Place) -> None:
    """A call that was made again was allowed because of that decision."""
    lead = place.relay().start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell")
    first = handoff.accept()
    tried(lambda: first.call(break_off, "all"))
    (doubt,) = calls_of(place.trail(lead.id), first)
    second = try_again(handoff, first)
    handoff.settle(doubt.record.id, Settlement.REPEAT, by=ANA)
    tried(lambda: second.call(break_off, "all"))

    why = last(place, Kind.TOOL_REQUESTED)

    assert [
        f"break_off {doubt.record.id[-4:]} of {name_of(first)}: was in doubt: repeat, decided by user:ana"
    ] == facts_of(why, "earlier")
    assert ["no outcome yet"] == facts_of(why, "outcome")


@pytest.mark.parametrize("mode", list(Mode))
def test_a_target_that_an_earlier_attempt_changed(place: Place, mode: Mode) -> None:
    """Where it is enforced the call is denied; where it is observed it is flagged, and both name the earlier call."""
    lead = place.relay().start("Fix it", by=ANA, mode=mode)
    handoff = lead.hand_off("editor", "Fix")
    first = handoff.accept()
    first.call(read, "a.py")
    first.call(write, "a.py", "one")
    second = try_again(handoff, first)
    tried(lambda: second.call(write, "a.py", "another"))
    changed = calls_of(place.trail(lead.id), first)[1]

    why = last(place, "tool")

    assert [f'write {changed.record.id[-4:]} of {name_of(first)}: changed "a.py"'] == facts_of(why, "earlier")
    assert {
        Mode.ENFORCED: f"denied: {name_of(second)} tried write a.py, "
        f"and write {changed.record.id[-4:]} of {name_of(first)} had changed that already",
        Mode.OBSERVED: f"allowed: {name_of(second)} called write a.py; no grant: observed, so nothing was enforced; "
        "it would have been held by rule target-changed",
    }[mode] == why.sentence


@tool(cost=lambda _: 2)
def pay() -> None:
    """Pretend to spend."""


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        pytest.param(Budget(calls=1), "at most 1 calls, and 1 were made", id="calls"),
        pytest.param(Budget(seconds=5), "at most 5 seconds, and 9 had passed", id="seconds"),
        pytest.param(Budget(cost=2_000_000), "a cost of at most 2, and 2 were spent", id="cost"),
    ],
)
def test_a_budget_that_is_used_up(place: Place, lead: LiveRun, budget: Budget, spent: str) -> None:
    """What of it is used up is counted again, and who set it is named."""
    handoff = lead.hand_off("buyer", "Buy", brief=Brief(budget=budget))
    if handoff.state() == "held":
        handoff.approve(by="agent:lead")  # money of its own has to be confirmed first
    run = handoff.accept()
    run.call(pay)
    place.clock.tick(9 * SECOND)
    tried(lambda: run.call(find, 1))

    why = last(place, Kind.TOOL_DENIED)

    assert (
        f"denied: {name_of(run)} has used up its budget ({spent}), tried find threshold=1; {name_of(lead)} set it"
        == why.sentence
    )


def test_an_observed_call_was_not_held_to_anything(place: Place) -> None:
    """It is not said to have been granted; what was asked for is told hop by hop, up to the human's words."""
    lead = place.relay().start("Fix it", by=ANA)
    run = lead.hand_off("editor", "Fix").accept()
    run.call(write, "a.py")

    why = last(place, Kind.TOOL_COMPLETED)

    assert (
        f"allowed: {name_of(run)} called write a.py; no grant: observed, so no grant, limit or constraint was "
        "enforced, and nothing was flagged" == why.sentence
    )
    assert [((), name_of(lead)), ((), None)] == [(hop.may, hop.asked_by) for hop in why.hops]
    assert (["completed"], "Fix it") == (facts_of(why, "outcome"), why.intent and why.intent.words)


def test_a_call_under_a_grant_says_what_covers_it(place: Place) -> None:
    """What was granted is told with whoever granted it, and what it covered."""
    lead = place.relay().start("Fix it", by=ANA)
    run = lead.hand_off("editor", "Fix", may=["write:src/**"]).accept()
    run.call(write, "src/a.py")

    why = last(place, Kind.TOOL_COMPLETED)

    assert (
        f"allowed: {name_of(run)} called write src/a.py; its grant covers write:src/a.py, "
        "and nothing else was against it" == why.sentence
    )
    assert [(("write:src/**",), True), ((), False)] == [(hop.may, hop.granted) for hop in why.hops]


def test_a_call_beyond_a_grant_is_answered_in_one_line(place: Place) -> None:
    """What is held, what was tried, and who above holds it."""
    lead = place.relay().start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
    run = lead.hand_off("editor", "Fix", may=["write:src/**"]).accept()
    tried(lambda: run.call(write, ".github/ci.yml"))

    why = last(place, Kind.TOOL_DENIED)

    assert ("denied: editor may write:src/**, tried write:.github/ci.yml; lead holds it", "grant") == (
        why.sentence,
        why.rule,
    )


def test_an_enforced_call_was_allowed_by_what_is_checked(place: Place, lead: LiveRun) -> None:
    """No more than that: there is no grant in the record."""
    tried(lambda: lead.call(fail, "no"))

    why = last(place, Kind.TOOL_FAILED)

    assert (
        f"allowed: {name_of(lead)} called fail words=no; enforced, and no constraint, budget or earlier change was "
        "against it; no grant is recorded" == why.sentence
    )
    assert ['failed: value: "ValueError: no"'] == facts_of(why, "outcome")


def test_approvals_on_the_way_are_told(place: Place) -> None:
    """Who let a handoff go on above a call, and how far that is proven."""
    lead = place.relay().start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell", hold=True)
    handoff.approve(by=ANA, reason="fine")
    run = handoff.accept()
    run.call(find, 1)

    (own, _) = last(place, Kind.TOOL_REQUESTED).hops

    assert [
        "held at its offer",
        'approved by user:ana · unproven: no approver\'s key signed · was shown nothing: "fine"',
    ] == [f"{fact.label} {fact.text}" for fact in own.approvals]


@tool(target="place", reversible=False)
def deploy(place: str) -> str:
    """Do what cannot be undone."""
    return place


def held_at_a_call(lead: LiveRun, *, hold: bool = False) -> LiveHandoff:
    """Return a handoff whose first attempt waits before a call; if it waited at its offer as well, Ivy let it go on."""
    task = "Ship it once asked" if hold else "Ship it"
    handoff = lead.hand_off("shipper", task, may=["write:**"], hold=hold, run=lambda run: run.call(deploy, "prod"))
    if hold:
        handoff.approve(by="user:ivy")
    assert handoff.wait().state == "held"
    return handoff


def test_who_approved_a_call_did_not_approve_its_handoff(place: Place, lead: LiveRun) -> None:
    """Ivy let the handoff go on, and Jon one call of it; where only a call waited, nobody had to approve more."""
    both, one = held_at_a_call(lead, hold=True), held_at_a_call(lead)
    for handoff in (both, one):
        handoff.approve(by="user:jon")

    assert place.why(both.id).answer.startswith(f"user:ivy approved shipper {both.id[-4:]} (")
    assert f"offered shipper {one.id[-4:]}, and nobody had to approve it" in place.why(one.id).answer
    assert all("by user:jon" in facts_of(place.why(handoff.id), "approved")[-1] for handoff in (both, one))


def test_a_call_that_waited_and_was_denied_is_denied(place: Place, lead: LiveRun) -> None:
    """It does not wait any more: whoever decided is in the answer, with the reason."""
    handoff = held_at_a_call(lead)
    waiting = last(place, Kind.TOOL_HELD)
    handoff.deny(by="user:ben", reason="not today")

    why = last(place, Kind.TOOL_HELD)

    assert f'denied: {waiting.answer}; user:ben denied it: "not today"' == why.sentence
    assert WhyVerdict.HELD is waiting.verdict


def test_who_had_revoked_a_grant_is_told_with_what_it_refused(place: Place) -> None:
    """Also of a grant further up; not with what was refused before that."""
    lead = place.relay().start("Ship it", by=ANA, grant=Grant(may_delegate=["write:**"]))
    middle = lead.hand_off("middle", "Ship it", grant=Grant(may_delegate=["write:a.py"]))
    above = middle.accept()
    run = above.hand_off("shipper", "Ship it", may=["write:a.py"]).accept()
    tried(lambda: run.call(write, "b.py"))
    before = last(place, Kind.TOOL_DENIED)
    place.clock.tick()
    place.relay().revoke_grant(middle.id, by=ANA, reason="enough")
    place.clock.tick()
    tried(lambda: run.call(write, "a.py"))

    why = last(place, Kind.TOOL_DENIED)

    assert [] == facts_of(before, "revoked")
    assert [f'what {name_of(above)} was granted · by user:ana: "enough"'] == facts_of(why, "revoked")
    assert ['by user:ana: "enough"'] == facts_of(place.why(middle.id), "revoked")
