"""Gates in a relay: handoffs that are held or refused at their offer, and calls that suspend their attempt."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass import Brief
from batonpass.accounts.why.why import explain
from batonpass.errors import (
    CallDecidedError,
    CallDeniedError,
    CallSuspendedError,
    HandoffHeldError,
    HandoffRefusedError,
    NotApproverError,
    NotFoundError,
)
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId, StreamId
from batonpass.model.base.kinds import Gate, Relation
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.baton import Budget
from batonpass.model.bodies.body import HandoffFailed
from batonpass.model.ledger.run import RunState
from batonpass.model.policy.policy_rules import Demand, Policy, Posture, Requirement, Rule, Subject
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from batonpass.testing import FrozenClock
from tests.house.tree import DOCS
from tests.unit.handoff.places import ANA, LONG, bodies, kinds, receipts, words

DONE: list[str] = []


@tool(reversible=False, target="place")
def deploy(place: str) -> str:
    DONE.append(place)
    return f"deployed {place}"


@tool(reads=True)
def look(place: str) -> str:
    DONE.append(f"look {place}")
    return place


@pytest.fixture(autouse=True)
def _nothing_done() -> Iterator[None]:
    DONE.clear()
    yield
    DONE.clear()


def a_relay(policy: Policy, clock: FrozenClock | None = None) -> Relay:
    return Relay(open_store("memory:"), policy=policy, clock=clock)


def work(run: LiveRun) -> str:
    run.call(look, "prod")
    return run.call(deploy, "prod")


ENFORCED = Policy(enforce=True)


def test_an_observed_call_is_made_and_flagged() -> None:
    """Without enforcement, what the policy would have done is told, and nothing else happens."""
    with a_relay(Policy()) as relay, relay.start("Ship it", by=ANA) as lead:
        lead.call(deploy, "prod")
        (requested,) = bodies(relay, "tool.requested")

        assert (["prod"], ("would_hold.tier.irreversible",), ("irreversible",)) == (
            DONE,
            requested.flags,
            requested.tiers,
        )


def test_a_held_call_suspends_the_attempt_and_the_next_one_goes_on() -> None:
    """Nobody waits for a person: after the approval another attempt keeps what was done and makes the call."""
    with a_relay(ENFORCED) as relay, relay.start("Ship it", by=ANA) as lead:
        handoff = lead.hand_off("shipper", "Ship it", run=work)
        first = handoff.wait()
        with relay.store.view() as view:
            assert first.run is not None
            assert RunState.SUSPENDED is view.get_run(first.run).state
        (held,) = bodies(relay, "tool.held")
        assert (State.HELD, ["look prod"], "tier.irreversible", Gate.APPROVE) == (
            first.state,
            DONE,
            held.rule,
            held.gate,
        )

        handoff.approve(by=ANA, reason="the tests pass")
        second = handoff.wait()

        assert (State.COMPLETED, 2, "deployed prod") == (second.state, second.attempt, second.value)
        assert ["look prod", "prod"] == DONE
        relay.verify()


def test_an_approval_is_for_one_call() -> None:
    """The same tool on another target is held anew."""
    with a_relay(ENFORCED) as relay, relay.start("Ship it", by=ANA) as lead:
        places = iter(["staging", "prod"])
        handoff = lead.hand_off("shipper", "Ship it", run=lambda run: run.call(deploy, next(places)))
        handoff.wait()
        handoff.approve(by=ANA)

        assert (State.HELD, []) == (handoff.wait().state, DONE)


def test_no_agent_approves_and_nobody_confirms_their_own_work() -> None:
    """An approval takes a person; the lead may confirm, the worker may not."""
    rule = Rule(name="ask-the-lead", on=Subject.CALL, gate=Gate.CONFIRM, tool="deploy")
    with a_relay(ENFORCED) as relay, relay.start("Ship it", by=ANA) as lead:
        handoff = lead.hand_off("shipper", "Ship it", run=work)
        handoff.wait()
        with pytest.raises(NotApproverError, match="needs a person"):
            handoff.approve(by="agent:lead")
    with a_relay(Policy(enforce=True, rules=(rule,))) as relay, relay.start("Ship it", by=ANA) as lead:
        handoff = lead.hand_off("shipper", "Ship it", run=work)
        handoff.wait()
        with pytest.raises(NotApproverError, match="whoever asked for it"):
            handoff.approve(by="agent:shipper")
        handoff.approve(by="agent:lead")

        assert State.COMPLETED is handoff.wait().state


def test_a_root_stays_open_and_settles_its_held_call() -> None:
    """A root has no handoff that could wait: its principal lets the call be made, and it is made."""
    with a_relay(ENFORCED) as relay, relay.start("Ship it", by=ANA) as lead:
        with pytest.raises(CallSuspendedError) as held:
            lead.call(deploy, "prod")
        call = bodies(relay, "tool.held")[0].call
        with pytest.raises(NotApproverError):
            lead.settle(call, "repeat")
        lead.settle(call, "repeat", by=ANA, reason="go")

        assert (call, "deployed prod", ["prod"]) == (held.value.call, lead.call(deploy, "prod"), DONE)
        with pytest.raises(NotFoundError):
            lead.settle(bodies(relay, "tool.requested")[0].call, "repeat", by=ANA)


def test_a_rule_denies_a_call() -> None:
    """It is recorded with the rule, and the tool is not touched."""
    rule = Rule(name="never-prod", on=Subject.CALL, gate=Gate.DENY, target="prod", line=3)
    with a_relay(Policy(enforce=True, rules=(rule,))) as relay, relay.start("Ship it", by=ANA) as lead:
        with pytest.raises(CallDeniedError, match="rule never-prod"):
            lead.call(deploy, "prod")

        assert ([], ["never-prod"]) == (DONE, [body.rule for body in bodies(relay, "tool.denied")])


def test_a_rule_denies_a_handoff_as_the_specification_says() -> None:
    """Enforced, one receipt in the sender's stream says that it failed, and why; else the offer is flagged."""
    rule = Rule(name="no-helpers", on=Subject.HANDOFF, gate=Gate.DENY, agent="helper", line=3)
    with a_relay(Policy(enforce=True, rules=(rule,))) as relay, relay.start("Ship it", by=ANA) as lead:
        with pytest.raises(HandoffRefusedError) as refused:
            lead.hand_off("helper", "Look", criteria=["seen"])
        (failed,) = receipts(relay, "handoff.failed")
        body = failed.body
        assert isinstance(body, HandoffFailed)
        assert (StreamId(lead.id), 0, "handoff.refused") == (failed.stream, body.attempt, body.error)
        assert ("Look", str(refused.value)) == (words(relay, failed, "task"), words(relay, failed, "message"))
        with relay.store.view() as view:
            assert [] == [*view.find_handoffs(parent=lead.id)]
        assert ["run.started", "handoff.failed"] == kinds(relay)
    with a_relay(Policy(rules=(rule,))) as relay, relay.start("Ship it", by=ANA) as lead:
        lead.hand_off("helper", "Look", criteria=["seen"])
        assert "would_deny.no-helpers" in bodies(relay, "handoff.initiated")[0].flags

    spec = (DOCS / "spec" / "policy.md").read_text(encoding="utf-8")
    (row,) = [line for line in spec.splitlines() if line.startswith("| `deny` on a handoff")]
    assert ["deny", "would_deny.RULE", "handoff.initiated", "handoff.failed", "handoff.refused"] == row.split("`")[1::2]


def test_a_handoff_with_a_budget_of_its_own_is_confirmed() -> None:
    """Enforced it waits for its lead; observed it is only flagged."""
    with a_relay(ENFORCED) as relay, relay.start("Ship it", by=ANA) as lead:
        handoff = lead.hand_off("helper", "Look", brief=Brief(budget=Budget(cost=3)), criteria=["seen"])
        (offer,) = bodies(relay, "handoff.initiated")
        assert (State.HELD, "tier.budgeted-delegation", Gate.CONFIRM) == (handoff.state(), offer.rule, offer.gate)
        with pytest.raises(HandoffHeldError):
            handoff.accept()
        handoff.approve(by="agent:lead")
        assert State.OFFERED is handoff.state()
    with a_relay(Policy()) as relay, relay.start("Ship it", by=ANA) as lead:
        observed = lead.hand_off("helper", "Look", brief=Brief(budget=Budget(cost=3)), criteria=["seen"])

        assert (State.OFFERED, ("would_hold.tier.budgeted-delegation",)) == (
            observed.state(),
            bodies(relay, "handoff.initiated")[0].flags,
        )


def test_a_refused_handoff_is_on_record() -> None:
    """Contract first: without a way to tell whether it holds, it is refused, and what was asked for can be seen."""
    strict = Requirement(posture=Posture.MAY_REJECT, method=Demand.REFUSE)
    policy = Policy(requirements={Relation.LEAD_TO_WORKER: strict})
    with a_relay(policy) as relay, relay.start("Ship it", by=ANA) as lead:
        with pytest.raises(HandoffRefusedError, match="names no way to tell") as refused:
            lead.hand_off("helper", "Look")

        assert ([("helper", "handoff.refused", 0)], []) == (
            [(body.to, body.error, body.attempt) for body in bodies(relay, "handoff.failed")],
            bodies(relay, "handoff.initiated"),
        )
        assert "method.lead-to-worker" == refused.value.rule
        assert State.OFFERED is lead.hand_off("helper", "Look", brief=Brief(verify_by=["true"])).state()


def test_a_long_chain_needs_a_person() -> None:
    """At every second hop a person renews the grant; no agent can."""
    relay = a_relay(Policy(enforce=True, renew_every=2))
    with relay, relay.start("Dig", by=ANA) as lead, lead.hand_off("one", "dig") as one:
        deeper = one.hand_off("two", "dig deeper")
        assert State.HELD is deeper.state()
        with pytest.raises(NotApproverError):
            deeper.approve(by="agent:one")
        deeper.approve(by=ANA)
        with deeper as two:
            assert State.OFFERED is two.hand_off("three", "and deeper").state()


@pytest.mark.parametrize("carrier", Carrier)
def test_a_time_limit_denies(carrier: Carrier) -> None:
    """What nobody lets go on in time is denied by the next sweep, whichever way it came to be held."""
    clock = FrozenClock()
    with a_relay(Policy(enforce=True, hold_for=timedelta(hours=1)), clock) as relay:
        lead = relay.start("Ship it", by=ANA)
        by_hand = lead.hand_off("helper", "Look", hold=True, carrier=carrier)
        handoff = lead.hand_off("shipper", "Ship it", carrier=carrier)
        lease = relay.claim(holder="w", lease_for=LONG) if carrier is Carrier.WORKER else None
        handoff.run(work, lease=lease)
        assert (0, State.HELD, State.HELD) == (relay.sweep(), by_hand.state(), handoff.state())
        clock.tick(timedelta(hours=1))

        assert (2, State.DENIED, State.DENIED) == (relay.sweep(), by_hand.state(), handoff.state())
        assert {"service:time-limit"} == {body.by for body in bodies(relay, "handoff.denied")}
        assert 0 == relay.sweep()


def test_a_time_limit_refuses_the_call_of_a_root() -> None:
    """Nobody decided in time: whoever would now is too late, and the call is denied when it is made again."""
    clock = FrozenClock()
    with a_relay(Policy(enforce=True, hold_for=timedelta(hours=1)), clock) as relay:
        lead = relay.start("Ship it", by=ANA)
        for _ in range(2):
            with pytest.raises(CallSuspendedError):
                lead.call(deploy, "prod")
        (held,) = bodies(relay, "tool.held")
        assert clock.now() + timedelta(hours=1) == held.until
        clock.tick(timedelta(hours=1))
        with pytest.raises(CallDecidedError):
            relay.held_call(held.call).approve(by=ANA)
        with pytest.raises(CallDeniedError, match="service:time-limit denied deploy"):
            lead.call(deploy, "prod")

        assert ["service:time-limit"] == [body.by for body in bodies(relay, "tool.refused")]


def test_a_policy_is_named_by_every_run(tmp_path: Path) -> None:
    """The first receipt of a run says under which file it stands; without a file, it says nothing."""
    (tmp_path / "batonpass.toml").write_text("[policy]\nenforce = true\n", encoding="utf-8")
    with Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db") as relay, relay.start("Look", by=ANA) as lead:
        with lead.hand_off("helper", "Look") as helper:
            helper.call(look, "prod")
        first = [bodies(relay, kind)[0].policy for kind in ("run.started", "handoff.accepted")]

        assert (64, 1) == (len(first[0] or ""), len(set(first)))
    with a_relay(Policy()) as relay, relay.start("Look", by=ANA):
        assert [None] == [body.policy for body in bodies(relay, "run.started")]


def test_why_names_the_rule_and_the_policy() -> None:
    """A held call, a held offer and a refused one say which rule it was, and of which policy."""
    with a_relay(ENFORCED) as relay, relay.start("Ship it", by=ANA) as lead:
        handoff = lead.hand_off("shipper", "Ship it", run=work)
        handoff.wait()
        money = lead.hand_off("helper", "Look", brief=Brief(budget=Budget(cost=3)))
        with relay.store.view() as view:
            call, offer, run = (
                explain(view, given) for given in (bodies(relay, "tool.held")[0].call, money.id, lead.id)
            )

    assert ("held", "tier.irreversible", True) == (call.verdict, call.rule, "the shipped policy" in call.answer)
    assert ("held", True) == (offer.verdict, "rule tier.budgeted-delegation" in offer.answer)
    assert "allowed" == run.verdict


@pytest.mark.parametrize("where", ["of an attempt", "of a root"])
def test_why_names_who_approved_a_call_that_was_made(where: str) -> None:
    """Not that nothing was flagged: somebody let it be made, and how far that is proven."""
    with a_relay(ENFORCED) as relay, relay.start("Ship it", by=ANA) as lead:
        if where == "of a root":
            with pytest.raises(CallSuspendedError) as held:
                lead.call(deploy, "prod")
            relay.held_call(CallId(held.value.call)).approve(by="user:ben", reason="go")
            lead.call(deploy, "prod")
        else:
            handoff = lead.hand_off("shipper", "Ship it", run=work)
            handoff.wait()
            handoff.approve(by="user:ben", reason="go")
            handoff.wait()
        made = [body for body in bodies(relay, "tool.requested") if body.tool == "deploy"]
        with relay.store.view() as view:
            why = explain(view, made[-1].call)

    assert why.answer.endswith("; user:ben approved it (unproven: no approver's key signed)")
    assert [True] == ["user:ben" in fact.text for fact in why.facts if fact.label == "approved"]


def test_a_held_call_is_not_in_doubt() -> None:
    """It was never made, so there is nothing to find out about it."""
    with a_relay(ENFORCED) as relay, relay.start("Ship it", by=ANA) as lead:
        handoff = lead.hand_off("shipper", "Ship it", run=work)
        handoff.wait()
        handoff.approve(by=ANA)
        seen: list[int] = []
        handoff.run(lambda run: seen.append(len(run.earlier.in_doubt)))

        assert ([0], "handoff.completed") == (seen, kinds(relay)[-1])
