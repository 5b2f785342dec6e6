"""A session that has begun is told when a result of an earlier session is refuted, and says that it knows."""

from datetime import timedelta

import pytest

from batonpass import Brief, Decision, OpenQuestion, Relay, Run, WorkItem
from batonpass.errors import NotFoundError
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.records.stale_results import find_stale
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, Places, bodies, kinds
from tests.unit.handoff.scripts import a_program

REFUTED = "user:ben refuted the result of finder, attempt 1: the sheet is old"


def session(relay: Relay, number: int) -> Run:
    """Begin the next session of a series."""
    return relay.start(f"session {number}", by=ANA, series="weekly")


def find_rate(lead: Run) -> LiveHandoff:
    """Let an agent find a rate, decide on it, and attach a file that is verified with it."""
    handoff = lead.hand_off("finder", "Find the rate")
    with handoff as finder:
        finder.attach("rates.csv", "3")
        finder.report("3 %", decisions=[Decision("use 3 %")])
    return handoff


def add_up(lead: Run) -> LiveHandoff:
    """Let another agent build on it; a person verifies what it made."""
    handoff = lead.hand_off("adder", "Add it up", brief=Brief(inputs=["rates.csv"]))
    with handoff as adder:
        adder.record(Decision("bill 103"))
        adder.report("103")
    handoff.verify(by=ANA, verdict="adds up")
    return handoff


def refute(relay: Relay, handoff: LiveHandoff) -> None:
    relay.handoff(handoff.id).refute("the sheet is old", by="user:ben")


def stale(relay: Relay) -> list[str]:
    """Return to whom the handoffs went whose results are stale."""
    with relay.store.view() as view:
        return sorted(one.handoff.to for one in find_stale(view))


def decided(run: Run) -> list[str]:
    """Return what a run goes by."""
    return [item.value.what for item in run.notes if isinstance(item.value, Decision)]


def asked(run: Run) -> list[str]:
    """Return what is open in a run."""
    return [item.value.text for item in run.notes if isinstance(item.value, OpenQuestion)]


def reopened(run: Run) -> list[str]:
    """Return what is to be decided again in a run."""
    return sorted(text for text in asked(run) if text.startswith("revisit"))


def fallen(run: Run) -> list[str]:
    """Return what a run is told that no longer stands."""
    return [line for revision in run.revisions() for line in revision.fallen]


def test_a_running_session_is_told_what_was_refuted_in_an_earlier_one(places: Places) -> None:
    """Each thing that came along from it, and from what was made of it, with who refuted it and why."""
    relay = places.relay()
    with session(relay, 1) as lead:
        rate = find_rate(lead)
        add_up(lead)
    with session(relay, 2) as lead:
        assert () == lead.revisions()
        refute(relay, rate)
        (revision,) = lead.revisions()
        assert (1, "user:ben", ()) == (revision.number, revision.by, revision.replaced_by)
        made = f"stale: made from a result that no longer stands; {REFUTED}"
        assert {
            f'the decision "use 3 %": refuted: {REFUTED}',
            f'the decision "bill 103": {made}',
            f'the workitem "Add it up": {made}',
        } == set(revision.fallen)


def test_what_it_acknowledges_leaves_its_notes_and_is_asked_instead(places: Places) -> None:
    """The verdict is countersigned in its own stream; then it goes by what the next session would begin with."""
    relay = places.relay()
    with session(relay, 1) as lead:
        rate = find_rate(lead)
        bill = add_up(lead)
    with session(relay, 2) as lead:
        lead.record(Decision("send it by mail"))
        refute(relay, rate)
        lead.acknowledge()
        assert (["send it by mail"], ()) == (decided(lead), lead.revisions())
        assert [f'revisit: "bill 103": {REFUTED}', f'revisit: "use 3 %": {REFUTED}'] == reopened(lead)
        (check,) = (text for text in asked(lead) if bill.id in text)
        assert f"made from what no longer stands: {REFUTED}" in check
        below = [item.value for item in lead.hand_off("next", "Go on").baton().items]
        assert not [one for one in below if isinstance(one, WorkItem) or one == Decision("use 3 %")]
        told = [(body.run, body.revision) for body in bodies(relay, "run.acknowledged")]
        assert [(lead.id, 1)] == told
    relay.verify()


def test_the_session_after_it_asks_the_same_once(places: Places) -> None:
    """What the second session was told while it worked is open in the third, and answered by deciding it again."""
    relay = places.relay()
    with session(relay, 1) as lead:
        rate = find_rate(lead)
    with session(relay, 2) as lead:
        refute(relay, rate)
        lead.acknowledge()
    with session(relay, 3) as lead:
        assert ([], [f'revisit: "use 3 %": {REFUTED}']) == (decided(lead), reopened(lead))
        assert () == lead.revisions()
        lead.record(Decision("use 3 %", why="the sheet is of May after all"))
    with session(relay, 4) as lead:
        assert (["use 3 %"], []) == (decided(lead), reopened(lead))


def test_it_is_told_however_many_sessions_later(places: Places) -> None:
    """It came along three times; who works on it now is told, and what is told is not told again."""
    relay = places.relay()
    with session(relay, 1) as lead:
        rate = find_rate(lead)
    for number in (2, 3):
        session(relay, number).close()
    with session(relay, 4) as lead:
        assert ["use 3 %"] == decided(lead)
        refute(relay, rate)
        assert [f'the decision "use 3 %": refuted: {REFUTED}'] == [
            line for one in lead.revisions() for line in one.fallen
        ]


def test_what_it_hands_off_travels_as_refuted_before_it_has_looked(places: Places) -> None:
    """Nobody builds on it because the lead has not asked: its next offer says so, in every hop below."""
    relay = places.relay()
    with session(relay, 1) as lead:
        rate = find_rate(lead)
    with session(relay, 2) as lead:
        before = lead.hand_off("early", "Look")
        refute(relay, rate)
        handoff = lead.hand_off("next", "Go on")
        with handoff as child:
            below = child.hand_off("deeper", "Go further").baton()
        for baton in (handoff.baton(), below):
            assert [Decision("use 3 %")] == [item.value for item in baton.items if item.id in baton.fates]
        assert {f"refuted: {REFUTED}"} == {known.sentence for known in before.baton().fates.values()}
        relay.verify()


def test_its_running_children_are_told_too_and_are_stale_without_an_acknowledgement(places: Places) -> None:
    """They stand on what came along to their lead: they get a revision, as if it had been refuted in their own tree."""
    relay = places.relay()
    with session(relay, 1) as lead:
        rate = find_rate(lead)
    with session(relay, 2) as lead:
        knows, ignores = lead.hand_off("knows", "Add it up").accept(), lead.hand_off("ignores", "Add it too").accept()
        refute(relay, rate)
        assert [f'the decision "use 3 %": refuted: {REFUTED}'] == [
            one for told in knows.revisions() for one in told.fallen
        ]
        knows.acknowledge()
        for run in (knows, ignores):
            run.report("103")
            run.close()
    assert ["ignores"] == stale(relay)
    relay.verify()


def test_another_process_is_told_within_seconds(places: Places) -> None:
    """Doors look every few seconds, and until it is acknowledged it is said with each answer."""
    clock = FrozenClock()
    relay, elsewhere = places.relay(clock=clock), places.relay(clock=clock)
    with session(relay, 1) as lead:
        rate = find_rate(lead)
    with session(relay, 2) as lead:
        refute(elsewhere, rate)
        assert () == lead.news()
        clock.tick(timedelta(seconds=6))
        assert [1, 1] == [len(lead.news()), len(lead.news())]
        assert {f"refuted: {REFUTED}"} == {
            known.sentence for known in lead.hand_off("next", "Go").baton().fates.values()
        }
        lead.acknowledge(1)
        assert () == lead.news()


def test_who_was_handed_it_in_between_is_told_when_the_lead_knows(places: Places) -> None:
    """Another process refuted it, and the lead has not looked yet: its acknowledgement tells its child."""
    clock = FrozenClock()
    relay, elsewhere = places.relay(clock=clock), places.relay(clock=clock)
    with session(relay, 1) as lead:
        rate = find_rate(lead)
    with session(relay, 2) as lead:
        lead.hand_off("early", "Look")
        refute(elsewhere, rate)
        child = lead.hand_off("adder", "Add it up").accept()
        assert child.baton is not None
        assert ({}, ()) == (child.baton.fates, child.revisions())
        assert ["adder"] == stale(relay)
        lead.acknowledge()
        assert [f'the decision "use 3 %": refuted: {REFUTED}'] == fallen(child)


def test_a_process_that_takes_the_session_over_knows_what_was_acknowledged(places: Places) -> None:
    """It does not go by what had fallen, nor is it told again; what is refuted since has the next number."""
    relay = places.relay()
    with session(relay, 1) as lead:
        tax = lead.hand_off("taxer", "Find the tax")
        with tax as taxer:
            taxer.report("19 %", decisions=[Decision("use 19 %")])
        rate = find_rate(lead)
    lead = session(relay, 2)
    refute(relay, rate)
    lead.acknowledge()
    resumed = places.relay().resume(lead.id)
    assert (["use 19 %"], ()) == (decided(resumed), resumed.revisions())
    refute(relay, tax)
    assert [2] == [one.number for one in resumed.revisions()]
    resumed.acknowledge(2)
    assert ([], ()) == (decided(resumed), resumed.revisions())
    resumed.close()
    relay.verify()


def test_a_program_that_works_for_a_child_of_it_is_told_with_its_next_answer(places: Places) -> None:
    """The doors that tell of revisions tell of these as well."""
    relay = places.relay()
    with session(relay, 1) as lead:
        rate = find_rate(lead)
    body = """
    first = ask(type="call", tool="look")
    (one,) = first["revisions"]
    say({"type": "report", "value": one["fallen"]})
    """
    with session(relay, 2) as lead:

        def look() -> str:
            refute(relay, rate)
            return "looked"

        result = lead.hand_off("adder", "Add it up", run=a_program(body, tools={"look": look})).wait()
        assert [f'the decision "use 3 %": refuted: {REFUTED}'] == result.value


def test_there_is_nothing_to_acknowledge_where_nothing_fell(places: Places) -> None:
    """Nothing is told or written. A number that there is not, and a root that began anew, are errors."""
    relay = places.relay()
    with session(relay, 1) as lead:
        find_rate(lead)
        with pytest.raises(NotFoundError):
            lead.acknowledge()
    with session(relay, 2) as lead:
        lead.acknowledge()
        with pytest.raises(NotFoundError):
            lead.acknowledge(1)
        assert ((), ()) == (lead.revisions(), lead.news())
    assert "run.acknowledged" not in kinds(relay)
