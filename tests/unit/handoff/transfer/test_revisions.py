"""Whoever works on something while one of its inputs is refuted is told, and says that it knows."""

from datetime import timedelta

import pytest

from batonpass import Brief, Decision, Relay, Run, tool
from batonpass.errors import NotFoundError
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.model.baton.items import Report
from batonpass.records.revision import Awareness, find_aware, find_revisions
from batonpass.records.stale_results import find_stale
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, Places, bodies, kinds, worker
from tests.unit.handoff.scripts import a_program


def find_rate(lead: Run, rate: str) -> LiveHandoff:
    """Let a child find a rate: it decides, attaches a file and reports."""
    handoff = lead.hand_off("finder", "Find the rate")
    with handoff as child:
        child.record(Decision(f"use {rate}"))
        child.attach("rates.csv", rate)
        child.report(rate)
    return handoff


def stale(relay: Relay) -> list[str]:
    """Return to whom the handoffs went whose results are stale."""
    with relay.store.view() as view:
        return [one.handoff.to for one in find_stale(view)]


def awareness(relay: Relay, handoff: LiveHandoff) -> list[Awareness]:
    """Return who knows each revision of a baton."""
    with relay.store.view() as view:
        known = view.get_handoff(handoff.id)
        attempts = list(view.find_attempts(known)) if known.attempt else []
        return [aware for _, aware, _ in find_aware(view, find_revisions(view, known), attempts)]


def test_a_running_child_is_told_what_was_refuted(lead: Run, relay: Relay) -> None:
    """It finds a revision with each thing that no longer stands, who says so, and why."""
    found = find_rate(lead, "3 %")
    adder = lead.hand_off("adder", "Add it up").accept()
    assert () == adder.revisions()
    found.refute("it is 2.5 %", by=ANA)
    (revision,) = adder.revisions()

    said = "refuted: user:ana refuted the result of finder, attempt 1: it is 2.5 %"
    assert (1, ANA, ()) == (revision.number, revision.by, revision.replaced_by)
    assert {f'the decision "use 3 %": {said}', f"rates.csv: {said}", f'the report "3 %": {said}'} == set(
        revision.fallen
    )
    assert [(ANA, 1)] == [(body.by, body.revision) for body in bodies(relay, "handoff.revised")]


def test_an_acknowledgement_is_recorded_and_the_result_stands(lead: Run, relay: Relay) -> None:
    """It is countersigned in the run's own stream. A result that was delivered in the knowledge of it is not stale."""
    found = find_rate(lead, "3 %")
    handoff = lead.hand_off("adder", "Add it up")
    adder = handoff.accept()
    found.refute("no", by=ANA)
    assert [Awareness.TOLD] == awareness(relay, handoff)
    adder.acknowledge(adder.revisions()[0])
    adder.report("the rate is refuted, so there is no sum")
    adder.close()

    assert ([], [Awareness.ACKNOWLEDGED], ()) == (stale(relay), awareness(relay, handoff), adder.revisions())
    assert [(adder.id, 1)] == [(body.run, body.revision) for body in bodies(relay, "run.acknowledged")]


def test_a_result_without_an_acknowledgement_is_stale(lead: Run, relay: Relay) -> None:
    """Also if a later attempt redoes the input: nobody knows what the child has read."""
    found = find_rate(lead, "3 %")
    handoff = lead.hand_off("adder", "Add it up")
    adder = handoff.accept()
    found.refute("no", by=ANA)
    adder.report("103")
    adder.close()

    assert (["adder"], [Awareness.IGNORED]) == (stale(relay), awareness(relay, handoff))
    find_rate(lead, "2.5 %")
    assert ["adder"] == stale(relay)


def test_what_was_redone_meanwhile_can_be_read(lead: Run) -> None:
    """After the acknowledgement the new file is in the place of the old one, and is handed on."""
    found = find_rate(lead, "3 %")
    adder = lead.hand_off("adder", "Add it up").accept()
    found.refute("no", by=ANA)
    find_rate(lead, "2.5 %")

    told, redone = adder.revisions()
    assert () == told.replaced_by
    assert {"rates.csv", 'the decision "use 2.5 %"', 'the report "2.5 %"'} == set(redone.replaced_by)
    assert b"3 %" == adder.read("rates.csv")
    adder.acknowledge()
    assert (b"2.5 %", 2) == (adder.read("rates.csv"), adder.baton.revision)
    below = adder.hand_off("checker", "Check").baton()
    assert ["2.5 %"] == [item.value.result for item in below.items if isinstance(item.value, Report)]


def test_only_those_who_stand_on_it_are_told(lead: Run) -> None:
    """Whoever names other inputs is left alone, and so is whoever was offered it as refuted already."""
    found = find_rate(lead, "3 %")
    lead.attach("style.md", "short")
    layouter = lead.hand_off("layouter", "Lay it out", brief=Brief(inputs=["style.md"])).accept()
    found.refute("no", by=ANA)
    told = lead.hand_off("told", "Say what is wrong").accept()

    assert ((), ()) == (layouter.revisions(), told.revisions())


def test_a_child_of_a_child_is_told_too(lead: Run) -> None:
    """It was handed on, so it is told wherever it is."""
    found = find_rate(lead, "3 %")
    editor = lead.hand_off("editor", "Edit").accept()
    checker = editor.hand_off("checker", "Check").accept()
    found.refute("no", by=ANA)

    assert (1, 1) == (len(editor.revisions()), len(checker.revisions()))


def test_who_has_not_begun_begins_with_it(lead: Run, relay: Relay) -> None:
    """An offer that waits is revised too: whoever takes it reads what stands, and has nothing to acknowledge."""
    found = find_rate(lead, "3 %")
    handoff = lead.hand_off("worker", "Add it up", carrier="worker")
    found.refute("no", by=ANA)
    find_rate(lead, "2.5 %")
    run = worker(relay)

    assert (b"2.5 %", ()) == (run.read("rates.csv"), run.revisions())
    run.report("102.5")
    run.close()
    assert ([], {Awareness.BEGAN_WITH}) == (stale(relay), set(awareness(relay, handoff)))


def test_a_worker_elsewhere_sees_what_another_process_refuted(places: Places) -> None:
    """Doors look every few seconds, and at once where it was refuted in the same process."""
    clock = FrozenClock()
    lead = places.relay(clock=clock).start("Convert", by=ANA)
    found = find_rate(lead, "3 %")
    lead.hand_off("worker", "Add it up", carrier="worker")
    run = worker(places.relay(clock=clock))
    here = lead.hand_off("adder", "Add it up").accept()
    found.refute("no", by=ANA)

    assert (1, 0) == (len(here.news()), len(run.news()))
    clock.tick(timedelta(seconds=6))
    assert (1, 1) == (len(here.news()), len(run.news()))
    assert 1 == len(run.news()), "until it is acknowledged"
    run.acknowledge(1)
    assert () == run.news()


def test_the_retry_of_a_child_that_was_told_begins_with_it(lead: Run) -> None:
    """It failed while it worked; the next attempt has the latest revision, and nobody has to say `fresh`."""
    found = find_rate(lead, "3 %")
    handoff = lead.hand_off("adder", "Add it up")
    adder = handoff.accept()
    found.refute("no", by=ANA)
    find_rate(lead, "2.5 %")
    adder.fail(ValueError("boom"))
    handoff.retry()

    assert b"2.5 %" == handoff.accept().read("rates.csv")


def test_what_comes_from_outside_taints_whoever_acknowledges(lead: Run) -> None:
    """A redone input is new to the run: it launders nothing."""
    found = find_rate(lead, "3 %")
    adder = lead.hand_off("adder", "Add it up").accept()
    found.refute("no", by=ANA)
    with lead.hand_off("finder", "Find the rate") as child:
        child.call(tool("fetch", reads=True, external=True)(lambda page: page), "a page")
        child.attach("rates.csv", "2.5 %")
    assert not adder.taint
    adder.acknowledge()

    assert (True, b"2.5 %") == (bool(adder.taint), adder.read("rates.csv"))


def test_there_is_nothing_to_acknowledge_without_a_revision(lead: Run, relay: Relay) -> None:
    """All of nothing is nothing; a number that there is not is an error, and a root run has no baton."""
    find_rate(lead, "3 %")
    adder = lead.hand_off("adder", "Add it up").accept()
    adder.acknowledge()
    with pytest.raises(NotFoundError):
        adder.acknowledge(1)
    with pytest.raises(NotFoundError):
        lead.acknowledge()

    assert ([], ()) == (bodies(relay, "run.acknowledged"), lead.revisions())


def test_a_tree_without_refutations_gains_no_receipt(lead: Run, relay: Relay) -> None:
    """Nothing is asked of anybody, and nothing is written."""
    find_rate(lead, "3 %")
    with lead.hand_off("adder", "Add it up") as adder:
        adder.report("103")
    assert not {"handoff.revised", "run.acknowledged"} & set(kinds(relay))


def test_a_program_is_told_with_its_next_answer(lead: Run, relay: Relay) -> None:
    """It acknowledges by a request. Its later answers no longer say it."""
    found = find_rate(lead, "3 %")

    def look() -> str:
        found.refute("it is 2.5 %", by=ANA)
        return "looked"

    body = """
    first = ask(type="call", tool="look")
    (one,) = first["revisions"]
    done = ask(type="acknowledge", revision=one["revision"])
    later = ask(type="read", name="rates.csv")
    told = [one["text"].splitlines()[0], done["result"], "revisions" in done, "revisions" in later]
    say({"type": "report", "value": told})
    """
    result = lead.hand_off("adder", "Add it up", run=a_program(body, tools={"look": look})).wait()

    said = "Revision 1 of your baton. No longer true, do not build on it:"
    assert ([said, {}, False, False], []) == (result.value, stale(relay))
