"""A result that breaks a constraint: which, by what, and who broke it first on the way."""

import json
from typing import Final

import pytest

from batonpass.accounts.why.why_values import Why, WhyVerdict
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Constraint, OpenQuestion
from batonpass.model.bodies.body import Kind
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.accounts.trees import ANA, Place, facts_of, find, lines_of, name_of, tried

PLANNED: Final = Constraint("planned", key="threshold", operator="<=", value="3", binds_to="call:find.threshold")
RESULT: Final = Constraint("at the end", key="threshold", operator="<=", value="3", binds_to="result:threshold")
OTHER: Final = Constraint(key="threshold", operator=">=", value="0", binds_to="call:find.threshold")

UNLUCKY: Final = Constraint(key="luck", operator="!=", value="13", binds_to="call:find.threshold")


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def lead(place: Place) -> LiveRun:
    """Return a root of which the same is demanded at a call and in the result."""
    return place.relay().start("Find what is off", by=ANA, items=[PLANNED, OTHER, RESULT])


def offered(run: LiveRun, agent: str) -> LiveHandoff:
    return run.hand_off(agent, f"a task for {agent}")


def deliver(run: LiveRun, threshold: float) -> None:
    run.report("found", value=json.dumps({"threshold": threshold}))
    run.close()


def flagged(why: Why) -> list[str]:
    """Return the tools whose calls would have been denied for a constraint."""
    return [text.split()[0] for text in facts_of(why, "flagged") if text.endswith(" would_deny.constraint")]


def erase(place: Place, run: RunId, kind: Kind, name: str) -> None:
    """Erase the words under a run's first receipt of a kind."""
    with place.store.view() as view:
        stored = next(iter(view.find_receipts(ReceiptQuery(stream=StreamId(run), kind=kind))))
    place.relay().admin.erase([decode_receipt(stored.payload).content[name].id], by=ANA, reason="they asked")


def test_who_broke_it_first_is_named_with_the_handoff(place: Place, lead: LiveRun) -> None:
    """Of all who were held to the same demand, in calls or results, the first who broke it; kept until when; since."""
    first = offered(lead, "first").accept()
    first.call(find, 2)
    middle_handoff = offered(first, "middle")
    middle = middle_handoff.accept()
    middle.call(find, 3)
    middle.call(find, 4)
    last = offered(middle, "last").accept()
    last.call(find, 5)
    deliver(last, 6)

    why = place.why(last.id)

    assert WhyVerdict.ALLOWED is why.verdict
    assert (
        f"{name_of(last)} must keep to \"at the end (threshold <= 3)\", and in its result 'threshold' is 6; "
        f"observed, so nothing was enforced; {name_of(middle)} broke it first, in find" == why.answer
    )
    where = f"by {name_of(middle)} · handoff {middle_handoff.id[-4:]} · find, where 'threshold' is"
    assert [f"{where} 3 · kept 2 times until then"] == facts_of(why, "kept last")
    assert [f"{where} 4"] == facts_of(why, "broken first")
    assert [(True, 1)] == [
        (text.startswith(f"by {name_of(last)} "), text.count("its result, where 'threshold' is 6 · 2 times"))
        for text in facts_of(why, "broken since")
    ]
    assert ("constraint", [True, True, True, False]) == (why.rule, [bool(hop.carried) for hop in why.hops])


def test_what_happened_beside_it_is_not_its_fault(place: Place, lead: LiveRun) -> None:
    """Only a run, those above it and those below it are looked at; and a demand with another value is another."""
    beside = offered(lead, "beside").accept()
    beside.call(find, 9)
    run = offered(lead, "worker").accept()
    run.call(find, -1)
    below = offered(run, "below").accept()
    below.call(find, 8)
    deliver(run, 7)

    why = place.why(run.id)

    assert why.answer.endswith(f"{name_of(below)} broke it first, in find")
    assert [True] == [text.startswith(f"by {name_of(run)} ") for text in facts_of(why, "kept last")]


def test_a_root_that_breaks_it_says_so_itself(place: Place, lead: LiveRun) -> None:
    """Its close-out is flagged like that of any other run, and the trail shows it."""
    deliver(lead, 4)

    assert place.why(lead.id).answer.endswith("it broke it first, in its result")
    assert [] == facts_of(place.why(lead.id), "kept last")
    assert 'completed "found" · would_deny.constraint' == lines_of(place.trail(lead.id))[-1]


def test_an_enforced_result_is_not_taken(place: Place) -> None:
    """It failed, and why is what it would have broken."""
    lead = place.relay().start("Find it", by=ANA, items=[RESULT], mode=Mode.ENFORCED)
    handoff = lead.hand_off("finder", "Find", run=lambda _: {"threshold": 4})
    handoff.wait()

    why = place.why(handoff.id)

    assert (WhyVerdict.DENIED, "constraint") == (why.verdict, why.rule)
    assert "'threshold' is 4; enforced, so it was refused; it broke it first, in its result" in why.answer


def test_a_handoff_that_is_tried_again_is_judged_anew(place: Place) -> None:
    """While the next attempt is waited for, the last result is no answer; its run still says what it broke."""
    lead = place.relay().start("Find it", by=ANA, items=[RESULT], mode=Mode.ENFORCED)
    handoff = lead.hand_off("finder", "Find", run=lambda _: {"threshold": 4})
    failed = handoff.wait().run
    assert failed is not None
    handoff.retry(by=ANA)

    assert [WhyVerdict.ALLOWED, WhyVerdict.DENIED] == [place.why(known).verdict for known in (handoff.id, failed)]


def test_a_call_that_was_denied_is_no_result(place: Place) -> None:
    """A run that failed by a refused call broke nothing with its result, whatever it had to say."""
    lead = place.relay().start("Find it", by=ANA, items=[PLANNED, RESULT], mode=Mode.ENFORCED)

    def search(run: LiveRun) -> None:
        run.report("as good as found", value='{"threshold": 1}')
        run.call(find, 4)

    handoff = lead.hand_off("finder", "Find", run=search)
    handoff.wait()

    assert (WhyVerdict.ALLOWED, None) == ((why := place.why(handoff.id)).verdict, why.rule)


def test_who_was_released_broke_nothing(place: Place, lead: LiveRun) -> None:
    """From a constraint that was relaxed on, a call is not held against it; before that it was."""
    planned = next(item for item in lead.notes if item.value == PLANNED)
    lead.record(UNLUCKY, by=ANA)
    run = offered(lead, "worker").accept()
    run.call(find, 1)
    run.relax(planned, by=ANA, reason="only this once")
    run.call(find, 13)
    deliver(run, 4)

    why = place.why(run.id)

    assert ["find"] == flagged(why)
    assert why.answer.endswith("it broke it first, in its result")
    assert [True] == [text.endswith("is 1 · kept once until then") for text in facts_of(why, "kept last")]


def test_a_constraint_binds_from_its_record_on(place: Place) -> None:
    """What a run did before somebody demanded anything was not held against it."""
    lead = place.relay().start("Find it", by=ANA, items=[UNLUCKY])
    lead.call(find, 13)
    lead.record(PLANNED, RESULT, by=ANA)
    lead.call(find, 5)
    deliver(lead, 4)

    assert [True] == [" is 5" in text for text in facts_of(place.why(lead.id), "broken first")]


def test_what_was_found_when_it_happened_counts(place: Place) -> None:
    """A call that kept to it is not told as broken because the record only shows how its argument looked."""
    at_the_end = Constraint(key="threshold", operator=">=", value="0", binds_to="result:threshold")
    lead = place.relay().start("Find it", by=ANA, items=[OTHER, at_the_end])
    lead.call(find, 1 << 12_000)
    deliver(lead, -1)

    assert place.why(lead.id).answer.endswith("it broke it first, in its result")


def test_words_that_are_gone_blame_nobody(place: Place, lead: LiveRun) -> None:
    """A flagged call whose arguments were erased may have been the first; a result that was erased is only flagged."""
    run = offered(lead, "worker").accept()
    run.call(find, 8)
    run.call(find, 9)
    deliver(run, 4)
    erase(place, run.id, Kind.TOOL_REQUESTED, "arguments")

    assert [True] == [
        text.endswith("find, where the words are no longer here · once before it was broken for certain")
        for text in facts_of(place.why(run.id), "unclear")
    ]
    assert [True] == [" is 9" in text for text in facts_of(place.why(run.id), "broken first")]

    erase(place, run.id, Kind.HANDOFF_COMPLETED, "report")

    assert (
        f"the result of {name_of(run)} breaks a constraint; observed, so nothing was enforced; "
        "the words are no longer here" == place.why(run.id).answer
    )


def test_what_whoever_broke_it_left_open_is_told(place: Place, lead: LiveRun) -> None:
    """A question that was recorded, said in an offer or reported; those of others are not, nor more than five."""
    lead.record(OpenQuestion("of the lead"))
    run = offered(lead, "worker").accept()
    run.record(OpenQuestion("recorded"))
    run.call(find, 8)
    with run.hand_off("helper", "Help", items=[OpenQuestion("offered")]) as helper:
        helper.report("helped", open_questions=["of the helper"])
    run.report("found", value='{"threshold": 4}', open_questions=[f"reported {number}" for number in range(4)])
    run.close()

    asked = ["recorded", "offered", "reported 0", "reported 1", "reported 2"]
    assert [f'{name_of(run)} left open: "{text}"' for text in asked] == facts_of(place.why(run.id), "question")


@pytest.mark.parametrize("value", ["null", '"words"', "[]"])
def test_a_result_without_the_field_breaks_it(place: Place, lead: LiveRun, value: str) -> None:
    """Whatever is not an object has no field that could keep to anything."""
    run = offered(lead, "worker").accept()
    run.report(value=value)
    run.close()

    assert "in its result 'threshold' is not given" in place.why(run.id).answer


def test_a_result_that_keeps_to_everything_is_no_answer(place: Place, lead: LiveRun) -> None:
    """Flagged calls of a run whose result is in order are listed, as before."""
    run = offered(lead, "worker").accept()
    tried(lambda: run.call(find, 8))
    deliver(run, 3)

    why = place.why(run.id)

    assert (None, ["find"], []) == (why.rule, flagged(why), facts_of(why, "broken first"))
