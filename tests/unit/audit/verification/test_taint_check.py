"""What no honest relay writes about content from outside: labels that are too good, sources that are left out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import UnlinkedError
from batonpass.handoff.transfer.attempt_receipts import Acceptance, close_out
from batonpass.ledger.position import Working
from batonpass.model.base.ids import CallId, HandoffId, PrincipalId, StreamId, new_call_id, new_handoff_id
from batonpass.model.base.kinds import Gate
from batonpass.model.base.label import Label, Source, SourceType
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import (
    Body,
    Carried,
    Changed,
    ChildHead,
    FileEndorsed,
    HandoffEndorsed,
    HandoffInitiated,
    HandoffRetried,
    Outcome,
    Part,
    RunEndorsed,
    RunRecorded,
    RunTainted,
    SessionResumed,
    ToolCompleted,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.ledger.entry import Touch
from batonpass.testing.builders import ANA
from batonpass.testing.clock import NOON
from tests.unit.audit.forging import Forger
from tests.unit.model.examples import DIGEST, EDITOR

CLEAN: Final = Label(SourceType.TOOL_OUTPUT)
OUTSIDE: Final = Label(SourceType.EXTERNAL)


@dataclass
class Hand:
    """Somebody who records as a relay would, and labels as they please: the store does not look at that."""

    forger: Forger = field(default_factory=Forger)

    def start(self, label: Label | None = CLEAN) -> Working:
        """Begin a root run."""
        return self.forger.scribe.recording.start("work", agent="lead", by=ANA, label=label)

    def write(self, run: Working, body: Body, *contents: Content) -> None:
        """Write a receipt into a run's stream."""
        self.forger.scribe.recording.record(run, body, contents)

    def fetch(self, run: Working) -> CallId:
        """Let something come in from outside."""
        call = self.request(run, CLEAN)
        self.write(run, ToolCompleted(run=run.run.id, call=call, label=OUTSIDE))
        return call

    def request(self, run: Working, label: Label | None) -> CallId:
        """Request a call."""
        call = new_call_id(NOON)
        self.write(run, ToolRequested(run=run.run.id, call=call, tool="look", label=label))
        return call

    def offer(
        self,
        run: Working,
        label: Label | None,
        taint: tuple[Source, ...] = (),
        carries: tuple[Carried, ...] = (),
    ) -> HandoffId:
        """Offer a task."""
        body = HandoffInitiated(
            handoff=new_handoff_id(NOON),
            run=run.run.id,
            to=EDITOR,
            carrier=Carrier.CALLER,
            state=State.OFFERED,
            label=label,
            taint=taint,
            carries=carries,
        )
        self.write(run, body)
        return body.handoff

    def accept(self, handoff: HandoffId, label: Label | None) -> Working:
        """Take a handoff."""
        return self.forger.scribe.recording.accept(handoff, acceptance=Acceptance(label=label))

    def close(self, run: Working, label: Label | None, taint: tuple[Source, ...] = ()) -> Carried:
        """Close an attempt with a report; return how the report is named."""
        report = new_content("report", "done", NOON)
        body = close_out(run.run, Outcome.COMPLETED, (), label=label, taint=taint)
        self.forger.scribe.recording.end(run, body, (report,))
        return Carried(item=report.ref.id, digest=report.ref.digest, part=Part.COMPLETED)


def a_clean_request(hand: Hand) -> None:
    """Request a call as if nothing had come in."""
    lead = hand.start()
    hand.fetch(lead)
    hand.request(lead, CLEAN)


def a_request_without_a_label(hand: Hand) -> None:
    """Say nothing about it."""
    lead = hand.start()
    hand.fetch(lead)
    hand.request(lead, None)


def a_clean_hold(hand: Hand) -> None:
    """Show an approver a call as if nothing had come in."""
    lead = hand.start()
    hand.fetch(lead)
    hand.write(
        lead,
        ToolHeld(
            run=lead.run.id,
            call=new_call_id(NOON),
            tool="pay",
            rule="tier.costly",
            gate=Gate.APPROVE,
            key=DIGEST,
            label=CLEAN,
        ),
    )


def a_clean_offer(hand: Hand) -> None:
    """Hand off as if nothing had come in."""
    lead = hand.start()
    hand.fetch(lead)
    hand.offer(lead, CLEAN)


def an_offer_that_leaves_one_out(hand: Hand) -> None:
    """Name one source, and not the other."""
    lead = hand.start()
    first = hand.fetch(lead)
    second = hand.request(lead, OUTSIDE)
    hand.write(lead, ToolCompleted(run=lead.run.id, call=second, label=OUTSIDE))
    hand.offer(lead, OUTSIDE, (first,))


def an_untrusted_item_that_taints_nobody(hand: Hand) -> None:
    """Carry what is in quarantine to somebody who starts clean."""
    lead = hand.start()
    page = new_content("untrusted.1", "page", NOON)
    named = Carried(item=page.ref.id, digest=page.ref.digest, part=Part.UNTRUSTED)
    body = HandoffInitiated(
        handoff=new_handoff_id(NOON),
        run=lead.run.id,
        to=EDITOR,
        carrier=Carrier.CALLER,
        state=State.OFFERED,
        label=CLEAN,
        carries=(named,),
    )
    hand.write(lead, body, page)


def a_clean_child_of_a_tainted_parent(hand: Hand) -> None:
    """Take a tainted offer as if it were none."""
    lead = hand.start()
    hand.accept(hand.offer(lead, OUTSIDE, (hand.fetch(lead),)), CLEAN)


def a_child_without_a_label(hand: Hand) -> None:
    """Take a tainted offer and say nothing about it."""
    lead = hand.start()
    hand.accept(hand.offer(lead, OUTSIDE, (hand.fetch(lead),)), None)


def a_clean_second_attempt(hand: Hand) -> None:
    """Forget what the attempt before had read."""
    lead = hand.start()
    handoff = hand.offer(lead, CLEAN)
    child = hand.accept(handoff, CLEAN)
    call = hand.fetch(child)
    body = close_out(child.run, Outcome.FAILED, (), error="timeout", label=OUTSIDE, taint=(call,))
    hand.forger.scribe.recording.end(child, body, ())
    hand.forger.scribe.recording.act(handoff, lambda _, __: HandoffRetried(handoff=handoff, by=ANA))
    hand.accept(handoff, CLEAN)


def a_report_that_launders(hand: Hand) -> None:
    """Close a tainted attempt as a clean one."""
    lead = hand.start()
    child = hand.accept(hand.offer(lead, CLEAN), CLEAN)
    hand.fetch(child)
    hand.close(child, CLEAN)


def a_report_that_names_nothing(hand: Hand) -> None:
    """Close a tainted attempt as tainted, by nothing in particular."""
    lead = hand.start()
    child = hand.accept(hand.offer(lead, CLEAN), CLEAN)
    hand.fetch(child)
    hand.close(child, OUTSIDE)


def a_report_that_is_carried_on_as_clean(hand: Hand) -> None:
    """Hand on what a tainted child gave back, to somebody who starts clean."""
    lead = hand.start()
    child = hand.accept(hand.offer(lead, CLEAN), CLEAN)
    report = hand.close(child, OUTSIDE, (hand.fetch(child),))
    hand.offer(lead, CLEAN, carries=(report,))


def a_clean_request_after_a_result(hand: Hand) -> None:
    """Take in a tainted result, and go on as if it were none."""
    lead = hand.start()
    child = hand.accept(hand.offer(lead, CLEAN), CLEAN)
    call = hand.fetch(child)
    hand.close(child, OUTSIDE, (call,))
    hand.write(lead, RunTainted(run=lead.run.id, sources=(call,)))
    hand.request(lead, CLEAN)


def an_endorsement_by_an_agent(hand: Hand) -> None:
    """Let an agent answer for it."""
    lead = hand.start()
    hand.write(lead, RunEndorsed(run=lead.run.id, source=hand.fetch(lead), by=PrincipalId("agent:lead")))


def an_endorsement_in_advance(hand: Hand) -> None:
    """Endorse what never came in."""
    lead = hand.start()
    hand.write(lead, RunEndorsed(run=lead.run.id, source=new_call_id(NOON), by=ANA))


def an_endorsement_of_something_else(hand: Hand) -> None:
    """Endorse one page, and go on as if both were."""
    lead = hand.start()
    first = hand.fetch(lead)
    second = hand.request(lead, OUTSIDE)
    hand.write(lead, ToolCompleted(run=lead.run.id, call=second, label=OUTSIDE))
    hand.write(lead, RunEndorsed(run=lead.run.id, source=first, by=ANA))
    hand.request(lead, CLEAN)


def a_session_that_launders(hand: Hand) -> None:
    """Let words of a tainted run come along to a root that is clean."""
    first = hand.start()
    hand.fetch(first)
    words = new_content("decision.1", "pay them", NOON)
    named = Carried(item=words.ref.id, digest=words.ref.digest, part=Part.DECISION)
    hand.write(first, RunRecorded(run=first.run.id, by=PrincipalId("agent:lead"), items=(named,), label=OUTSIDE), words)
    head = hand.forger.tables.streams[StreamId(first.run.id)]
    roots = (ChildHead(run=first.run.id, seq=head.seq, head=head.head),)
    hand.forger.scribe.recording.start(
        "again",
        agent="lead",
        by=ANA,
        label=CLEAN,
        resumed=lambda run: SessionResumed(run=run, roots=roots, kept=(named,)),
    )


FORGED: Final[Mapping[Callable[[Hand], None], tuple[str, str]]] = {
    a_clean_request: ("label", "it is labelled tool_output, and call_"),
    a_request_without_a_label: ("label", "it has no label, and call_"),
    a_clean_hold: ("label", "it is labelled tool_output"),
    a_clean_offer: ("label", "came from outside to its run, or stands in its baton"),
    an_offer_that_leaves_one_out: ("taint", "it does not name call_"),
    an_untrusted_item_that_taints_nobody: ("label", "came from outside to its run, or stands in its baton"),
    a_clean_child_of_a_tainted_parent: ("label", "came from outside to the handoff that it takes before"),
    a_child_without_a_label: ("label", "it has no label"),
    a_clean_second_attempt: ("label", "came from outside to the handoff that it takes before"),
    a_report_that_launders: ("label", "it is labelled tool_output"),
    a_report_that_names_nothing: ("taint", "it does not name call_"),
    a_report_that_is_carried_on_as_clean: ("label", "stands in its baton"),
    a_clean_request_after_a_result: ("label", "it is labelled tool_output"),
    an_endorsement_by_an_agent: ("by", "agent:lead is no person"),
    an_endorsement_in_advance: ("source", "did not come from outside to it"),
    an_endorsement_of_something_else: ("label", "it is labelled tool_output"),
    a_session_that_launders: ("taint", "it keeps words of a tainted run, and is not tainted"),
}


@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: str(forge.__name__).replace("_", " "))
def test_a_label_that_is_too_good_is_found(forge: Callable[[Hand], None]) -> None:
    """Each is named by its own message and field, with good signatures all over it."""
    hand = Hand()
    verify_ledger(hand.forger.store)
    forge(hand)

    with pytest.raises(UnlinkedError) as found:
        verify_ledger(hand.forger.store)
    place, message = FORGED[forge]
    assert (place, True) == (found.value.field, message in found.value.problem)


def endorsed(hand: Hand) -> None:
    """Endorse what came in, and go on clean: in the run, its children, and their results."""
    lead = hand.start()
    call = hand.fetch(lead)
    hand.write(lead, RunEndorsed(run=lead.run.id, source=call, by=ANA))
    hand.request(lead, CLEAN)
    child = hand.accept(hand.offer(lead, CLEAN), CLEAN)
    hand.close(child, CLEAN)


def endorsed_from_elsewhere(hand: Hand) -> None:
    """Endorse it in the handoff's own stream; whoever takes it is clean."""
    lead = hand.start()
    call = hand.fetch(lead)
    handoff = hand.offer(lead, OUTSIDE, (call,))
    body = HandoffEndorsed(handoff=handoff, by=ANA, source=call)
    hand.forger.scribe.recording.act(handoff, lambda _, __: body)
    hand.accept(handoff, CLEAN)


def worse_than_it_has_to_be(hand: Hand) -> None:
    """Trust less than one could: a thread learned of it before its receipt was written."""
    lead = hand.start()
    hand.request(lead, OUTSIDE)
    hand.offer(lead, OUTSIDE, (lead.run.id,))


def nothing_said_at_all(hand: Hand) -> None:
    """Say nothing of labels, as a relay that knows none: what it recorded verifies as it did."""
    lead = hand.start(None)
    hand.fetch(lead)
    hand.request(lead, None)
    child = hand.accept(hand.offer(lead, None), None)
    hand.request(child, None)


def many_by_the_name_of_their_run(hand: Hand) -> None:
    """Let a run stand for all that reached it, and further down for each of them."""
    lead = hand.start()
    child = hand.accept(hand.offer(lead, CLEAN), CLEAN)
    report = hand.close(child, OUTSIDE, (hand.fetch(child),))
    hand.write(lead, RunTainted(run=lead.run.id, sources=(child.run.id,)))
    below = hand.accept(hand.offer(lead, OUTSIDE, (lead.run.id,), (report,)), OUTSIDE)
    hand.offer(below, OUTSIDE, (lead.run.id,), (report,))


@pytest.mark.parametrize(
    "write",
    [endorsed, endorsed_from_elsewhere, worse_than_it_has_to_be, nothing_said_at_all, many_by_the_name_of_their_run],
    ids=lambda write: str(write.__name__).replace("_", " "),
)
def test_what_an_honest_relay_writes_passes(write: Callable[[Hand], None]) -> None:
    """An endorsement lifts what it says; too little trust is no fault."""
    hand = Hand()
    write(hand)

    assert 0 < verify_ledger(hand.forger.store).receipts


def leave(hand: Hand, run: Working, taint: tuple[Source, ...] | None, *, label: Label = CLEAN) -> CallId:
    """Let a call leave a file, and say of its taint what one pleases."""
    call = hand.request(run, OUTSIDE)
    change = new_content("change.1", b'{"path": "notes.md"}', NOON, media_type="application/json")
    left = Changed(change=change.ref.id, after=DIGEST)
    done = ToolCompleted(run=run.run.id, call=call, label=label, changes=(left,), taint=taint)
    touch = Touch(path="notes.md", content=change.ref.id)
    hand.forger.scribe.recording.record(run, done, (change,), touches=(touch,))
    return call


def test_a_file_of_a_tainted_run_that_says_nothing_of_it_is_found() -> None:
    """Whoever reads it later would be taken for clean."""
    hand = Hand()
    run = hand.start()
    hand.fetch(run)
    leave(hand, run, ())

    with pytest.raises(UnlinkedError, match="does not name") as found:
        verify_ledger(hand.forger.store)

    assert "taint" == found.value.field


def test_a_file_that_says_what_its_run_knew_is_fine() -> None:
    """All of it, or the run for all of it; and what an older relay wrote says nothing, and is as it was."""
    hand = Hand()
    run = hand.start()
    call = hand.fetch(run)
    leave(hand, run, (call,))
    leave(hand, run, (run.run.id,))
    leave(hand, run, None)
    verify_ledger(hand.forger.store)


def test_what_a_download_left_names_the_download() -> None:
    """The file is what came from outside."""
    hand = Hand()
    leave(hand, hand.start(), (), label=OUTSIDE)

    with pytest.raises(UnlinkedError, match="does not name"):
        verify_ledger(hand.forger.store)


def test_a_file_that_an_agent_endorsed_is_found() -> None:
    """Only a person answers for what a file holds."""
    hand = Hand()
    hand.forger.scribe.recording.note(FileEndorsed(holds=(DIGEST,), by=PrincipalId("agent:lead")))

    with pytest.raises(UnlinkedError, match="is no person") as found:
        verify_ledger(hand.forger.store)

    assert "by" == found.value.field
