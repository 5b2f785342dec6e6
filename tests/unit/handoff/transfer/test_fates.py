"""Results that no longer stand: refuted, superseded, or made from one that was; whoever is handed them is told."""

import pytest

from batonpass import Brief, Decision, Handling, Relay, Run, tool
from batonpass.briefing.render import brief
from batonpass.errors import InputsChangedError, UnverifiedError
from batonpass.errors.handoff import ReusedResultWarning
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.transfer.inputs import revise
from batonpass.model.base.kinds import ItemFate
from batonpass.model.baton.items import Artifact, Report
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.records.stale_results import find_stale
from batonpass.relay import desk_of
from tests.unit.handoff.places import ANA, Places, bodies, receipts


def find_rate(lead: Run, rate: str) -> LiveHandoff:
    """Let a child find a rate: it decides, attaches a file and reports."""
    handoff = lead.hand_off("finder", "Find the rate")
    with handoff as child:
        child.record(Decision(f"use {rate}"))
        child.attach("rates.csv", rate)
        child.report(rate)
    return handoff


def fates(handoff: LiveHandoff) -> dict[str, str]:
    """Return the fate of each result in a baton, by the words that it says."""
    baton = handoff.baton()
    told = {}
    for item in baton.items:
        match item.value:
            case Report():
                name = item.value.result
            case Artifact():
                name = f"{item.value.name} {item.value.size}"
            case Decision():
                name = item.value.what
            case _:
                continue
        told[name] = str(baton.fates[item.id].fate) if item.id in baton.fates else "stands"
    return told


def test_what_a_refuted_attempt_gave_travels_as_refuted(lead: Run, relay: Relay) -> None:
    """Its decision, its file and its report: the receiver is told by whom and why, and the offer's receipt says so."""
    found = find_rate(lead, "3 %")
    found.refute("it is 2.5 %", by=ANA)
    writer = lead.hand_off("writer", "Write it up")

    assert {"use 3 %": "refuted", "rates.csv 3": "refuted", "3 %": "refuted"} == fates(writer)
    (known, *_) = writer.baton().fates.values()
    verdict = receipts(relay, "verification.failed")[0]
    assert (ANA, "it is 2.5 %", verdict.id, "finder") == (
        known.refutation.by,
        known.refutation.reason,
        known.refutation.receipt,
        known.refutation.agent,
    )
    assert {verdict.id} == {fate.verdict for fate in bodies(relay, "handoff.initiated")[-1].fates}


def test_what_stands_has_no_fate(lead: Run) -> None:
    """A verdict on one result says nothing of another, nor of what humans and the lead said."""
    find_rate(lead, "3 %").refute("no", by=ANA)
    with lead.hand_off("other", "Count", handling=Handling(carry=[])) as other:
        other.report("7")
    lead.record(Decision("go on"))
    writer = lead.hand_off("writer", "Write it up")

    assert ("stands", "stands") == (fates(writer)["7"], fates(writer)["go on"])


def test_after_the_redo_the_first_version_is_superseded(lead: Run) -> None:
    """Both travel, and only the second stands."""
    find_rate(lead, "3 %").refute("it is 2.5 %", by=ANA)
    find_rate(lead, "2.5 %")
    told = fates(lead.hand_off("writer", "Write it up"))

    assert {"superseded"} == {told[name] for name in ("use 3 %", "rates.csv 3", "3 %")}
    assert {"stands"} == {told[name] for name in ("use 2.5 %", "rates.csv 5", "2.5 %")}


def test_what_was_made_from_it_is_stale_all_the_way(lead: Run, relay: Relay) -> None:
    """A child of a child of what was refuted is stale; a child that was told is not."""
    found = find_rate(lead, "3 %")
    with lead.hand_off("adder", "Add it up") as adder:
        adder.report("103")
    with lead.hand_off("drafter", "Draft") as drafter:
        drafter.report("a draft with 103")
    found.refute("it is 2.5 %", by=ANA)
    with lead.hand_off("told", "Say what is wrong") as told:
        told.report("the rate")
    known = fates(lead.hand_off("writer", "Write it up"))

    assert ("stale", "stale", "stands") == (known["103"], known["a draft with 103"], known["the rate"])
    with relay.store.view() as view:
        assert ["drafter", "adder"] == [one.handoff.to for one in find_stale(view)]


def test_named_inputs_alone_make_stale(lead: Run) -> None:
    """Who says which inputs it cannot do without stands on those, and on nothing else that travels."""
    found = find_rate(lead, "3 %")
    lead.attach("style.md", "short")
    with lead.hand_off("layouter", "Lay it out", brief=Brief(inputs=["style.md"])) as layouter:
        layouter.report("laid out")
    with lead.hand_off("adder", "Add it up", brief=Brief(inputs=["rates.csv"])) as adder:
        adder.report("103")
    found.refute("no", by=ANA)
    known = fates(lead.hand_off("writer", "Write it up"))

    assert ("stands", "stale") == (known["laid out"], known["103"])


def test_a_superseded_version_is_no_drift(places: Places) -> None:
    """Two files of one name ask for a question; not if everybody is told that the first no longer stands."""
    lead = places.relay(policy=HandoffPolicy(asks=True)).start("Convert", by=ANA)
    find_rate(lead, "3 %").refute("it is 2.5 %", by=ANA)
    find_rate(lead, "2.5 %")

    assert "2.5 %" == lead.hand_off("writer", "Write it up").accept().read("rates.csv").decode()


def test_a_briefing_keeps_it_apart(lead: Run) -> None:
    """A refuted decision does not stand among decisions, where a model would follow it."""
    find_rate(lead, "3 %").refute("it is 2.5 %", by=ANA)
    text = brief(lead.hand_off("writer", "Write it up").baton()).text
    _, apart = text.split("# What no longer stands: do not build on it\n")

    assert "use 3 %" not in text.replace(apart, "")
    assert (
        "- use 3 % [from agent:finder; refuted: user:ana refuted the result of finder, attempt 1: it is 2.5 %]" in apart
    )


def test_a_lead_in_another_process_knows(places: Places) -> None:
    """Whoever judges need not be who goes on: an offer that took it for granted is gathered once more."""
    lead = places.relay().start("Convert", by=ANA)
    found = find_rate(lead, "3 %")
    lead.hand_off("early", "Look")
    places.relay().handoff(found.id).refute("no", by=ANA)
    writer = lead.hand_off("writer", "Write it up")

    assert {"refuted"} == set(fates(writer).values())


def test_a_child_hands_on_what_it_knows_to_be_refuted(lead: Run) -> None:
    """Fates do not end with the first hop."""
    find_rate(lead, "3 %").refute("no", by=ANA)
    with lead.hand_off("editor", "Edit") as editor:
        below = fates(editor.hand_off("checker", "Check"))

    assert {"refuted"} == set(below.values())


def test_the_verdict_of_whoever_made_it_verifies_nothing(places: Places) -> None:
    """Where only verified results may be built on, a producer's own word is not enough; another's is."""
    lead = places.relay(policy=HandoffPolicy(verified_only=True)).start("Convert", by=ANA)
    found = find_rate(lead, "3 %")
    found.verify(by="agent:finder", verdict="I am sure")
    with pytest.raises(UnverifiedError):
        lead.hand_off("writer", "Write it up")
    found.verify(by=ANA, verdict="seen it")

    assert "writer" == lead.hand_off("writer", "Write it up").baton().to


def test_the_same_words_after_the_inputs_changed_ask_for_a_new_result(lead: Run, relay: Relay) -> None:
    """Handed off again without a key, it is a new handoff, and says which one it replaces."""
    find_rate(lead, "3 %").refute("no", by=ANA)
    find_rate(lead, "2.5 %")
    first = lead.hand_off("adder", "Add it up")
    with first as adder:
        adder.report("102.5")
    lead.attach("rates.csv", "2.25")
    second = lead.hand_off("adder", "Add it up")

    assert (True, first.id) == (first.id != second.id, bodies(relay, "handoff.initiated")[-1].replaces)
    with second as adder:
        adder.report("102.25")
    assert second.id == lead.hand_off("adder", "Add it up").id


def test_a_refuted_input_asks_for_a_new_result_too(lead: Run) -> None:
    """Also if nobody has redone it: what was made from it is worth nothing."""
    found = find_rate(lead, "3 %")
    first = lead.hand_off("adder", "Add it up")
    with first as adder:
        adder.report("103")
    found.refute("no", by=ANA)

    assert first.id != lead.hand_off("adder", "Add it up").id


def test_under_a_key_changed_inputs_are_refused(lead: Run) -> None:
    """A key names one handoff: what changed is named, and nothing is done."""
    found = find_rate(lead, "3 %")
    with lead.hand_off("adder", "Add it up", handling=Handling(key="sum")) as adder:
        adder.report("103")
    found.refute("no", by=ANA)

    with pytest.raises(InputsChangedError, match=r"rates\.csv was refuted \(user:ana refuted the result of finder\)"):
        lead.hand_off("adder", "Add it up", handling=Handling(key="sum"))


def test_what_did_not_change_is_the_same_handoff(lead: Run) -> None:
    """A new file of another name is no changed input, and the same bytes under the same name are none either."""
    find_rate(lead, "3 %")
    first = lead.hand_off("adder", "Add it up")
    with first as adder:
        adder.report("103")
    lead.attach("more.csv", "x")
    lead.attach("rates.csv", "3 %")

    assert first.id == lead.hand_off("adder", "Add it up").id


def test_a_result_says_that_it_is_used_again(lead: Run) -> None:
    """The same task in a loop gives the same result: that is said, and warned of within one run."""
    first = lead.hand_off("writer", "Write it up")
    with first as writer:
        writer.report("draft 1")
    assert not first.result().reused

    again = lead.hand_off("writer", "Write it up")
    with pytest.warns(ReusedResultWarning, match="writer has done exactly this task"), again as writer:
        assert writer.attempt == 1
    assert (True, "draft 1") == (again.result().reused, again.result().value)


def test_after_a_crash_the_same_task_is_no_surprise(places: Places) -> None:
    """A program that is run again asks for what it has: no warning, which would be an error here."""
    first = places.relay()
    lead = first.start("Convert", by=ANA)
    with lead.hand_off("writer", "Write it up") as writer:
        writer.report("draft 1")
    resumed = places.relay().resume(lead.id)

    assert resumed.hand_off("writer", "Write it up").result().reused


def failing(lead: Run) -> LiveHandoff:
    """Hand off something that reads its input, writes elsewhere, and fails."""
    handoff = lead.hand_off("adder", "Add it up")
    adder = handoff.accept()
    adder.call(lambda name: f"read {name}", "rates.csv")
    adder.call(lambda name: f"wrote {name}", "sum.txt")
    adder.fail(ValueError("boom"))
    return handoff


def test_a_retry_whose_inputs_were_redone_is_refused(lead: Run) -> None:
    """By name, also where it is only entered again; nothing is recorded for it."""
    found = find_rate(lead, "3 %")
    handoff = failing(lead)
    found.refute("no", by=ANA)
    find_rate(lead, "2.5 %")

    with pytest.raises(InputsChangedError, match=r"rates\.csv was superseded"):
        handoff.retry()
    with pytest.raises(InputsChangedError), handoff:
        raise AssertionError("nobody works on it")
    assert 1 == handoff.info().attempt


def test_the_same_inputs_can_be_asked_for(lead: Run) -> None:
    """Then all is as it was, calls included."""
    found = find_rate(lead, "3 %")
    handoff = failing(lead)
    found.refute("no", by=ANA)
    again = handoff.retry(inputs="same")

    assert (2, 0) == (len(again.kept.finished), len(again.kept.outdated))
    assert b"3 %" == handoff.accept().read("rates.csv")


def test_a_fresh_attempt_reads_what_was_delivered_since(lead: Run, relay: Relay) -> None:
    """The next revision of its baton has the new file, and no call that named the old one is kept."""
    found = find_rate(lead, "3 %")
    handoff = failing(lead)
    found.refute("no", by=ANA)
    find_rate(lead, "2.5 %")
    again = handoff.retry(inputs="fresh")
    adder = handoff.accept()

    assert (["sum.txt"], 1) == ([_argument(relay, call) for call in again.kept.finished], len(again.kept.outdated))
    assert (b"2.5 %", 1) == (adder.read("rates.csv"), handoff.baton().revision)
    assert {"use 2.5 %": "stands", "rates.csv 5": "stands", "2.5 %": "stands"} == fates(handoff)


def test_a_fresh_input_from_outside_taints_whoever_gets_it(lead: Run, relay: Relay) -> None:
    """A revision launders nothing; who dies between it and the retry leaves a handoff that goes on from there."""
    found = find_rate(lead, "3 %")
    handoff = failing(lead)
    found.refute("no", by=ANA)
    with lead.hand_off("finder", "Find the rate") as child:
        child.call(tool("fetch", reads=True, external=True)(lambda page: page), "a page")
        child.attach("rates.csv", "2.5 %")
    revise(desk_of(relay), handoff.id, by=ANA)
    handoff.retry()
    adder = handoff.accept()

    assert (b"2.5 %", True, True) == (adder.read("rates.csv"), adder.label.is_external, bool(adder.taint))


def test_a_fresh_attempt_is_told_of_what_nobody_redid(lead: Run) -> None:
    """There is nothing to give in its place, so it travels on as refuted."""
    found = find_rate(lead, "3 %")
    handoff = failing(lead)
    found.refute("no", by=ANA)
    handoff.retry(inputs="fresh")

    assert {"refuted"} == set(fates(handoff).values())
    assert ItemFate.REFUTED in {known.fate for known in handoff.baton().fates.values()}


def _argument(relay: Relay, call: object) -> str:
    arguments = getattr(call, "arguments", None)
    assert arguments is not None
    return "sum.txt" if b"sum.txt" in relay.read(arguments.id) else "rates.csv"
