"""The trail tells a tree as it happened: every run, every handoff, every act, in the order of writing."""

from datetime import timedelta

import pytest

from batonpass.accounts.trail.trail_values import Called, Happened
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import RunId
from batonpass.model.base.kinds import Settlement
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Constraint, Decision, OpenQuestion
from batonpass.model.bodies.body import HandoffInitiated, HandoffLapsed, VerificationPassed
from batonpass.model.ledger.run import RunState
from batonpass.records.text import Found
from tests.unit.accounts.trees import ANA, SECOND, Place, break_off, calls_of, fail, find, kinds_of, read, tried, write

LONG = timedelta(minutes=10)


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_run_is_told_in_the_order_of_its_stream(place: Place) -> None:
    """What the human said, what was noted, handed off, called and reported stand where they happened."""
    lead = place.relay().start("Fix rounding", by=ANA, items=[Constraint("never touch the API")])
    lead.record(Decision("half-even", why="tax office"))
    lead.call(find, 3)
    with lead.hand_off("editor", "Round half-even\nand test it") as editor:
        editor.report("done")
    lead.add_intent("and be quick")
    lead.checkpoint([])
    lead.close()

    told = place.trail(lead.id).runs[lead.id]

    assert [
        "run.started",
        "run.recorded",
        "run.recorded",
        "call find",
        "handoff.initiated",
        "run.recorded",
        "checkpoint.saved",
        "run.closed",
    ] == kinds_of(told)
    assert (RunState.COMPLETED, '"Fix rounding"') == (told.run.state, str(told.task))


def test_words_are_first_lines(place: Place) -> None:
    """Of a longer text the first line is told, and that there is more."""
    lead = place.relay().start("Fix rounding", by=ANA)
    handoff = lead.hand_off("editor", "\n  Round half-even\nand test it")

    task = place.trail(lead.id).handoffs[handoff.id].task

    assert task is not None
    assert ("Round half-even", False, '"Round half-even…"') == (task.line, task.whole, str(task))


def test_items_that_came_with_an_offer_are_told_with_it(place: Place) -> None:
    """What a sender says besides its task is recorded by the offer itself."""
    lead = place.relay().start("Fix rounding", by=ANA)
    handoff = lead.hand_off("editor", "Round", may=["write:src/**"], items=[OpenQuestion("VAT?", blocking=True)])

    told = place.trail(lead.id).handoffs[handoff.id]

    assert ["VAT? (blocking)"] == [noted.words.line for noted in told.offered.items]
    assert "write:src/**" == str(told.may).strip('"')


def test_calls_say_what_became_of_them(place: Place) -> None:
    """A call has its outcome, how long it took, its error, and what it changed."""
    lead = place.relay().start("Fix rounding", by=ANA)
    lead.call(write, "a.py")
    lead.call(read, "a.py")
    tried(lambda: lead.call(fail, "no"))

    made = calls_of(place.trail(lead.id), lead)

    assert [
        ("write", "completed", None, "a.py", False),
        ("read", "completed", None, None, True),
        ("fail", "failed", "value", None, False),
    ] == [
        (call.record.tool, call.record.outcome, call.record.why, call.target and call.target.line, call.record.reads)
        for call in made
    ]
    assert ["path=a.py", "words=no"] == [call.arguments.line for call in made if call.arguments is not None]
    assert ['"ValueError: no"'] == [str(call.message) for call in made if call.message is not None]


def test_a_call_without_an_outcome_is_in_doubt_once_its_run_is_over(place: Place) -> None:
    """While the run is open it may still come; afterwards nobody knows."""
    lead = place.relay().start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell")
    run = handoff.accept()
    tried(lambda: run.call(break_off, "all"))

    before = calls_of(place.trail(lead.id), run)[0].record.in_doubt
    run.fail(RuntimeError("gone"))

    assert (False, True) == (before, calls_of(place.trail(lead.id), run)[0].record.in_doubt)


def test_a_lost_process_leaves_its_calls_in_doubt(place: Place) -> None:
    """A root that goes on under another key did not learn what its first process called."""
    relay = place.relay()
    lead = relay.start("Tell them", by=ANA)
    tried(lambda: lead.call(break_off, "all"))
    relay.resume(lead.id)

    trail = place.trail(lead.id)

    assert [True] == [call.record.in_doubt for call in calls_of(trail, lead)]
    assert ("run.rekeyed", 2) == (kinds_of(trail.runs[lead.id])[-1], trail.runs[lead.id].epoch)


@pytest.mark.parametrize("settlement", [Settlement.REPEAT, Settlement.SKIP])
def test_what_was_decided_about_a_call_is_told_with_it(place: Place, settlement: Settlement) -> None:
    """A call that somebody settled is not in doubt any more."""
    lead = place.relay().start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell")
    run = handoff.accept()
    tried(lambda: run.call(break_off, "all"))
    run.fail(RuntimeError("gone"))
    handoff.settle(calls_of(place.trail(lead.id), run)[0].record.id, settlement, by=ANA)

    call = calls_of(place.trail(lead.id), run)[0]

    assert (settlement, False) == (call.record.settlement, call.record.in_doubt)


def test_a_late_result_that_was_accepted_is_told_with_its_call(place: Place) -> None:
    """The attempt lapsed while its call was under way; somebody took the result that came afterwards."""
    relay = place.relay()
    lead = relay.start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell", carrier=Carrier.WORKER)
    run = handoff.accept(lease=relay.claim(holder="w", lease_for=timedelta(0)))

    def slow(to: str) -> str:
        relay.sweep()
        return to

    tried(lambda: run.call(slow, "all"))
    before = calls_of(place.trail(lead.id), run)[0].record
    handoff.settle(before.id, Settlement.LATE, by=ANA)

    after = calls_of(place.trail(lead.id), run)[0].record

    assert (None, True) == (before.settlement, before.in_doubt)
    assert (Settlement.LATE, False) == (after.settlement, after.in_doubt)


def test_finished_calls_of_an_earlier_attempt_are_said_to_be_kept(place: Place) -> None:
    """The next attempt does not make them again, and says how many."""
    lead = place.relay().start("Fix rounding", by=ANA)
    handoff = lead.hand_off("editor", "Round")
    first = handoff.accept()
    first.call(write, "a.py")
    first.fail(RuntimeError("gone"))
    handoff.retry(by=ANA)
    second = handoff.accept()
    second.call(write, "a.py")
    second.close()

    trail = place.trail(lead.id)

    assert [second.id] == [call.kept_by for call in calls_of(trail, first)]
    assert [] == calls_of(trail, second)


def test_acts_and_attempts_are_told_in_one_order(place: Place) -> None:
    """A worker that died, the lapse, the next attempt and the verdict follow each other."""
    relay = place.relay()
    lead = relay.start("Draft", by=ANA)
    handoff = lead.hand_off("drafter", "Draft it", carrier=Carrier.WORKER)
    dead = relay.claim(holder="one", lease_for=timedelta(0))
    assert dead is not None
    first = relay.handoff(handoff.id).accept(lease=dead)
    relay.sweep()
    lease = relay.claim(holder="two", lease_for=LONG)
    assert lease is not None
    second = relay.handoff(handoff.id).accept(lease=lease)
    second.close()
    handoff.verify(by=ANA, check=lambda: True)

    told = place.trail(lead.id).handoffs[handoff.id]

    assert [first.id, HandoffLapsed, second.id, VerificationPassed] == [
        type(entry.body) if isinstance(entry, Happened) else entry for entry in told.story
    ]
    assert ((first.id, second.id), State.VERIFIED) == (told.attempts, told.handoff.state)


def test_the_order_is_that_of_writing_whatever_the_clocks_say(place: Place) -> None:
    """An act whose relay has a slow clock stays where it was written."""
    lead = place.relay().start("Draft", by=ANA)
    handoff = lead.hand_off("drafter", "Draft it", hold=True)
    place.clock.tick(-3600 * SECOND)
    handoff.approve(by=ANA)
    run = handoff.accept()

    story = place.trail(lead.id).handoffs[handoff.id].story

    assert ["handoff.approved", run.id] == [
        str(entry.body.kind) if isinstance(entry, Happened) else entry for entry in story
    ]


def test_erased_words_are_said_to_be_erased(place: Place) -> None:
    """Their receipt stays, and so does their place in the trail."""
    relay = place.relay()
    lead = relay.start("Fix rounding", by=ANA)
    handoff = lead.hand_off("editor", "Round")
    offered = next(
        told
        for told in place.trail(lead.id).runs[lead.id].events
        if isinstance(told, Happened) and isinstance(told.body, HandoffInitiated)
    )
    relay.admin.erase([offered.words["task"].content], by=ANA, reason="they asked")

    task = place.trail(lead.id).handoffs[handoff.id].task

    assert task is not None
    assert (Found.ERASED, "erased") == (task.found, str(task))


def test_any_run_of_a_tree_leads_to_the_whole(place: Place) -> None:
    """The tree is read from its root; below a run or a handoff only what hangs there is told."""
    lead = place.relay().start("Fix rounding", by=ANA)
    handoff = lead.hand_off("editor", "Round")
    run = handoff.accept()

    trail = place.trail(run.id)

    assert (lead.id, lead.id) == (trail.root, trail.top)
    assert [lead.id] == [told.run.id for told in trail.below(run.id).above]
    assert [lead.id] == [told.run.id for told in trail.below(handoff.id).above]
    with pytest.raises(NotFoundError):
        trail.below(RunId("run_01jd2m3n4p5q6r7s8t9v0w1x2y"))


def test_a_denied_call_says_which_rule(place: Place) -> None:
    """It stands among the calls, where it was tried."""
    lead = place.relay().start("Tell them", by=ANA)
    handoff = lead.hand_off("mailer", "Tell")
    first = handoff.accept()
    tried(lambda: first.call(break_off, "all"))
    first.fail(RuntimeError("gone"))
    handoff.retry(by=ANA)
    second = handoff.accept()

    assert "call.in_doubt" == tried(lambda: second.call(break_off, "all"))
    denied = calls_of(place.trail(lead.id), second)

    assert [("denied", "call.in-doubt")] == [(call.record.outcome, call.record.why) for call in denied]


def test_nothing_is_told_twice(place: Place) -> None:
    """Every receipt of the tree is told once: an outcome with its request, an offer in its parent's stream."""
    lead = place.relay().start("Fix rounding", by=ANA)
    with lead.hand_off("editor", "Round", hold=False) as editor:
        editor.call(write, "a.py")
    lead.close()

    trail = place.trail(lead.id)
    told = [event for run in trail.runs.values() for event in run.events]
    outcomes = sum(isinstance(event, Called) and event.record.outcome in {"completed", "failed"} for event in told)
    acts = sum(isinstance(entry, Happened) for known in trail.handoffs.values() for entry in known.story)

    assert trail.receipts == len(told) + outcomes + acts
