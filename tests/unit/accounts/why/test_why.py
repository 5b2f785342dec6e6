"""Why something was allowed, denied or held: what is recorded, worked out again, and never more than that."""

import pytest

from batonpass.accounts.why.why_values import WhyVerdict
from batonpass.errors import NotFoundError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.transfer.close import expire
from batonpass.model.base.ids import StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import Body, ChildHead, HandoffHeld, Kind
from batonpass.model.ledger.run import Handoff
from batonpass.records.text import read_receipt
from batonpass.relay import desk_of, recording_of
from tests.unit.accounts.trees import (
    ANA,
    Place,
    facts_of,
    find,
    last,
    name_of,
    tried,
)

SIGMA = Constraint(key="threshold", operator="<=", value="3", unit="sigma", binds_to="call:find.threshold")


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def lead(place: Place) -> LiveRun:
    """Return a root that is held to its grant."""
    return place.relay().start("Find what is off", by=ANA, items=[SIGMA], mode=Mode.ENFORCED)


ENDS = {
    "held from the beginning": (
        "{who} waits for somebody to approve or deny it; {lead} held it at the offer",
        WhyVerdict.HELD,
    ),
    "approved": ("user:ana approved {who} (unproven: no approver's key signed)", WhyVerdict.ALLOWED),
    "denied": ('user:ana denied {who}: "no {x}"', WhyVerdict.DENIED),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_is_held_waits_or_was_decided(place: Place, end: str) -> None:
    """The answer names who decided, or that nobody has."""
    lead = place.relay().start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell", hold=True)
    if end == "approved":
        handoff.approve(by=ANA)
    elif end == "denied":
        handoff.deny(by=ANA, reason="no {x}")
    answer, verdict = ENDS[end]
    who = f"mailer {handoff.id[-4:]}"

    why = place.why(handoff.id)

    assert (verdict, answer.replace("{who}", who).replace("{lead}", name_of(lead))) == (why.verdict, why.answer)


def test_a_handoff_that_did_not_go_on_says_who_stopped_it(place: Place) -> None:
    """A question, a refusal, a withdrawal, a deadline, or a call that somebody has to approve."""
    lead = place.relay().start("Tell them", by=ANA)
    asked, declined, cancelled, expired, stopped = (lead.hand_off(f"mailer-{number}", "Tell") for number in range(5))
    asked.ask("whom?")
    declined.decline("no time", by="agent:mailer-1")
    cancelled.cancel(by=ANA, reason="too late")
    expire(desk_of(place.relay()), expired.id)
    stopped.accept()

    def stop(known: Handoff, ended: ChildHead | None) -> Body:
        assert ended is not None
        return HandoffHeld(handoff=known.id, attempt=1, ended=ended, reason="call.held")

    recording_of(place.relay()).act(stopped.id, stop)
    ends = [handoff.id[-4:] for handoff in (asked, declined, cancelled, expired, stopped)]

    assert [
        f'asked: mailer-0 {ends[0]} waits for an answer: "whom?" (data-gap: asked)',
        f'declined: agent:mailer-1 declined mailer-1 {ends[1]}: declined: "no time"',
        f'cancelled: user:ana withdrew mailer-2 {ends[2]}: "too late"',
        f"expired: nobody waits for mailer-3 {ends[3]} any more",
        f"held: attempt 1 at mailer-4 {ends[4]} stopped before a call: call.held",
    ] == [place.why(handoff.id).sentence for handoff in (asked, declined, cancelled, expired, stopped)]


def test_a_handoff_that_nobody_had_to_approve(place: Place) -> None:
    """What was missing and what validation found was reported and stopped nothing; that is said."""
    lead = place.relay().start("Tell them", by=ANA)
    with lead.hand_off("drafter", "Draft") as drafter:
        drafter.report("a draft")
    handoff = lead.hand_off("mailer", "Tell")
    waiting = place.why(handoff.id)
    run = handoff.accept()

    why = place.why(handoff.id)

    assert (
        f"allowed: {name_of(lead)} offered mailer {handoff.id[-4:]}, and nobody had to approve it; "
        "no grant: observed, so no grant, limit or constraint was enforced" == why.sentence
    )
    assert f"{why.sentence}; nobody has taken it yet" == waiting.sentence
    assert [f"attempt 1 by {name_of(run)} · validation found data-gap.criteria-missing"] == facts_of(why, "accepted")
    assert [1, 1] == [len(facts_of(why, label)) for label in ("missing", "unverified")]


def test_questions_and_answers_are_facts(place: Place) -> None:
    """Who asked what, which check made it, and who answered."""
    lead = place.relay().start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell")
    handoff.ask("whom?")
    handoff.answer("all", by=ANA)

    why = place.why(handoff.id)

    assert ['by agent:mailer: "whom?" (data-gap: asked)'] == facts_of(why, "asked")
    assert ['by user:ana: "all"'] == facts_of(why, "answered")


def test_a_run_says_whose_it_is_and_what_was_wrong(place: Place, lead: LiveRun) -> None:
    """A root was asked for by its principal, any other run handed off; denied and flagged calls are listed."""
    run = lead.hand_off("finder", "Find it").accept()
    tried(lambda: run.call(find, 4))

    why = place.why(run.id)

    assert (
        f"allowed: {name_of(run)} is attempt 1 at the handoff from {name_of(lead)}; enforced; no grant is recorded"
        == why.sentence
    )
    assert ["constraint"] == [text.split(": ")[1] for text in facts_of(why, "denied")]
    assert (
        f"allowed: user:ana asked {name_of(lead)} for it; enforced; no grant is recorded" == place.why("lead").sentence
    )


@pytest.mark.parametrize("kind", [Kind.RUN_STARTED, Kind.HANDOFF_INITIATED, Kind.HANDOFF_ACCEPTED, Kind.RUN_RECORDED])
def test_receipts_lead_to_what_they_are_about(place: Place, lead: LiveRun, kind: Kind) -> None:
    """A run's own receipts to the run, those of a handoff to the handoff."""
    handoff = lead.hand_off("finder", "Find it")
    handoff.accept()

    assert (handoff.id if kind.startswith("handoff") else lead.id) == last(place, kind).id


def test_a_relays_own_receipts_are_facts(place: Place, lead: LiveRun) -> None:
    """Nothing was asked for there."""
    assert lead.id.startswith("run_")
    assert (WhyVerdict.RECORDED, None, ()) == (
        (why := last(place, Kind.RELAY_ENROLLED)).verdict,
        why.principal,
        why.hops,
    )


def test_last_is_the_last_decision(place: Place) -> None:
    """Notes, outcomes and close-outs decide nothing."""
    lead = place.relay().start("x", by=ANA)
    lead.call(find, 1)
    lead.close()

    assert ("call", "run") == (place.why("last").kind, place.why(lead.id).kind)


def test_without_a_decision_there_is_no_last() -> None:
    """A ledger in which nobody asked for anything has no answer."""
    place = Place()
    place.relay().start("x", by=ANA)

    with pytest.raises(NotFoundError):
        place.why("last")


def test_erased_terms_are_not_made_up(place: Place) -> None:
    """What was granted and is gone is said to be gone."""
    lead = place.relay().start("x", by=ANA)
    handoff = lead.hand_off("editor", "y", may=["write:**"])
    with place.relay().store.view() as view:
        known = view.get_handoff(handoff.id)
        offer = read_receipt(view.get_receipt_at(StreamId(lead.id), known.seq))
    place.relay().admin.erase([offer.content["terms"].id], by=ANA, reason="they asked")

    assert [None, ()] == [hop.may for hop in place.why(handoff.id).hops]
