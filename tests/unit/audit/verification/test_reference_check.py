"""What one receipt says of others: revisions, countersigned batons, late outcomes and adopted children."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import UnlinkedError
from batonpass.handoff.transfer.attempt_receipts import Acceptance, close_out
from batonpass.ledger.position import Working, child_head
from batonpass.model.base.ids import (
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    ReceiptId,
    RunId,
    StreamId,
    new_call_id,
    new_handoff_id,
    new_run_id,
    new_token_id,
    new_webhook_id,
)
from batonpass.model.base.kinds import AccessRole, Carried, CarriedFate, ItemFate, Method, Part, WebhookChange
from batonpass.model.base.label import SourceType
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import (
    AlarmAcknowledged,
    AlarmCleared,
    Body,
    CheckpointSaved,
    ChildHead,
    ErrorType,
    FindingAcknowledged,
    Gate,
    HandoffAccepted,
    HandoffAnswered,
    HandoffApproved,
    HandoffAsked,
    HandoffContextSanitized,
    HandoffFailed,
    HandoffHeld,
    HandoffInitiated,
    HandoffLate,
    HandoffResumed,
    HandoffRetried,
    HandoffRevised,
    Kind,
    Outcome,
    RunAcknowledged,
    Sanitising,
    SessionPruned,
    TokenAdded,
    TokenRevoked,
    ToolHeld,
    VerificationFailed,
    WaitUntil,
    WebhookChanged,
)
from batonpass.model.bodies.reasoning import ReasoningPointer
from batonpass.testing.builders import ANA, an_alarm
from batonpass.testing.clock import NOON
from tests.unit.audit.forging import Forger
from tests.unit.model.examples import DIGEST, EDITOR, an_id


@dataclass
class Hand:
    """Somebody who records as a relay would, and says of others what they please: the store does not look at that."""

    forger: Forger = field(default_factory=Forger)

    def act(self, handoff: HandoffId, body: Body) -> Digest:
        """Write a receipt into a handoff's stream; return its digest."""
        return self.forger.scribe.recording.act(handoff, lambda *_: body).digest

    def ask(self, handoff: HandoffId) -> None:
        """Ask a question."""
        asked = HandoffAsked(handoff=handoff, by=ANA, error=ErrorType.DATA_GAP, check="gap.inputs", question=DIGEST)
        self.act(handoff, asked)

    def answer(self, handoff: HandoffId, revision: int) -> Digest:
        """Answer what was asked."""
        return self.act(handoff, HandoffAnswered(handoff=handoff, by=ANA, revision=revision))

    def revise(self, handoff: HandoffId, *revisions: int) -> Digest:
        """Ask and answer, once for each revision; return the latest."""
        latest = DIGEST
        for revision in revisions:
            self.ask(handoff)
            latest = self.answer(handoff, revision)
        return latest

    def offer(self) -> HandoffId:
        """Offer a task from a new root."""
        return self.forger.scribe.offer(self.forger.scribe.start())

    def accept(self, handoff: HandoffId, baton: Digest | None = None) -> Working:
        """Take a handoff, countersigning a baton."""
        return self.forger.scribe.recording.accept(handoff, acceptance=Acceptance(baton=baton))

    def offer_to_workers(self, parent: Working | None = None) -> HandoffId:
        """Offer a task to workers."""
        return self.forger.scribe.recording.offer(
            parent or self.forger.scribe.start(), EDITOR, "edit", carrier=Carrier.WORKER
        )

    def late(self, handoff: HandoffId, run: RunId, call: CallId) -> None:
        """Record what became of a call after its attempt was over."""
        self.act(handoff, HandoffLate(handoff=handoff, run=run, call=call, completed=True))

    def a_lapsed_call(self) -> tuple[HandoffId, Working, CallId]:
        """Return a handoff whose attempt lapsed with a call under way."""
        handoff = self.offer_to_workers()
        worker = self.accept(handoff)
        call = self.forger.scribe.recording.request(worker, "send_mail", "{}")
        self.forger.scribe.recording.lapse(handoff)
        return handoff, worker, call

    def initiated(self, handoff: HandoffId) -> Digest:
        """Return the receipt of an offer."""
        return self.forger.tables.handoffs[handoff].initiated

    def head(self, run: Working) -> ChildHead:
        """Return where a run stands."""
        return child_head(self.forger.tables.streams[StreamId(run.run.id)])

    def close(self, run: Working, *children: ChildHead) -> None:
        """Close a run that lists these children."""
        self.forger.scribe.recording.end(run, close_out(run.run, Outcome.COMPLETED, children), ())


def offers_with(hand: Hand, parent: Working, checkpoint: ReceiptId) -> None:
    """Offer a task whose sender is said to have thought what stands in a receipt."""
    body = HandoffInitiated(
        handoff=new_handoff_id(NOON),
        run=parent.run.id,
        to=EDITOR,
        carrier=Carrier.CALLER,
        state=State.OFFERED,
        reasoning=ReasoningPointer(checkpoint=checkpoint),
    )
    hand.forger.scribe.recording.record(parent, body)


def saves(hand: Hand, run: Working) -> ReceiptId:
    """Keep a checkpoint of a run."""
    return hand.forger.scribe.recording.record(run, CheckpointSaved(run=run.run.id)).receipt.id


def thinks_what_another_run_thought(hand: Hand) -> None:
    """Point to the checkpoint of a run that has nothing to do with it."""
    other = saves(hand, hand.forger.scribe.start())
    offers_with(hand, hand.forger.scribe.start(), other)


def thinks_what_its_parent_thought(hand: Hand) -> None:
    """Point to the checkpoint of whoever handed it the work."""
    parent = hand.forger.scribe.start()
    thought = saves(hand, parent)
    offers_with(hand, hand.accept(hand.forger.scribe.offer(parent)), thought)


def thinks_what_is_no_checkpoint(hand: Hand) -> None:
    """Point to its own first receipt."""
    run = hand.forger.scribe.start()
    offers_with(hand, run, hand.forger.receipt(run.run.id, 1).id)


def thinks_what_is_nowhere(hand: Hand) -> None:
    """Point to a receipt that is not there."""
    offers_with(hand, hand.forger.scribe.start(), ReceiptId(an_id("receipt")))


def skips_the_first_revision(hand: Hand) -> None:
    """Answer the first question as if there had been one before."""
    hand.revise(hand.offer(), 2)


def skips_a_revision(hand: Hand) -> None:
    """Go from the first revision to the third."""
    hand.revise(hand.offer(), 1, 3)


def repeats_a_revision(hand: Hand) -> None:
    """Answer the second question as if it were the first."""
    hand.revise(hand.offer(), 1, 1)


def acknowledges_what_is_no_root(hand: Hand) -> None:
    """Acknowledge a finding of a tree that has another root."""
    child = hand.accept(hand.offer())
    hand.forger.scribe.recording.note(
        FindingAcknowledged(root=child.run.id, finding="0123456789ab", code="loop", by=ANA)
    )


def acknowledges_as_an_agent(hand: Hand) -> None:
    """Acknowledge a finding, and be no person."""
    root = hand.forger.scribe.start()
    hand.forger.scribe.recording.note(
        FindingAcknowledged(root=root.run.id, finding="0123456789ab", code="loop", by=PrincipalId("agent:lead"))
    )


def acknowledges_an_alarm_of_nobody(hand: Hand) -> None:
    """Acknowledge an alarm that was raised about somebody else."""
    note = hand.forger.scribe.recording.note
    note(an_alarm(EDITOR, 12 * "0"))
    note(AlarmAcknowledged(agent=AgentId("drafter"), alarm=12 * "0", by=ANA))


def clears_an_alarm_of_nobody(hand: Hand) -> None:
    """Clear an alarm that nobody raised."""
    hand.forger.scribe.recording.note(AlarmCleared(agent=EDITOR, alarm=12 * "0"))


def acknowledges_an_alarm_as_an_agent(hand: Hand) -> None:
    """Acknowledge an alarm, and be no person."""
    note = hand.forger.scribe.recording.note
    note(an_alarm(EDITOR, 12 * "0"))
    note(AlarmAcknowledged(agent=EDITOR, alarm=12 * "0", by=PrincipalId("agent:editor")))


def takes_the_offer_though_it_was_answered(hand: Hand) -> None:
    """Countersign the baton as it was before the answer."""
    handoff = hand.offer()
    hand.revise(handoff, 1)
    hand.accept(handoff, hand.initiated(handoff))


def takes_an_old_revision(hand: Hand) -> None:
    """Countersign the first answer after the second."""
    handoff = hand.offer()
    first = hand.revise(handoff, 1)
    hand.ask(handoff)
    hand.answer(handoff, 2)
    hand.accept(handoff, first)


def takes_a_baton_of_nobody(hand: Hand) -> None:
    """Countersign what is no baton."""
    hand.accept(hand.offer(), DIGEST)


def takes_the_baton_of_another(hand: Hand) -> None:
    """Countersign the baton of another handoff."""
    other = hand.offer()
    hand.accept(hand.offer(), hand.initiated(other))


def takes_a_retry_for_the_baton(hand: Hand) -> None:
    """Countersign the last thing that happened to the handoff, which is no revision of its baton."""
    handoff = hand.offer()
    hand.forger.scribe.recording.end(*failed(hand, handoff))
    retried = hand.act(handoff, HandoffRetried(handoff=handoff, by=ANA))
    hand.accept(handoff, retried)


def revises_with_a_gap(hand: Hand) -> None:
    """Revise a baton by a number that does not follow."""
    handoff = hand.offer()
    hand.act(handoff, HandoffRevised(handoff=handoff, by=ANA, revision=2))


def acknowledges_what_nobody_revised(hand: Hand) -> None:
    """Acknowledge a revision that there is not."""
    run = hand.accept(hand.offer())
    hand.forger.scribe.recording.record(run, RunAcknowledged(run=run.run.id, revision=1, baton=DIGEST))


def acknowledges_the_revision_of_another(hand: Hand) -> None:
    """Acknowledge a revision of another handoff."""
    other = hand.offer()
    revised = hand.act(other, HandoffRevised(handoff=other, by=ANA, revision=1))
    run = hand.accept(hand.offer())
    hand.forger.scribe.recording.record(run, RunAcknowledged(run=run.run.id, revision=1, baton=revised))


def prunes_what_is_no_root(hand: Hand) -> None:
    """Take something out of what a child leaves."""
    child = hand.accept(hand.offer())
    hand.forger.scribe.recording.note(SessionPruned(root=child.run.id, by=ANA, count=1))


def revokes_a_token_of_nobody(hand: Hand) -> None:
    """Revoke a token that nobody added."""
    hand.forger.scribe.recording.note(TokenRevoked(token=new_token_id(NOON), by=ANA))


def removes_a_webhook_of_nobody(hand: Hand) -> None:
    """Remove a webhook that nobody added."""
    change = WebhookChange.REMOVED
    hand.forger.scribe.recording.note(WebhookChanged(webhook=new_webhook_id(NOON), change=change, by=ANA))


def adds_a_webhook_twice(hand: Hand) -> None:
    """Add a webhook that is there already."""
    twice = WebhookChanged(webhook=new_webhook_id(NOON), change=WebhookChange.ADDED, by=ANA)
    hand.forger.scribe.recording.note(twice)
    hand.forger.scribe.recording.note(twice)


def prunes_as_an_agent(hand: Hand) -> None:
    """Take something out of what a root leaves, and be no person."""
    root = hand.forger.scribe.start()
    hand.forger.scribe.recording.note(SessionPruned(root=root.run.id, by=PrincipalId("agent:lead"), count=1))


def takes_the_offer_though_it_was_revised(hand: Hand) -> None:
    """Countersign the offer of a baton that was revised since."""
    handoff = hand.offer()
    hand.act(handoff, HandoffRevised(handoff=handoff, by=ANA, revision=1))
    hand.accept(handoff, hand.initiated(handoff))


def gives_what_nobody_recorded(hand: Hand) -> None:
    """Revise a baton with an item that is nowhere."""
    handoff = hand.offer()
    unknown = Carried(item=ContentId(an_id("content", 9)), digest=DIGEST, part=Part.COMPLETED)
    hand.act(handoff, HandoffRevised(handoff=handoff, by=ANA, revision=1, carries=(unknown,)))


def calls_refuted_what_nobody_refuted(hand: Hand) -> None:
    """Name a verdict that is none."""
    handoff = hand.offer()
    fate = CarriedFate(
        item=ContentId(an_id("content", 9)), fate=ItemFate.REFUTED, verdict=ReceiptId(an_id("receipt", 9))
    )
    hand.act(handoff, HandoffRevised(handoff=handoff, by=ANA, revision=1, fates=(fate,)))


def calls_refuted_by_a_verdict_elsewhere(hand: Hand) -> None:
    """Name a verdict about a result of another tree."""
    other, handoff = hand.offer(), hand.offer()
    hand.close(hand.accept(other))
    refuted = VerificationFailed(handoff=other, by=ANA, attempt=1, method=Method.VERDICT, by_producer=False)
    hand.act(other, refuted)
    verdict = next(row.id for row in hand.forger.tables.receipts if row.kind == Kind.VERIFICATION_FAILED)
    fate = CarriedFate(item=ContentId(an_id("content", 9)), fate=ItemFate.STALE, verdict=verdict)
    hand.act(handoff, HandoffRevised(handoff=handoff, by=ANA, revision=1, fates=(fate,)))


def failed(hand: Hand, handoff: HandoffId) -> tuple[Working, Body, tuple[()]]:
    """Return the end of a first attempt that does not deliver."""
    run = hand.accept(handoff)
    return run, close_out(run.run, Outcome.FAILED, ()), ()


def names_another_parent(hand: Hand) -> None:
    """Take a handoff as the child of a run that exists, and did not offer it."""
    other = hand.forger.scribe.start()
    run = hand.accept(hand.offer()).run.id
    accepted = hand.forger.receipt(run, 1).body
    assert isinstance(accepted, HandoffAccepted)
    hand.forger.resign(run, 1, body=replace(accepted, parent=other.run.id))


def a_late_outcome_of_no_call(hand: Hand) -> None:
    """Tell what became of a call that nobody requested."""
    handoff, worker, _ = hand.a_lapsed_call()
    hand.late(handoff, worker.run.id, new_call_id(NOON))


def a_late_outcome_of_no_run(hand: Hand) -> None:
    """Tell what became of a call of a run that never was."""
    handoff, _, call = hand.a_lapsed_call()
    hand.late(handoff, new_run_id(NOON), call)


def a_late_outcome_of_another_run(hand: Hand) -> None:
    """Tell what became of a call that another attempt requested."""
    handoff, _, call = hand.a_lapsed_call()
    heir = hand.accept(handoff)
    hand.forger.scribe.recording.lapse(handoff)
    hand.late(handoff, heir.run.id, call)


def a_late_outcome_of_another_handoff(hand: Hand) -> None:
    """Tell in one handoff what became of another's call."""
    other, _, _ = hand.a_lapsed_call()
    _, worker, call = hand.a_lapsed_call()
    hand.late(other, worker.run.id, call)


def a_late_outcome_of_a_finished_call(hand: Hand) -> None:
    """Tell once more what became of a call that has its outcome."""
    handoff = hand.offer_to_workers()
    worker = hand.accept(handoff)
    call = hand.forger.scribe.recording.request(worker, "send_mail", "{}")
    hand.forger.scribe.recording.finish(worker, call, "sent")
    hand.forger.scribe.recording.lapse(handoff)
    hand.late(handoff, worker.run.id, call)


def adopts_from_another_handoff(hand: Hand) -> None:
    """List a child of an attempt at another handoff of the same parent."""
    lead = hand.forger.scribe.start()
    first = hand.accept(hand.offer_to_workers(lead))
    grandchild = hand.forger.scribe.delegate(first)
    second = hand.accept(hand.offer_to_workers(lead))
    hand.close(second, hand.head(grandchild))


def adopts_a_grandchild(hand: Hand) -> None:
    """List, in a root's end, what its child handed off."""
    lead = hand.forger.scribe.start()
    grandchild = hand.forger.scribe.delegate(hand.forger.scribe.delegate(lead))
    hand.close(lead, hand.head(grandchild))


def adopts_the_attempt_before(hand: Hand) -> None:
    """List the earlier attempt itself, which is no child of the later one."""
    handoff, worker, _ = hand.a_lapsed_call()
    hand.close(hand.accept(handoff), hand.head(worker))


def adopts_another_root(hand: Hand) -> None:
    """List a root, which has no parent at all."""
    other = hand.forger.scribe.start()
    hand.close(hand.forger.scribe.start(), hand.head(other))


def adopts_at_another_head(hand: Hand) -> None:
    """List a child of the attempt before where it never stood."""
    heir, adopted = an_heir(hand)
    hand.close(heir, replace(hand.head(adopted), head=DIGEST))


def an_heir(hand: Hand) -> tuple[Working, Working]:
    """Return the second attempt at a handoff, and a child that the first one handed off."""
    handoff = hand.offer_to_workers()
    adopted = hand.forger.scribe.delegate(hand.accept(handoff))
    hand.forger.scribe.recording.lapse(handoff)
    return hand.accept(handoff), adopted


def refuses_what_it_offered(hand: Hand) -> None:
    """Say that a policy refused a handoff that was offered."""
    parent = hand.forger.scribe.start()
    handoff = hand.forger.scribe.offer(parent)
    hand.forger.scribe.recording.record(parent, a_refusal(parent, handoff))


def tells_of_the_context_of_another(hand: Hand) -> None:
    """Say what was found in an offer of another run."""
    handoff, other = hand.offer(), hand.forger.scribe.start()
    hand.forger.scribe.recording.record(other, a_scan(other, handoff))


def tells_of_the_context_of_nothing(hand: Hand) -> None:
    """Say what was found in an offer that was never made."""
    parent = hand.forger.scribe.start()
    hand.forger.scribe.recording.record(parent, a_scan(parent, new_handoff_id(NOON)))


def a_refusal(parent: Working, handoff: HandoffId) -> HandoffFailed:
    """Return that a policy refused to hand to the editor."""
    run = parent.run.id
    return HandoffFailed(handoff=handoff, parent=run, run=run, attempt=0, to=EDITOR, error="handoff.too_deep")


def a_scan(parent: Working, handoff: HandoffId) -> HandoffContextSanitized:
    """Return that a scan found nothing."""
    return HandoffContextSanitized(
        handoff=handoff,
        run=parent.run.id,
        action=Sanitising.PASSED,
        label=SourceType.LLM_GENERATED,
        scanned=1,
    )


def waits(hand: Hand, handoff: HandoffId, run: Working, awaits: HandoffId, call: CallId | None = None) -> None:
    """End an attempt because it waits for another handoff."""
    ended = hand.head(run)
    body = HandoffHeld(
        handoff=handoff,
        attempt=1,
        ended=ended,
        reason="handoff.awaits",
        call=call,
        awaits=awaits,
        wait_until=WaitUntil.DECIDED,
    )
    hand.act(handoff, body)


def waits_for_a_handoff_of_another(hand: Hand) -> None:
    """Wait for what somebody else handed off."""
    handoff = hand.offer()
    waits(hand, handoff, hand.accept(handoff), hand.offer())


def waits_for_two_things(hand: Hand) -> None:
    """Wait for a person and for a handoff at once: the second would let the first go on."""
    handoff = hand.offer()
    run = hand.accept(handoff)
    below = hand.forger.scribe.offer(run)
    call = new_call_id(NOON)
    held = ToolHeld(run=run.run.id, call=call, tool="deploy", rule="tier.irreversible", gate=Gate.APPROVE, key=DIGEST)
    hand.forger.scribe.recording.record(run, held)
    waits(hand, handoff, run, below, call)


def resumes_what_waits_for_a_person(hand: Hand) -> None:
    """Let a held attempt go on although nobody approved the call that it stopped at."""
    handoff = hand.offer()
    run = hand.accept(handoff)
    below = hand.forger.scribe.offer(run)
    hand.act(handoff, HandoffHeld(handoff=handoff, attempt=1, ended=hand.head(run), reason="tier.irreversible"))
    hand.act(handoff, HandoffResumed(handoff=handoff, attempt=1, awaits=below))


def resumes_for_another(hand: Hand) -> None:
    """Let an attempt go on for another handoff than the one it waits for."""
    handoff = hand.offer()
    run = hand.accept(handoff)
    below, other = hand.forger.scribe.offer(run), hand.forger.scribe.offer(run)
    waits(hand, handoff, run, below)
    hand.act(handoff, HandoffResumed(handoff=handoff, attempt=1, awaits=other))


def approves_what_waits_for_a_handoff(hand: Hand) -> None:
    """Approve an attempt that waits for nobody's approval."""
    handoff = hand.offer()
    run = hand.accept(handoff)
    waits(hand, handoff, run, hand.forger.scribe.offer(run))
    hand.act(handoff, HandoffApproved(handoff=handoff, by=ANA))


CASES: dict[str, tuple[Callable[[Hand], None], Kind, str]] = {
    "a first revision that is the second": (skips_the_first_revision, Kind.HANDOFF_ANSWERED, "revision"),
    "a revision that skips": (skips_a_revision, Kind.HANDOFF_ANSWERED, "revision"),
    "a revision once more": (repeats_a_revision, Kind.HANDOFF_ANSWERED, "revision"),
    "an acceptance of the unanswered offer": (takes_the_offer_though_it_was_answered, Kind.HANDOFF_ACCEPTED, "baton"),
    "an acceptance of an old revision": (takes_an_old_revision, Kind.HANDOFF_ACCEPTED, "baton"),
    "an acceptance of no baton at all": (takes_a_baton_of_nobody, Kind.HANDOFF_ACCEPTED, "baton"),
    "an acceptance of another's baton": (takes_the_baton_of_another, Kind.HANDOFF_ACCEPTED, "baton"),
    "an acceptance of a retry": (takes_a_retry_for_the_baton, Kind.HANDOFF_ACCEPTED, "baton"),
    "a revision that there is not": (acknowledges_what_nobody_revised, Kind.RUN_ACKNOWLEDGED, "baton"),
    "a revision of another": (acknowledges_the_revision_of_another, Kind.RUN_ACKNOWLEDGED, "baton"),
    "a child whose session is pruned": (prunes_what_is_no_root, Kind.SESSION_PRUNED, "root"),
    "a token that nobody added": (revokes_a_token_of_nobody, Kind.TOKEN_REVOKED, "token"),
    "a webhook that nobody added": (removes_a_webhook_of_nobody, Kind.WEBHOOK_CHANGED, "webhook"),
    "a webhook that is added twice": (adds_a_webhook_twice, Kind.WEBHOOK_CHANGED, "webhook"),
    "a finding of a child's tree": (acknowledges_what_is_no_root, Kind.FINDING_ACKNOWLEDGED, "root"),
    "an agent that acknowledges": (acknowledges_as_an_agent, Kind.FINDING_ACKNOWLEDGED, "by"),
    "an alarm about somebody else": (acknowledges_an_alarm_of_nobody, Kind.ALARM_ACKNOWLEDGED, "alarm"),
    "an alarm that nobody raised": (clears_an_alarm_of_nobody, Kind.ALARM_CLEARED, "alarm"),
    "an agent that lets itself go on": (acknowledges_an_alarm_as_an_agent, Kind.ALARM_ACKNOWLEDGED, "by"),
    "an agent that prunes": (prunes_as_an_agent, Kind.SESSION_PRUNED, "by"),
    "a baton revised with a gap": (revises_with_a_gap, Kind.HANDOFF_REVISED, "revision"),
    "an acceptance of the unrevised offer": (takes_the_offer_though_it_was_revised, Kind.HANDOFF_ACCEPTED, "baton"),
    "a revision with an item of nobody": (gives_what_nobody_recorded, Kind.HANDOFF_REVISED, "carries"),
    "a fate without a verdict": (calls_refuted_what_nobody_refuted, Kind.HANDOFF_REVISED, "fates"),
    "a fate by a verdict of another tree": (calls_refuted_by_a_verdict_elsewhere, Kind.HANDOFF_REVISED, "fates"),
    "an acceptance from another parent": (names_another_parent, Kind.HANDOFF_ACCEPTED, "parent"),
    "a late outcome of no call": (a_late_outcome_of_no_call, Kind.HANDOFF_LATE, "call"),
    "a late outcome of no run": (a_late_outcome_of_no_run, Kind.HANDOFF_LATE, "call"),
    "a late outcome of another attempt": (a_late_outcome_of_another_run, Kind.HANDOFF_LATE, "call"),
    "a late outcome of another handoff": (a_late_outcome_of_another_handoff, Kind.HANDOFF_LATE, "call"),
    "a late outcome of a finished call": (a_late_outcome_of_a_finished_call, Kind.HANDOFF_LATE, "call"),
    "a child of an attempt at another handoff": (adopts_from_another_handoff, Kind.HANDOFF_COMPLETED, "children"),
    "a grandchild of a root": (adopts_a_grandchild, Kind.RUN_CLOSED, "children"),
    "the attempt before": (adopts_the_attempt_before, Kind.HANDOFF_COMPLETED, "children"),
    "another root": (adopts_another_root, Kind.RUN_CLOSED, "children"),
    "a refusal of what was offered": (refuses_what_it_offered, Kind.HANDOFF_FAILED, "handoff"),
    "a scan of another's offer": (tells_of_the_context_of_another, Kind.HANDOFF_CONTEXT_SANITIZED, "handoff"),
    "a scan of no offer": (tells_of_the_context_of_nothing, Kind.HANDOFF_CONTEXT_SANITIZED, "handoff"),
    "a checkpoint of another run": (thinks_what_another_run_thought, Kind.HANDOFF_INITIATED, "reasoning"),
    "a checkpoint of its parent": (thinks_what_its_parent_thought, Kind.HANDOFF_INITIATED, "reasoning"),
    "what is no checkpoint": (thinks_what_is_no_checkpoint, Kind.HANDOFF_INITIATED, "reasoning"),
    "a checkpoint of nobody": (thinks_what_is_nowhere, Kind.HANDOFF_INITIATED, "reasoning"),
    "a wait for a handoff of another": (waits_for_a_handoff_of_another, Kind.HANDOFF_HELD, "awaits"),
    "a wait for two things": (waits_for_two_things, Kind.HANDOFF_HELD, "awaits"),
    "resumed without an approval": (resumes_what_waits_for_a_person, Kind.HANDOFF_RESUMED, "awaits"),
    "resumed for another handoff": (resumes_for_another, Kind.HANDOFF_RESUMED, "awaits"),
    "an approval of a mere wait": (approves_what_waits_for_a_handoff, Kind.HANDOFF_APPROVED, "handoff"),
    "an adopted child at another head": (adopts_at_another_head, Kind.HANDOFF_COMPLETED, "children"),
}


@pytest.mark.parametrize(("act", "kind", "name"), CASES.values(), ids=CASES.keys())
def test_what_contradicts_others_is_found(act: Callable[[Hand], None], kind: Kind, name: str) -> None:
    """With good signatures and whole chains, the last receipt of that kind is named, and the field."""
    hand = Hand()
    act(hand)

    with pytest.raises(UnlinkedError) as found:
        verify_ledger(hand.forger.store)

    place = [row for row in hand.forger.tables.receipts if row.kind == kind][-1]
    assert (place.stream, place.seq, name) == (found.value.stream, found.value.seq, found.value.field)


def test_a_checkpoint_of_its_own_or_of_an_earlier_attempt_holds() -> None:
    """An attempt goes on from what the one before kept, and points to that until it keeps something itself."""
    hand = Hand()
    handoff = hand.offer_to_workers()
    before = hand.accept(handoff)
    kept = saves(hand, before)
    hand.forger.scribe.recording.lapse(handoff)
    after = hand.accept(handoff)
    offers_with(hand, after, kept)
    offers_with(hand, after, saves(hand, after))

    assert 5 == verify_ledger(hand.forger.store).runs


def test_a_refusal_and_a_scan_hold() -> None:
    """A run that was refused an offer goes on, offers another, and says what was found in that."""
    hand = Hand()
    parent = hand.forger.scribe.start()
    hand.forger.scribe.recording.record(parent, a_refusal(parent, new_handoff_id(NOON)))
    handoff = hand.forger.scribe.offer(parent)
    hand.forger.scribe.recording.record(parent, a_scan(parent, handoff))
    hand.accept(handoff)

    assert 4 == verify_ledger(hand.forger.store).runs


def test_revisions_count_from_one() -> None:
    """Each answer makes the next revision, and an acceptance countersigns the latest."""
    hand = Hand()
    handoff = hand.offer()
    latest = hand.revise(handoff, 1, 2, 3)
    hand.accept(handoff, latest)
    untouched = hand.offer()
    hand.accept(untouched, hand.initiated(untouched))

    assert 6 == verify_ledger(hand.forger.store).runs


def test_every_attempt_countersigns_the_same_baton() -> None:
    """A retry does not change the baton: the second attempt signs what the first one signed."""
    hand = Hand()
    handoff = hand.offer_to_workers()
    latest = hand.revise(handoff, 1)
    hand.accept(handoff, latest)
    hand.forger.scribe.recording.lapse(handoff)
    hand.accept(handoff, latest)

    assert 5 == verify_ledger(hand.forger.store).runs


def test_an_acceptance_need_not_countersign() -> None:
    """Whoever took a handoff without reading its baton said so by leaving it out."""
    hand = Hand()
    handoff = hand.offer()
    hand.revise(handoff, 1)
    hand.accept(handoff)

    assert 4 == verify_ledger(hand.forger.store).runs


def test_a_late_outcome_is_kept_as_evidence() -> None:
    """What became of a call that was under way when its attempt ended stands in the handoff's stream."""
    hand = Hand()
    handoff, worker, call = hand.a_lapsed_call()
    hand.late(handoff, worker.run.id, call)
    hand.close(hand.accept(handoff))

    assert 5 == verify_ledger(hand.forger.store).runs


def test_children_of_an_earlier_attempt_are_adopted() -> None:
    """A later attempt lists what the one before handed off, beside its own, wherever they stand by then."""
    hand = Hand()
    heir, adopted = an_heir(hand)
    own = hand.forger.scribe.delegate(heir)
    hand.forger.scribe.call(adopted)
    hand.close(heir, hand.head(own), hand.head(adopted))

    assert 7 == verify_ledger(hand.forger.store).runs


def test_what_was_added_can_be_taken_away() -> None:
    """A token once, and a webhook as often as it was added."""
    hand = Hand()
    note, token, webhook = hand.forger.scribe.recording.note, new_token_id(NOON), new_webhook_id(NOON)
    note(TokenAdded(token=token, secret=DIGEST, principal=ANA, role=AccessRole.AUDITOR, until=NOON, by=ANA))
    note(TokenRevoked(token=token, by=ANA))
    for change in (WebhookChange.ADDED, WebhookChange.REMOVED) * 2:
        note(WebhookChanged(webhook=webhook, change=change, by=ANA))

    assert 8 <= verify_ledger(hand.forger.store).receipts
