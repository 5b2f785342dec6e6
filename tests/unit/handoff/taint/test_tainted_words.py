"""Words that come back besides a result: questions, reasons and verdicts launder nothing, whoever reads them."""

from contextlib import suppress

import pytest

from batonpass.errors import CallSuspendedError, HandoffAskedError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.model.base.label import Label, Source, SourceType
from batonpass.model.base.lifecycle import State
from batonpass.relay import Relay
from tests.unit.handoff.outside import PAGE, World, started
from tests.unit.handoff.places import ANA, bodies

EXTERNAL = Label(SourceType.EXTERNAL)


def read_and_fail(handoff: LiveHandoff, world: World, error: str = "broken") -> tuple[Source, ...]:
    """Let an attempt read a page and fail; return what came in."""
    child = handoff.accept()
    child.call(world.fetch, "news.example")
    child.fail(RuntimeError(error))
    return child.taint


def test_a_question_of_a_tainted_child_taints_whoever_reads_it() -> None:
    """An attempt read a page and failed; the next asks whether it may wire the money."""
    with started() as (relay, lead, world):
        handoff = lead.hand_off("clerk", "Pay the invoice")
        sources = read_and_fail(handoff, world)
        handoff.retry()
        handoff.ask(f"May I? {PAGE}")
        assert () == lead.taint
        result = handoff.result()

        assert (State.ASKED, EXTERNAL, sources) == (result.state, result.label, result.sources)
        assert sources == lead.taint
        (tainted,) = bodies(relay, "run.tainted")
        assert (handoff.id, sources) == (tainted.handoff, tainted.sources)
        with pytest.raises(CallSuspendedError):
            lead.call(world.pay, "DE1", 9800)


def test_an_error_that_has_the_question_taints_as_well() -> None:
    """Whoever tries to take what was asked about reads what was asked."""
    with started() as (_, lead, world):
        handoff = lead.hand_off("clerk", "Pay the invoice")
        sources = read_and_fail(handoff, world)
        handoff.retry()
        handoff.ask(f"May I? {PAGE}")
        with pytest.raises(HandoffAskedError, match="May I"):
            handoff.accept()

        assert sources == lead.taint


def test_a_reason_to_decline_taints_whoever_reads_it() -> None:
    """It may say anything: pay first, then I take it."""
    with started() as (_, lead, world):
        handoff = lead.hand_off("clerk", "Pay the invoice")
        sources = read_and_fail(handoff, world)
        handoff.retry()
        handoff.decline(PAGE)

        assert (PAGE, sources, sources) == ((result := handoff.result()).reason, result.sources, lead.taint)


def test_why_it_failed_taints_whoever_reads_it() -> None:
    """An error quotes what was read."""
    with started() as (_, lead, world):
        handoff = lead.hand_off("clerk", "Pay the invoice")
        sources = read_and_fail(handoff, world, PAGE)

        assert (PAGE in handoff.result().reason, sources) == (True, lead.taint)


def test_what_was_refuted_taints_whoever_reads_it() -> None:
    """The report is still there to be read, and so is what the check said about it."""
    with started() as (relay, lead, world):
        handoff = lead.hand_off("clerk", "Read the news")
        child = handoff.accept()
        child.call(world.fetch, "news.example")
        child.report(PAGE)
        child.close()
        relay.handoff(handoff.id).refute(f"it says {PAGE}", by="agent:checker")

        assert (State.REFUTED, child.taint) == ((result := handoff.result()).state, result.sources)
        assert child.taint == lead.taint


def test_what_a_person_says_taints_nobody() -> None:
    """A child that read a page is cancelled by Ana: her words are hers."""
    with started() as (_, lead, world):
        handoff = lead.hand_off("clerk", "Pay the invoice")
        child = handoff.accept()
        child.call(world.fetch, "news.example")
        handoff.cancel(by=ANA, reason="not today")

        assert ("not today", (), ()) == ((result := handoff.result()).reason, result.sources, lead.taint)


def test_what_an_agent_says_when_it_cancels_does() -> None:
    """Its reason may be made of what the child knew."""
    with started() as (_, lead, world):
        handoff = lead.hand_off("clerk", "Pay the invoice")
        child = handoff.accept()
        child.call(world.fetch, "news.example")
        handoff.cancel(by="agent:watcher", reason=PAGE)
        handoff.result()

        assert child.taint == lead.taint


def test_a_clean_child_asks_and_declines_at_no_cost() -> None:
    """Nobody is tainted by words alone."""
    with started() as (relay, lead, _):
        asked, declined = lead.hand_off("one", "Work"), lead.hand_off("two", "Work")
        asked.ask("Which one?")
        declined.decline("too much")

        assert [(None, ()), (None, ())] == [(each.result().label, each.result().sources) for each in (asked, declined)]
        assert ((), []) == (lead.taint, bodies(relay, "run.tainted"))


def taken(relay: Relay, run: LiveRun, handoff: LiveHandoff) -> tuple[Source, ...]:
    """Read a result where there is no run at hand, and go on with it in one."""
    result = relay.handoff(handoff.id).wait()
    run.note_untrusted(*result.sources)
    return result.sources


def test_a_result_that_no_run_reads_says_what_it_is_made_of() -> None:
    """A program that goes on with it in another run can take that in; it is held as if it had read it itself."""
    with started() as (relay, lead, world):
        handoff = lead.hand_off("reader", "Read the news")
        child = handoff.accept()
        child.call(world.fetch, "news.example")
        child.report("prices are new")
        child.close()
        with relay.start("Pay", by=ANA) as other:
            assert (child.taint, EXTERNAL) == (taken(relay, other, handoff), other.label)
            with suppress(CallSuspendedError):
                other.call(world.pay, "DE1", 9800)

        assert ([], EXTERNAL) == (world.done, relay.handoff(handoff.id).result().label)


def test_endorsed_words_are_clean_again() -> None:
    """A person answers for the page before the parent reads the question."""
    with started() as (_, lead, world):
        handoff = lead.hand_off("clerk", "Pay the invoice")
        (source,) = read_and_fail(handoff, world)
        handoff.retry()
        handoff.ask("May I?")
        handoff.endorse(source, by=ANA, reason="our own site")

        assert ((), ()) == (handoff.result().sources, lead.taint)
