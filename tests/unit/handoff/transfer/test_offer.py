"""Offering a task: durable in one commit, once for each key, and complete where the policy says so."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from batonpass import Brief, Handling
from batonpass.briefing.render import brief
from batonpass.errors import IncompleteBatonError, InvalidValueError, KeyReusedError, UnverifiedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.kinds import Relation
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.items import Constraint, Decision, OpenQuestion, RejectedPath, WorkItem
from batonpass.model.ledger.entry import Entry
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from tests.offers import grouped
from tests.unit.handoff.places import (
    ANA,
    LONE_SURROGATE,
    Places,
    at_once,
    bodies,
    kinds,
    receipts,
    shared,
    words,
    worker,
)

SOON = datetime(2030, 1, 1, tzinfo=UTC)


def test_an_offer_is_one_receipt(lead: LiveRun, relay: Relay) -> None:
    """The whole baton and the state are there before anything of the child runs."""
    lead.hand_off("editor", "make it so", brief=Brief(rationale="it is wrong"), items=[Constraint("no new files")])

    assert ["run.started", "handoff.initiated"] == kinds(relay)
    assert "make it so" == words(relay, receipts(relay, "handoff.initiated")[0], "task")


@pytest.mark.parametrize(
    ("carrier", "hold", "state"),
    [
        (Carrier.CALLER, False, State.OFFERED),
        (Carrier.WORKER, False, State.READY),
        (Carrier.CALLER, True, State.HELD),
        (Carrier.WORKER, True, State.HELD),
    ],
    ids=["for here", "for a worker", "held here", "held for a worker"],
)
def test_where_a_handoff_begins(lead: LiveRun, carrier: Carrier, state: State, *, hold: bool) -> None:
    """Its carrier decides where it waits; either may start held."""
    assert state is lead.hand_off("editor", "make it so", carrier=carrier, hold=hold).state()


@pytest.mark.parametrize("deadline", [timedelta(minutes=10), "10m"], ids=["as a duration", "as a text"])
def test_a_deadline_may_be_how_long_it_is_until_then(lead: LiveRun, deadline: timedelta | str) -> None:
    """It is a moment from then on, and offered again it is the same handoff."""
    before = datetime.now(UTC)
    first = lead.hand_off("editor", "make it so", deadline=deadline)
    again = lead.hand_off("editor", "make it so", deadline=deadline)
    found = first.info().deadline

    assert found is not None
    assert before + timedelta(minutes=10) <= found <= datetime.now(UTC) + timedelta(minutes=10)
    assert first.id == again.id


def test_the_same_offer_is_the_same_handoff(lead: LiveRun, relay: Relay) -> None:
    """Without a key, what was asked for is the key."""
    first = lead.hand_off("editor", "make it so", criteria=["it is so"], items=[Decision("a", why="b")])
    second = lead.hand_off("editor", "make it so", criteria=["it is so"], items=[Decision("a", why="b")])

    assert (first.id, 1) == (second.id, len(bodies(relay, "handoff.initiated")))


OTHERS: list[tuple[str, dict[str, Any], str]] = [
    ("another agent", {"to": "tester"}, "to (editor, now tester)"),
    ("another task", {"task": "make it otherwise"}, "task"),
    ("another relation", {"relation": Relation.PEER_TO_PEER}, "relation (lead-to-worker, now peer-to-peer)"),
    ("another rationale", {"rationale": "because"}, "rationale"),
    ("another criterion", {"criteria": ["green"]}, "criteria"),
    ("another grant", {"may": ["write:**"]}, "may"),
    ("another budget", {"budget": Budget(calls=1)}, "budget"),
    ("another input", {"inputs": ["data.csv"]}, "inputs"),
    ("one more constraint", {"constraints": ["also this", "no new files"]}, "what is said besides"),
    ("one constraint less", {"constraints": []}, "what is said besides"),
    ("another decision", {"decisions": ["so"]}, "what is said besides"),
]


@pytest.mark.parametrize(("change", "difference"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_a_key_that_was_used_for_something_else_names_the_difference(
    lead: LiveRun, change: dict[str, Any], difference: str
) -> None:
    """The same key with another fingerprint is refused."""
    asked: dict[str, Any] = {"to": "editor", "task": "make it so", "constraints": ["no new files"], "key": "k"}
    lead.hand_off(**grouped(**asked))

    with pytest.raises(KeyReusedError) as refused:
        lead.hand_off(**grouped(**{**asked, **change}))
    assert difference in refused.value.differences


@pytest.mark.parametrize(("change", "difference"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_what_is_asked_for_otherwise_is_another_handoff(lead: LiveRun, change: dict[str, Any], difference: str) -> None:
    """Without a key, every difference in what the caller gives makes another handoff."""
    asked: dict[str, Any] = {"to": "editor", "task": "make it so", "constraints": ["no new files"]}
    first = lead.hand_off(**grouped(**asked))

    assert first.id != lead.hand_off(**grouped(**{**asked, **change})).id, difference


def test_when_and_how_a_task_is_carried_is_not_what_it_is(lead: LiveRun) -> None:
    """A deadline, the carrier and a hold may change between two tries without making another handoff."""
    first = lead.hand_off("editor", "make it so", deadline=SOON)

    assert first.id == lead.hand_off("editor", "make it so", carrier=Carrier.WORKER, hold=True).id


def test_the_same_key_in_another_tree_is_another_handoff(relay: Relay) -> None:
    """A key is unique in its scope: the root, or the handoff whose attempts share it."""
    roots = [relay.start("begin", by=ANA) for _ in range(2)]

    assert 2 == len({root.hand_off("editor", "make it so", handling=Handling(key="k")).id for root in roots})


@pytest.mark.parametrize("ending", ["cancel", "deny", "expire"])
def test_a_key_is_free_again_once_nothing_of_it_will_ever_run(lead: LiveRun, relay: Relay, ending: str) -> None:
    """What was cancelled, denied or expired is asked for anew."""
    deadline = datetime(2020, 1, 1, tzinfo=UTC) if ending == "expire" else None
    first = lead.hand_off("editor", "make it so", handling=Handling(key="k"), hold=ending == "deny", deadline=deadline)
    match ending:
        case "cancel":
            first.cancel(reason="no")
        case "deny":
            first.deny(by=ANA, reason="no")
        case _:
            relay.sweep()
    second = lead.hand_off("editor", "make it so", handling=Handling(key="k"))

    assert (State.OFFERED, True) == (second.state(), first.id != second.id)


def test_threads_that_offer_the_same_key_get_one_handoff(lead: LiveRun, relay: Relay) -> None:
    """Eight threads of one run hand off the same task at once."""
    found = at_once(*[lambda: lead.hand_off("editor", "make it so", handling=Handling(key="k")).id] * 8)

    assert (1, 1) == (len(set(found)), len(bodies(relay, "handoff.initiated")))


def test_processes_that_offer_the_same_key_get_one_handoff(places: Places) -> None:
    """Two processes that hold one run, as hooks do, hand off the same task at once."""
    if places.url == "memory:":
        pytest.skip("what is in memory has one process")
    first, second = places.relay(keys_in_files=True), places.relay(keys_in_files=True)
    one, other = shared(first.start("begin", by=ANA), second)
    found = at_once(*[lambda run=run: run.hand_off("editor", "make it so").id for run in (one, other)] * 4)

    assert (1, 1) == (len(set(found)), len(bodies(first, "handoff.initiated")))


def test_everything_that_is_known_travels(lead: LiveRun) -> None:
    """What was recorded and what is said with the offer reach the child, in that order."""
    lead.record(Decision("first"), RejectedPath("regex", "too slow"))
    child = lead.hand_off("editor", "make it so", items=[Decision("second"), OpenQuestion("why?")]).accept()
    assert child.baton is not None

    assert ["first", "second"] == [decision.what for decision in child.baton.decisions]
    assert (RejectedPath("regex", "too slow"),) == child.baton.rejected_paths
    assert (OpenQuestion("why?"),) == child.baton.open_questions


def test_an_item_says_in_which_role_and_phase_it_was_produced(lead: LiveRun) -> None:
    """An agent works in the role and the phase that it was handed; what it says and reports carries them along."""
    with lead.hand_off("editor", "Draft it", brief=Brief(role="writer", phase="draft")) as editor:
        editor.record(Decision("short words"))
        told = brief(editor.hand_off("printer", "Print it").baton()).text
        editor.report("drafted")
    after = brief(lead.hand_off("reader", "Read it").baton()).text

    assert "- short words [from agent:editor, as writer, draft phase" in told
    assert "[from agent:editor, as writer, draft phase" in after


def test_a_selection_travels_with_what_is_inherited_anyway(lead: LiveRun) -> None:
    """Whoever selects what a child needs to know cannot leave out what binds it."""
    chosen, _ = lead.record(Decision("chosen"), Decision("left out"))
    lead.record(Constraint("always"))
    child = lead.hand_off("editor", "make it so", handling=Handling(carry=[chosen])).accept()
    assert child.baton is not None

    assert (["chosen"], ["always"]) == (
        [decision.what for decision in child.baton.decisions],
        [constraint.text for constraint in child.baton.constraints],
    )


def test_what_is_missing_is_reported_and_an_explicit_none_is_not(lead: LiveRun) -> None:
    """Nothing is filled in: what nobody said is named, what is said to be none is not."""
    child = lead.hand_off(
        "editor", "make it so", brief=Brief(rationale="it is wrong", none=["question", "rejected"])
    ).accept()
    assert child.baton is not None

    assert ("criteria", "constraint", "exclusion", "decision") == child.baton.missing


def test_what_the_policy_requires_is_refused_if_it_is_missing(places: Places) -> None:
    """Nothing is recorded of an offer that leaves out what it must say, unless it says that there is none."""
    policy = HandoffPolicy(require={Relation.LEAD_TO_WORKER: ("rationale", "question")})
    relay = places.relay(policy=policy)
    lead = relay.start("begin", by=ANA)
    with pytest.raises(IncompleteBatonError, match="must say rationale, question"):
        lead.hand_off("editor", "make it so")

    assert [] == bodies(relay, "handoff.initiated")
    assert lead.hand_off("editor", "make it so", brief=Brief(rationale="r", none=["question"])).id


def test_what_nobody_verified_is_said_once(lead: LiveRun, relay: Relay) -> None:
    """The offer that builds on an unverified result names it; the next one does not name it again."""
    first = lead.hand_off("editor", "one")
    with first as child:
        child.report("done")
    second = lead.hand_off("editor", "two")
    first.result()
    lead.hand_off("editor", "three")

    assert [(), (first.id,), ()] == [body.unverified for body in bodies(relay, "handoff.initiated")]
    assert second.state() is State.OFFERED


def test_an_offer_knows_what_others_said_and_judged_meanwhile(places: Places) -> None:
    """What a human told another process is in the next offer, and what was verified there is not unverified."""
    here, there = places.relay(), places.relay()
    lead = here.start("Add it up", by=ANA)
    waits = lead.hand_off("worker", "part", carrier=Carrier.WORKER)
    elsewhere = worker(there)
    first, second = lead.hand_off("editor", "one"), lead.hand_off("editor", "two")
    for handoff in (first, second):
        with handoff as child:
            child.report("done")
    there.handoff(first.id).verify(by=ANA, verdict="I looked")
    elsewhere.add_intent("to the cent", by=ANA)
    third = lead.hand_off("editor", "three")

    assert elsewhere.id == waits.info().run
    assert ["Add it up", "to the cent"] == [said.text for said in third.baton().intent]
    assert (second.id,) == bodies(here, "handoff.initiated")[-1].unverified


def test_what_was_judged_is_offered_upon_at_the_first_try(
    lead: LiveRun, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever verifies or waives each result writes each offer once, and holds on to none that is verified."""
    appended: list[Sequence[Entry]] = []
    append = relay.store.append

    def counted(entries: Sequence[Entry]) -> None:
        appended.append(entries)
        append(entries)

    monkeypatch.setattr(relay.store, "append", counted)
    tries = []
    for number in range(6):
        before = len(appended)
        handoff = lead.hand_off("editor", f"part {number}")
        tries.append(len(appended) - before)
        with handoff as child:
            child.report("done")
        if number % 3 == 2:
            handoff.accept_unverified("a prototype only")
        elif number % 3 == 1:
            relay.handoff(handoff.id).verify(by=ANA, verdict="somebody else looked")
        else:
            handoff.verify(by=ANA, verdict="I looked")

    # After what others did, once: it could not be known before. The last waiver was not offered upon yet.
    assert [1, 1, 2, 2, 1, 1] == tries
    assert [()] * 6 == [body.unverified for body in bodies(relay, "handoff.initiated")]
    assert 2 >= len(lead._holding.watched)


def test_the_policy_may_want_verified_results_only(places: Places) -> None:
    """A lead does not go on with what nobody verified; after a verdict it does."""
    lead = places.relay(policy=HandoffPolicy(verified_only=True)).start("begin", by=ANA)
    first = lead.hand_off("editor", "one")
    with first as child:
        child.report("done")
    with pytest.raises(UnverifiedError, match=first.id):
        lead.hand_off("editor", "two")
    first.verify(verdict="it is so", by=ANA)

    assert lead.hand_off("editor", "two").id


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("no agent", {"to": ""}),
    ("an agent that is a text", {"to": "the editor"}),
    ("an agent of half a character", {"to": LONE_SURROGATE}),
    ("an empty task", {"task": " \n"}),
    ("a task of half a character", {"task": LONE_SURROGATE}),
    ("a task that is no text", {"task": 5}),
    ("a key of half a character", {"key": LONE_SURROGATE}),
    ("a key that is no text", {"key": 5}),
    ("a relation that there is not", {"relation": "boss"}),
    ("a carrier that there is not", {"carrier": "pigeon"}),
    ("a deadline without a zone", {"deadline": datetime(2030, 1, 1)}),  # noqa: DTZ001 - wrong on purpose
    ("a deadline elsewhere", {"deadline": datetime(2030, 1, 1, tzinfo=timezone(timedelta(hours=2)))}),
    ("a rationale of half a character", {"rationale": LONE_SURROGATE}),
    ("one criterion as a text", {"criteria": "green"}),
    ("constraints as a text", {"constraints": "no"}),
    ("a decision among the constraints", {"constraints": [Decision("a")]}),
    ("an empty decision", {"decisions": [""]}),
    ("a budget that is a number", {"budget": 5}),
    ("none of what there is not", {"none": ["everything"]}),
    ("work that is verified by magic", {"completed": [5]}),
]


@pytest.mark.parametrize("wrong", [row[1] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_cannot_be_right_is_refused_and_nothing_is_recorded(
    lead: LiveRun, relay: Relay, wrong: dict[str, Any]
) -> None:
    """Every field says what is wrong with it."""
    with pytest.raises(InvalidValueError):
        lead.hand_off(**grouped(**{"to": "editor", "task": "make it so", **wrong}))

    assert [] == bodies(relay, "handoff.initiated")


def test_work_says_how_it_was_verified(lead: LiveRun) -> None:
    """Verified work travels as such."""
    done = WorkItem("parsed", outputs=("data.csv",), verified_by=ANA, how="looked at it")
    child = lead.hand_off("editor", "make it so", items=[done, WorkItem("unverified work")]).accept()
    assert child.baton is not None

    assert [True, False] == [work.verified for work in child.baton.completed]
