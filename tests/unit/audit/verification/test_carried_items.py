"""What travels with handoffs: the same item, the same digest, the same part, from its recording through every hop."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import UnlinkedError
from batonpass.handoff.transfer.attempt_receipts import close_out
from batonpass.ledger.position import Working
from batonpass.model.base.ids import ContentId, HandoffId, new_handoff_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import Body, Carried, HandoffInitiated, Kind, Outcome, Part, RunRecorded, RunRelaxed
from batonpass.model.ledger.content import Content, new_content
from batonpass.testing.builders import ANA
from batonpass.testing.clock import NOON
from tests.unit.audit.forging import Forger
from tests.unit.model.examples import DIGEST, EDITOR, an_id


def words(part: Part) -> tuple[Content, Carried]:
    """Return some words, and how a receipt names them."""
    content = new_content(f"{part}.1", f"a {part}", NOON)
    return content, Carried(item=content.ref.id, digest=content.ref.digest, part=part)


@dataclass
class Hand:
    """Somebody who records as a relay would, and names items as they please: the store does not look at that."""

    forger: Forger = field(default_factory=Forger)

    def start(self) -> Working:
        """Begin a root run."""
        return self.forger.scribe.start()

    def intent(self, run: Working) -> Carried:
        """Return how a tree's first statement is named."""
        ref = self.forger.receipt(run.run.root, 1).content[Part.INTENT]
        return Carried(item=ref.id, digest=ref.digest, part=Part.INTENT)

    def record(self, run: Working, part: Part) -> Carried:
        """Write an item down in a run."""
        content, named = words(part)
        self.write(run, RunRecorded(run=run.run.id, by=ANA, items=(named,)), content)
        return named

    def write(self, run: Working, body: Body, *contents: Content) -> None:
        """Write a receipt into a run's stream."""
        self.forger.scribe.recording.record(run, body, contents)

    def offer(self, run: Working, *carries: Carried, said: tuple[Content, ...] = ()) -> HandoffId:
        """Offer a task with these items."""
        handoff = new_handoff_id(NOON)
        body = HandoffInitiated(
            handoff=handoff,
            run=run.run.id,
            to=EDITOR,
            carrier=Carrier.CALLER,
            state=State.OFFERED,
            carries=carries,
        )
        self.write(run, body, *said)
        return handoff

    def delegate(self, run: Working, *carries: Carried) -> Working:
        """Offer a task with these items, and take it."""
        return self.forger.scribe.recording.accept(self.offer(run, *carries))

    def relax(self, run: Working, item: ContentId) -> None:
        """Release a run from something."""
        self.write(run, RunRelaxed(run=run.run.id, item=item, by=ANA))

    def close(self, run: Working, *gives: Carried, report: str | None = None) -> Carried | None:
        """Close an attempt that gives these items; return how its report is named."""
        content = None if report is None else new_content("report", report, NOON)
        contents = () if content is None else (content,)
        self.forger.scribe.recording.end(run, close_out(run.run, Outcome.COMPLETED, (), gives=gives), contents)
        if content is None:
            return None
        return Carried(item=content.ref.id, digest=content.ref.digest, part=Part.COMPLETED)


def carries_what_nobody_recorded(hand: Hand) -> None:
    """Name an item that does not exist."""
    hand.offer(hand.start(), words(Part.DECISION)[1])


def carries_another_digest(hand: Hand) -> None:
    """Name an item with the digest of other words."""
    lead = hand.start()
    hand.offer(lead, replace(hand.record(lead, Part.DECISION), digest=DIGEST))


def carries_another_intent(hand: Hand) -> None:
    """Name the human's statement with the digest of other words."""
    lead = hand.start()
    hand.offer(lead, replace(hand.intent(lead), digest=DIGEST))


def carries_it_as_another_part(hand: Hand) -> None:
    """Hand a constraint on as a mere claim, which binds nobody."""
    lead = hand.start()
    hand.offer(lead, replace(hand.record(lead, Part.CONSTRAINT), part=Part.CLAIM))


def carries_intent_as_untrusted(hand: Hand) -> None:
    """Hand the human's words on as something from outside."""
    lead = hand.start()
    hand.offer(lead, replace(hand.intent(lead), part=Part.UNTRUSTED))


def carries_words_of_its_own_with_another_digest(hand: Hand) -> None:
    """Say something with the offer, and name it with the digest of other words."""
    content, named = words(Part.CONSTRAINT)
    hand.offer(hand.start(), replace(named, digest=DIGEST), said=(content,))


def carries_from_another_tree(hand: Hand) -> None:
    """Name an item that somebody recorded elsewhere."""
    elsewhere = hand.record(hand.start(), Part.DECISION)
    hand.offer(hand.start(), elsewhere)


def carries_intent_of_another_tree(hand: Hand) -> None:
    """Name what a human said about something else."""
    elsewhere = hand.intent(hand.start())
    hand.offer(hand.start(), elsewhere)


def carries_before_it_was_recorded(hand: Hand) -> None:
    """Name an item that is recorded only afterwards: the receipt of the offer stands before it."""
    lead = hand.start()
    content, named = words(Part.DECISION)
    hand.offer(lead, named)
    hand.write(lead, RunRecorded(run=lead.run.id, by=ANA, items=(named,)), content)


def carries_the_task_of_another_offer(hand: Hand) -> None:
    """Name a content that is there and was never recorded as an item."""
    lead = hand.start()
    hand.forger.scribe.offer(lead)
    ref = hand.forger.receipt(lead.run.id, 2).content["task"]
    hand.offer(lead, Carried(item=ref.id, digest=ref.digest, part=Part.DECISION))


def records_what_is_not_its_own(hand: Hand) -> None:
    """Record under one's own name what was recorded before."""
    lead = hand.start()
    known = hand.record(lead, Part.DECISION)
    hand.write(lead, RunRecorded(run=lead.run.id, by=ANA, items=(known,)))


def records_another_digest(hand: Hand) -> None:
    """Record words, and name them with the digest of others."""
    lead = hand.start()
    content, named = words(Part.DECISION)
    hand.write(lead, RunRecorded(run=lead.run.id, by=ANA, items=(replace(named, digest=DIGEST),)), content)


def gives_what_nobody_recorded(hand: Hand) -> None:
    """Give back an item that does not exist."""
    hand.close(hand.delegate(hand.start()), words(Part.ARTIFACT)[1])


def gives_another_digest(hand: Hand) -> None:
    """Give back an item with the digest of other words."""
    child = hand.delegate(hand.start())
    hand.close(child, replace(hand.record(child, Part.ARTIFACT), digest=DIGEST))


def carries_a_report_as_a_decision(hand: Hand) -> None:
    """Hand a child's report on as if it had been decided."""
    lead = hand.start()
    report = hand.close(hand.delegate(lead), report="done")
    assert report is not None
    hand.offer(lead, replace(report, part=Part.DECISION))


def relaxes_what_is_not_there(hand: Hand) -> None:
    """Release a run from nothing."""
    hand.relax(hand.start(), ContentId(an_id("content")))


def relaxes_a_decision(hand: Hand) -> None:
    """Release a run from what binds nobody."""
    lead = hand.start()
    hand.relax(lead, hand.record(lead, Part.DECISION).item)


def relaxes_intent(hand: Hand) -> None:
    """Release a run from what the human wants."""
    lead = hand.start()
    hand.relax(lead, hand.intent(lead).item)


def relaxes_later_intent(hand: Hand) -> None:
    """Release a run from what the human said later."""
    lead = hand.start()
    hand.relax(lead, hand.record(lead, Part.INTENT).item)


def relaxes_twice(hand: Hand) -> None:
    """Release a run from what it was released from."""
    lead = hand.start()
    bound = hand.record(lead, Part.CONSTRAINT).item
    hand.relax(lead, bound)
    hand.relax(lead, bound)


def relaxes_what_binds_another(hand: Hand) -> None:
    """Release a child from what its parent was told after it had handed off."""
    lead = hand.start()
    child = hand.delegate(lead)
    hand.relax(child, hand.record(lead, Part.EXCLUSION).item)


def relaxes_what_binds_a_child(hand: Hand) -> None:
    """Release a parent from what its child bound itself to."""
    lead = hand.start()
    hand.relax(lead, hand.record(hand.delegate(lead), Part.CONSTRAINT).item)


CASES: dict[str, tuple[Callable[[Hand], None], Kind, str]] = {
    "an item nobody recorded": (carries_what_nobody_recorded, Kind.HANDOFF_INITIATED, "carries"),
    "an item with another digest": (carries_another_digest, Kind.HANDOFF_INITIATED, "carries"),
    "an intent with another digest": (carries_another_intent, Kind.HANDOFF_INITIATED, "carries"),
    "a constraint as a claim": (carries_it_as_another_part, Kind.HANDOFF_INITIATED, "carries"),
    "an intent as untrusted": (carries_intent_as_untrusted, Kind.HANDOFF_INITIATED, "carries"),
    "its own words with another digest": (
        carries_words_of_its_own_with_another_digest,
        Kind.HANDOFF_INITIATED,
        "carries",
    ),
    "an item of another tree": (carries_from_another_tree, Kind.HANDOFF_INITIATED, "carries"),
    "the intent of another tree": (carries_intent_of_another_tree, Kind.HANDOFF_INITIATED, "carries"),
    "an item of later": (carries_before_it_was_recorded, Kind.HANDOFF_INITIATED, "carries"),
    "a task": (carries_the_task_of_another_offer, Kind.HANDOFF_INITIATED, "carries"),
    "a report as a decision": (carries_a_report_as_a_decision, Kind.HANDOFF_INITIATED, "carries"),
    "a recording of what is not its own": (records_what_is_not_its_own, Kind.RUN_RECORDED, "items"),
    "a recording with another digest": (records_another_digest, Kind.RUN_RECORDED, "items"),
    "a gift that nobody recorded": (gives_what_nobody_recorded, Kind.HANDOFF_COMPLETED, "gives"),
    "a gift with another digest": (gives_another_digest, Kind.HANDOFF_COMPLETED, "gives"),
    "a release from nothing": (relaxes_what_is_not_there, Kind.RUN_RELAXED, "item"),
    "a release from a decision": (relaxes_a_decision, Kind.RUN_RELAXED, "item"),
    "a release from the intent": (relaxes_intent, Kind.RUN_RELAXED, "item"),
    "a release from a later statement": (relaxes_later_intent, Kind.RUN_RELAXED, "item"),
    "a second release": (relaxes_twice, Kind.RUN_RELAXED, "item"),
    "a release from what binds its parent": (relaxes_what_binds_another, Kind.RUN_RELAXED, "item"),
    "a release from what binds its child": (relaxes_what_binds_a_child, Kind.RUN_RELAXED, "item"),
}


@pytest.mark.parametrize(("act", "kind", "name"), CASES.values(), ids=CASES.keys())
def test_an_item_that_is_not_what_was_recorded_is_found(act: Callable[[Hand], None], kind: Kind, name: str) -> None:
    """With good signatures and whole chains, the last receipt of that kind is named, and the field."""
    hand = Hand()
    act(hand)

    with pytest.raises(UnlinkedError) as found:
        verify_ledger(hand.forger.store)

    place = [row for row in hand.forger.tables.receipts if row.kind == kind][-1]
    assert (place.stream, place.seq, name) == (found.value.stream, found.value.seq, found.value.field)


def test_items_travel_unchanged_through_every_hop() -> None:
    """Intent, notes, what an offer says, a report and what a child gives are known to everybody further down."""
    hand = Hand()
    lead = hand.start()
    content, said = words(Part.CONSTRAINT)
    noted = [hand.record(lead, part) for part in (Part.DECISION, Part.CONSTRAINT, Part.UNTRUSTED)]
    first = hand.forger.scribe.recording.accept(hand.offer(lead, hand.intent(lead), *noted, said, said=(content,)))
    second = hand.delegate(first, hand.intent(lead), *noted, said)
    found = hand.record(second, Part.ARTIFACT)
    report = hand.close(second, found, noted[0], report="done")
    assert report is not None
    hand.offer(first, hand.intent(lead), report, found, said)
    later = hand.record(lead, Part.INTENT)
    hand.offer(first, hand.intent(lead), later)

    assert 5 == verify_ledger(hand.forger.store).runs


def test_what_binds_a_run_can_be_relaxed() -> None:
    """Its own constraints, those that an offer said, and those that were inherited through an attempt."""
    hand = Hand()
    lead = hand.start()
    own = hand.record(lead, Part.CONSTRAINT)
    content, said = words(Part.EXCLUSION)
    handoff = hand.offer(lead, own, said, said=(content,))
    child = hand.forger.scribe.recording.accept(handoff)
    for run, item in ((lead, own), (child, own), (child, said)):
        hand.relax(run, item.item)
    hand.offer(child)

    assert 4 == verify_ledger(hand.forger.store).runs
