"""Approvals belong to calls: exactly who let exactly this call be made, and nobody else."""

from pathlib import Path

import pytest

from batonpass.accounts.blame.maker_chain import Makers
from batonpass.accounts.why.why import explain
from batonpass.errors import CallSuspendedError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId, HandoffId
from batonpass.model.bodies.body import Gate
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.records.call import CallRecord, read_calls
from batonpass.records.handoff import Standing
from batonpass.records.hold import CallLeave, Leave, find_handoff_holds, find_leave
from batonpass.relay import Relay

ANA, BEN, CARLA = "user:ana", "user:ben", "user:carla"
ASKS = Rule(name="ask-first", on=Subject.CALL, gate=Gate.APPROVE, tool="deploy")


@tool(reversible=True, target="path")
def write(path: str) -> str:
    """Pretend to write."""
    return path


@tool(reversible=True, target="place")
def deploy(place: str) -> str:
    """Pretend to deploy."""
    return place


class Flaky:
    """Fails the first time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, place: str) -> str:
        """Pretend to deploy."""
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("the line is down")
        return place


def work(run: LiveRun) -> str:
    """Write, and then deploy to two places."""
    run.call(write, "notes")
    run.call(deploy, "north")
    run.call(deploy, "south")
    return "done"


def a_relay(*, enforce: bool = True) -> Relay:
    """Return a relay whose policy asks somebody before each deployment."""
    return Relay.open("memory:", policy=Policy(enforce=enforce, rules=(ASKS,)))


def deployed(relay: Relay) -> LiveHandoff:
    """Return a handoff with three writes: one that needed nobody, one that Ana approved, and one that Ben did."""
    lead = relay.start("Ship it", by=CARLA)
    handoff = lead.hand_off("shipper", "Ship it", criteria=["it answers"], run=work)
    handoff.wait()
    for approver in (ANA, BEN):
        handoff.approve(by=approver, reason=f"{approver} looked")
        handoff.wait()
    return handoff


def calls_at(relay: Relay, handoff: LiveHandoff) -> dict[str, tuple[CallRecord, CallLeave]]:
    """Return the calls that were made at a handoff, by what they did, each with whose leave it had."""
    with relay.store.view() as view:
        runs = view.find_attempts(view.get_handoff(HandoffId(handoff.id)))
        made = [call for run in runs for call in read_calls(view, run).values() if call.is_made]
        words = {call.id: (view.get_content(call.content["target"].id).body or b"").decode() for call in made}
        return {words[call.id]: (call, find_leave(view, call)) for call in made}


def test_each_call_has_its_own_approver() -> None:
    """Of three writes of one handoff, one needed nobody, and the others were approved by two people."""
    with a_relay() as relay:
        found = calls_at(relay, deployed(relay))

    assert {
        "notes": (Leave.NOT_NEEDED, []),
        "north": (Leave.GIVEN, [ANA]),
        "south": (Leave.GIVEN, [BEN]),
    } == {name: (leave.leave, [one.by for one in leave.approvals]) for name, (_, leave) in found.items()}


def test_every_answer_names_the_same_approver() -> None:
    """`why` and `blame` say of each call what the records say."""
    with a_relay() as relay:
        found = calls_at(relay, deployed(relay))
        with relay.store.view() as view:
            answers = {name: explain(view, call.id).answer for name, (call, _) in found.items()}
            makers = {
                name: Makers(view).of_call(view.get_receipt(call.receipt.id), call.receipt, call.id).leave
                for name, (call, _) in found.items()
            }

    assert (False, True, False) == tuple(ANA in answers[name] for name in ("notes", "north", "south"))
    assert (False, False, True) == tuple(BEN in answers[name] for name in ("notes", "north", "south"))
    assert {name: leave for name, (_, leave) in found.items()} == makers


def test_an_approval_names_the_hold_that_it_answers() -> None:
    """The receipt of the approval has the digest of what waited, and the hold has the key of the call."""
    with a_relay() as relay:
        handoff = deployed(relay)
        found = calls_at(relay, handoff)
        with relay.store.view() as view:
            holds = list(find_handoff_holds(view, view.get_handoff(HandoffId(handoff.id))))

    assert [found["north"][0].key, found["south"][0].key] == [hold.key for hold in holds]
    assert [[hold.hold.receipt] for hold in holds] == [[one.body.hold for one in hold.approvals] for hold in holds]
    assert [f"{ANA} looked", f"{BEN} looked"] == [
        one.reason.words for hold in holds for one in hold.approvals if one.reason is not None
    ]


def test_a_rule_that_nobody_enforced_is_said_to_ask() -> None:
    """Observed, the call was made: no approval, although the rule asks for one."""
    with a_relay(enforce=False) as relay:
        lead = relay.start("Ship it", by=CARLA)
        handoff = lead.hand_off("shipper", "Ship it", run=work)
        handoff.wait()
        found = calls_at(relay, handoff)

    assert [(Leave.NOT_NEEDED, ()), (Leave.MISSING, ("ask-first",)), (Leave.MISSING, ("ask-first",))] == [
        (leave.leave, leave.rules) for _, leave in found.values()
    ]


@pytest.mark.parametrize("approved", [True, False])
def test_a_held_call_of_a_root_has_its_own_decision(*, approved: bool) -> None:
    """Approved, the call that is made afterwards has it; refused, the hold says so."""
    with a_relay() as relay, relay.start("Ship it", by=CARLA) as lead:
        with pytest.raises(CallSuspendedError) as held:
            lead.call(deploy, "north")
        waiting = relay.held_call(CallId(held.value.call))
        waiting.approve(by=ANA) if approved else waiting.deny(by=ANA, reason="not now")
        if approved:
            lead.call(deploy, "north")
        with relay.store.view() as view:
            calls = list(read_calls(view, view.get_run(lead.id)).values())
            leaves = [find_leave(view, call) for call in calls]

    expected = [(Leave.GIVEN, ANA), (Leave.GIVEN, ANA)] if approved else [(Leave.REFUSED, ANA)]
    assert expected == [(leave.leave, leave.approvals[-1].by) for leave in leaves]


def test_what_a_later_attempt_kept_is_verified_with_it() -> None:
    """A call of the first attempt whose result the last one kept stands as the result of the last one."""
    with a_relay() as relay:
        handoff = deployed(relay)
        handoff.verify(by=CARLA, check=lambda: True)
        found = calls_at(relay, handoff)
        with relay.store.view() as view:
            standing = {
                name: Makers(view).of_call(view.get_receipt(call.receipt.id), call.receipt, call.id).standing
                for name, (call, _) in found.items()
            }

    assert dict.fromkeys(found, Standing.VERIFIED) == standing


def test_an_approval_that_was_used_covers_no_later_call(tmp_path: Path) -> None:
    """It was for the call that failed. The policy asks nobody any more when it is made again."""
    flaky = tool("deploy", reversible=True, target="place")(Flaky())
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"

    def ship(run: LiveRun) -> str:
        return run.call(flaky, "north")

    with Relay.open(ledger, policy=Policy(enforce=True, rules=(ASKS,))) as relay:
        handoff = relay.start("Ship it", by=CARLA).hand_off("shipper", "Ship it", run=ship)
        handoff.wait()
        handoff.approve(by=ANA)
        assert handoff.wait().state == "failed"
    with Relay.open(ledger, policy=Policy(enforce=True)) as relay:
        again = relay.handoff(handoff.id)
        again.retry(by=CARLA)
        assert again.run(ship).state == "completed"
        with relay.store.view() as view:
            runs = view.find_attempts(view.get_handoff(HandoffId(handoff.id)))
            made = [call for run in runs for call in read_calls(view, run).values() if call.is_made]
            found = [find_leave(view, call) for call in made]

    assert [(Leave.GIVEN, [ANA]), (Leave.NOT_NEEDED, [])] == [
        (leave.leave, [one.by for one in leave.approvals]) for leave in found
    ]
