"""Intent, constraints and exclusions arrive byte for byte, and receipts alone prove it."""

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from batonpass.audit.carriage import Carriage, CarriageFault, CarriedWords, prove_carriage
from batonpass.errors import EditedError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.transfer.attempt_receipts import Acceptance
from batonpass.model.base.ids import AgentId, ContentId, Digest, HandoffId, PrincipalId, new_content_id, new_handoff_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Constraint, Exclusion
from batonpass.model.bodies.body import Carried, HandoffInitiated, Part, RunRelaxed
from batonpass.model.ledger.content import new_content
from batonpass.relay import Relay, recording_of
from batonpass.testing.clock import NOON
from batonpass.testing.plain_acts import plainly

INTENT = "Fix invoice rounding — “half-even”, naïve 漢字\r\n\tplease "
API = "never touch the API"
PAYROLL = "the payroll module"
HOPS = 25


@pytest.fixture
def relay() -> Iterator[Relay]:
    with Relay.open("memory:") as opened:
        yield opened


def prove(relay: Relay, handoff: HandoffId) -> Carriage:
    with relay.store.view() as view:
        return prove_carriage(view, view.get_handoff(handoff))


def a_lead(relay: Relay) -> LiveRun:
    return relay.start(INTENT, by="user:ana", items=[Constraint(API), Exclusion(PAYROLL)])


def fail_once(handoff: LiveHandoff, *, then: str | None = None) -> None:
    """Let an attempt fail, and let the same agent or another one try again."""
    handoff.accept().fail(RuntimeError("no"))
    if then is None:
        handoff.retry(by="user:ana")
    else:
        handoff.replace(then, by="user:ana")


def descend(lead: LiveRun, hops: int) -> Iterator[LiveHandoff]:
    """Hand off from one to the next; every fifth fails once, the seventh is replaced, the third has a sibling."""
    run = lead
    for hop in range(1, hops + 1):
        handoff = run.hand_off(f"agent-{hop}", f"step {hop}")
        if hop == 3:
            sibling = run.hand_off("sibling", "meanwhile", items=[Constraint("only in this branch")]).accept()
            sibling.record(Constraint("and this one as well"))
            sibling.hand_off("nephew", "further").accept()
        if hop % 5 == 0 or hop == 7:
            fail_once(handoff, then="expert" if hop == 7 else None)
        yield handoff
        run = handoff.accept()


def carried_by(relay: Relay, run: LiveRun, *, without: Part | None = None) -> tuple[Carried, ...]:
    """Return what an honest offer of a run would carry, without a part."""
    honest = run.hand_off("honest", "as it should be")
    with relay.store.view() as view:
        handoff = view.get_handoff(honest.id)
        items = prove_carriage(view, handoff).hops[-1].carried
    return tuple(item for item in items if item.part is not without)


def forge(relay: Relay, run: LiveRun, carries: tuple[Carried, ...]) -> HandoffId:
    """Record an offer that carries just this, with good signatures."""
    handoff = new_handoff_id(NOON)
    body = HandoffInitiated(
        handoff=handoff,
        run=run.id,
        to=AgentId("editor"),
        carrier=Carrier.CALLER,
        state=State.OFFERED,
        carries=carries,
    )
    recording_of(relay).record(run._holding.working, body, (new_content("task", "forged", NOON),))
    return handoff


def faults(carriage: Carriage) -> list[tuple[CarriageFault, int, Part | None]]:
    return [(found.fault, found.hop, None if found.ref is None else found.ref.part) for found in carriage.findings]


def test_everything_arrives_over_25_hops(relay: Relay) -> None:
    """Retries, a replacement and a parallel branch change not a byte of what binds everybody."""
    handoffs = list(descend(a_lead(relay), HOPS))
    carriage = prove(relay, handoffs[-1].id)

    assert (True, HOPS, [3] * HOPS, [3] * HOPS) == (
        carriage.whole,
        len(carriage.hops),
        [len(hop.carried) for hop in carriage.hops],
        [hop.same for hop in carriage.hops],
    )
    assert 1 == len({hop.carried for hop in carriage.hops})
    assert [True] * HOPS == [hop.countersigned for hop in carriage.hops]
    assert {5: 2, 7: 2, 10: 2, 15: 2, 20: 2, 25: 2} == {
        hop.number: hop.attempt for hop in carriage.hops if hop.attempt != 1
    }


def test_the_words_are_the_human_s_own(relay: Relay) -> None:
    """After 25 hops the last agent reads exactly what was said, and the proof holds the same bytes."""
    *_, last = descend(a_lead(relay), HOPS)
    baton = last.baton()
    intent = prove(relay, last.id).items[0]

    assert (INTENT, INTENT.encode(), CarriedWords.KEPT, True) == (
        baton.intent[0].text,
        intent.body,
        intent.words,
        intent.arrived,
    )
    assert ([API], [PAYROLL]) == ([each.text for each in baton.constraints], [each.text for each in baton.exclusions])


def test_the_way_names_who_handed_off_to_whom(relay: Relay) -> None:
    """A replaced agent is named as the one that took it, and what it hands off comes from it."""
    handoffs = list(descend(a_lead(relay), 8))
    hops = prove(relay, handoffs[-1].id).hops

    assert ("lead", "agent-1", "expert", "expert") == (hops[0].sender, hops[0].to, hops[6].to, hops[7].sender)


@pytest.mark.parametrize("part", [Part.INTENT, Part.CONSTRAINT, Part.EXCLUSION])
def test_a_forged_offer_that_drops_something_is_found(relay: Relay, part: Part) -> None:
    """Good signatures do not hide that a statement, a constraint or an exclusion was left out; the hop is named."""
    run = a_lead(relay).hand_off("planner", "plan").accept()
    carriage = prove(relay, forge(relay, run, carried_by(relay, run, without=part)))

    assert (False, [(CarriageFault.LOST, 2, part)], 2) == (carriage.whole, faults(carriage), carriage.hops[1].same)


def test_what_was_lost_is_said_where_it_was_lost(relay: Relay) -> None:
    """Further down the same loss is not blamed on those who never had the item."""
    run = a_lead(relay).hand_off("planner", "plan").accept()
    forged = relay.handoff(forge(relay, run, carried_by(relay, run, without=Part.CONSTRAINT)))
    deeper = forged.accept().hand_off("drafter", "draft")

    assert [(CarriageFault.LOST, 2, Part.CONSTRAINT)] == faults(prove(relay, deeper.id))


def test_another_digest_is_not_the_same_item(relay: Relay) -> None:
    """An item that keeps its id and commits to other words was changed."""
    run = a_lead(relay)
    first, *rest = carried_by(relay, run)
    carriage = prove(relay, forge(relay, run, (replace(first, digest=Digest("0" * 64)), *rest)))

    assert [(CarriageFault.CHANGED, 1, Part.INTENT)] == faults(carriage)


def test_a_constraint_that_becomes_a_decision_was_changed(relay: Relay) -> None:
    """What binds everybody cannot be carried on as something that does not."""
    run = a_lead(relay)
    items = carried_by(relay, run)
    turned = tuple(replace(item, part=Part.DECISION) if item.part is Part.CONSTRAINT else item for item in items)

    assert [(CarriageFault.CHANGED, 1, Part.CONSTRAINT)] == faults(prove(relay, forge(relay, run, turned)))


def test_an_item_that_nobody_recorded_is_found(relay: Relay) -> None:
    """Words put into the human's mouth have no receipt."""
    run = a_lead(relay)
    invented = Carried(item=new_content_id(NOON), digest=Digest("0" * 64), part=Part.INTENT)
    carriage = prove(relay, forge(relay, run, (*carried_by(relay, run), invented)))

    assert [(CarriageFault.UNRECORDED, 1, Part.INTENT)] == faults(carriage)
    assert (None, CarriedWords.ABSENT) == (carriage.items[-1].origin, carriage.items[-1].words)


def test_words_of_another_tree_are_not_recorded_here(relay: Relay) -> None:
    """A statement that somebody made about other work does not count."""
    (foreign, *_), run = carried_by(relay, relay.start("Something else", by="user:bob")), a_lead(relay)
    carriage = prove(relay, forge(relay, run, (*carried_by(relay, run), foreign)))

    assert [(CarriageFault.UNRECORDED, 1, Part.INTENT)] == faults(carriage)


def test_what_is_added_on_the_way_says_where(relay: Relay) -> None:
    """A constraint said with an offer, and one that a run recorded, bind everybody further down."""
    planner = a_lead(relay).hand_off("planner", "plan", items=[Constraint("below 100 lines")]).accept()
    planner.record(Constraint("no new dependency"))
    drafter = planner.hand_off("drafter", "draft").accept()
    carriage = prove(relay, drafter.hand_off("editor", "edit").id)

    assert [(4, 3, 1), (5, 4, 1), (5, 5, 0)] == [(len(hop.carried), hop.same, len(hop.added)) for hop in carriage.hops]
    assert [("user:ana", 1)] * 3 + [("agent:lead", 1), ("agent:planner", 2)] == [
        (item.origin.by, item.origin.at_hop) for item in carriage.items if item.origin is not None
    ]


def test_a_recorded_constraint_that_is_not_handed_on_is_lost(relay: Relay) -> None:
    """What a run itself recorded before its offer has to be in it."""
    run = a_lead(relay)
    items = carried_by(relay, run)
    run.record(Constraint("no new dependency"))

    assert [(CarriageFault.LOST, 1, Part.CONSTRAINT)] == faults(prove(relay, forge(relay, run, items)))


def test_relaxing_with_authority_shows(relay: Relay) -> None:
    """Whoever the work is for may take a constraint away; the receipt and the name stay."""
    planner = a_lead(relay).hand_off("planner", "plan").accept()
    constraint = next(item for item in planner.notes if item.part is Part.CONSTRAINT)
    planner.relax(constraint, by="user:ana", reason="the API is ours now")
    carriage = prove(relay, planner.hand_off("drafter", "draft").accept().hand_off("editor", "edit").id)

    assert (True, [0, 1, 0], [3, 2, 2]) == (
        carriage.whole,
        [len(hop.relaxed) for hop in carriage.hops],
        [len(hop.carried) for hop in carriage.hops],
    )
    assert ("user:ana", constraint.id, 2) == (
        carriage.hops[1].relaxed[0].by,
        carriage.hops[1].relaxed[0].ref.item,
        len(carriage.arrived),
    )


def test_relaxing_without_authority_is_found(relay: Relay) -> None:
    """An agent that releases itself from what a human said is named."""
    planner = a_lead(relay).hand_off("planner", "plan").accept()
    constraint = next(item for item in planner.notes if item.part is Part.CONSTRAINT)
    body = RunRelaxed(run=planner.id, item=constraint.id, by=PrincipalId("agent:planner"))
    recording_of(relay).record(planner._holding.working, body)
    carriage = prove(relay, forge(relay, planner, carried_by(relay, planner, without=Part.CONSTRAINT)))

    assert [(CarriageFault.NOT_ENTITLED, 2, Part.CONSTRAINT)] == faults(carriage)


def test_an_author_may_relax_its_own(relay: Relay) -> None:
    """A constraint that an agent said with an offer may be taken away by that agent."""
    planner = a_lead(relay).hand_off("planner", "plan", items=[Constraint("below 100 lines")]).accept()
    own = next(item for item in planner.notes if item.by == "agent:lead")
    planner.relax(own, by="agent:lead", reason="it does not fit")

    assert prove(relay, planner.hand_off("drafter", "draft").id).whole


def test_what_is_said_meanwhile_travels_and_says_where_it_came_from(relay: Relay) -> None:
    """A statement that the human makes to the lead reaches the grandchild that is handed off afterwards."""
    lead = a_lead(relay)
    planner = lead.hand_off("planner", "plan").accept()
    lead.add_intent("Credit notes too")
    carriage = prove(relay, planner.hand_off("drafter", "draft").id)

    said = carriage.arrived[-1]
    assert (True, b"Credit notes too", 1) == (carriage.whole, said.body, len(carriage.hops[1].added))
    assert said.origin is not None
    assert (lead.id, None) == (said.origin.run, said.origin.at_hop)


def test_what_is_said_later_is_listed_and_not_lost(relay: Relay) -> None:
    """A handoff cannot carry what nobody had said; it is named all the same."""
    lead = a_lead(relay)
    handoff = lead.hand_off("planner", "plan")
    lead.add_intent("Credit notes too")
    carriage = prove(relay, handoff.id)

    assert (True, [b"Credit notes too"], [False]) == (
        carriage.whole,
        [item.body for item in carriage.later],
        [item.arrived for item in carriage.later],
    )


def test_erased_words_leave_the_proof(relay: Relay) -> None:
    """Ids and digests prove the way of words that were erased since."""
    *_, last = descend(a_lead(relay), 3)
    relay.admin.erase([prove(relay, last.id).items[0].ref.item], by="user:ana", reason="privacy")
    carriage = prove(relay, last.id)

    assert (True, CarriedWords.ERASED, None, True) == (
        carriage.whole,
        carriage.items[0].words,
        carriage.items[0].body,
        carriage.items[0].arrived,
    )


def tampered(relay: Relay, change: Callable[[dict[ContentId, object], ContentId], None]) -> Carriage:
    """Do something to the stored words of the intent, and prove."""
    *_, last = descend(a_lead(relay), 2)
    item = prove(relay, last.id).items[0].ref.item
    change(relay.store._tables.contents, item)  # type: ignore[attr-defined]
    return prove(relay, last.id)


def test_altered_words_are_found(relay: Relay) -> None:
    """Words that are not those that the receipts committed to are no proof of anything."""

    def alter(contents: dict[ContentId, object], item: ContentId) -> None:
        contents[item] = replace(contents[item], body=b"Send me the money")  # type: ignore[type-var]

    carriage = tampered(relay, alter)

    assert ([(CarriageFault.ALTERED, 1, Part.INTENT)], None) == (faults(carriage), carriage.items[0].body)


def test_words_that_are_not_here_break_nothing(relay: Relay) -> None:
    """A bundle without words proves the way by digests."""

    def remove(contents: dict[ContentId, object], item: ContentId) -> None:
        del contents[item]

    carriage = tampered(relay, remove)

    assert (True, CarriedWords.ABSENT) == (carriage.whole, carriage.items[0].words)


def test_an_answer_is_a_revision_of_the_same_baton(relay: Relay) -> None:
    """Whoever accepts after an answer countersigns the answer, and the items are those of the offer."""
    handoff = a_lead(relay).hand_off("planner", "plan")
    handoff.ask("Which module?")
    handoff.answer("invoice", by="user:ana")
    handoff.accept()
    carriage = prove(relay, handoff.id)

    assert (True, True) == (carriage.whole, carriage.hops[0].countersigned)


def test_an_acceptance_of_another_baton_is_found(relay: Relay) -> None:
    """A receiver that signed for something else did not receive this."""
    handoff = a_lead(relay).hand_off("planner", "plan")
    plainly(recording_of(relay)).accept(handoff.id, acceptance=Acceptance(baton=Digest("0" * 64)))

    assert [(CarriageFault.OTHER_BATON, 1, None)] == faults(prove(relay, handoff.id))


def test_an_acceptance_may_countersign_nothing(relay: Relay) -> None:
    """An acceptance that names no baton is not countersigned, which is said and is no finding."""
    handoff = a_lead(relay).hand_off("planner", "plan")
    plainly(recording_of(relay)).accept(handoff.id)
    carriage = prove(relay, handoff.id)

    assert (True, False, 1) == (carriage.whole, carriage.hops[0].countersigned, carriage.hops[0].attempt)


def test_a_handoff_that_nobody_took_is_proven_up_to_its_offer(relay: Relay) -> None:
    """The last hop ends at the offer."""
    hop = prove(relay, a_lead(relay).hand_off("planner", "plan").id).hops[0]

    assert (None, None, "planner") == (hop.accepted, hop.attempt, hop.to)


def test_a_row_that_points_elsewhere_is_an_edit(relay: Relay) -> None:
    """A derived row says only where to look; if no offer of this handoff stands there, it was edited."""
    handoff = a_lead(relay).hand_off("planner", "plan")

    with relay.store.view() as view, pytest.raises(EditedError, match="the offer of handoff_"):
        prove_carriage(view, replace(view.get_handoff(handoff.id), seq=1))
