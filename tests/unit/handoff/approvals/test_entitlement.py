"""Approvers have a scope: what they may approve is in the policy, and whoever else may is named."""

import pytest

from batonpass.errors import CallSuspendedError, OutOfScopeError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.live.held_call import LiveCall
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId, PrincipalId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Gate
from batonpass.model.grants.grant_request import grant_unless_nothing
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.policy.approver_scope import ApproverScope
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import desk_of
from tests.unit.handoff.approvers import ANA, BEN, Desk, a_desk, an_approver
from tests.unit.handoff.places import bodies, receipts

EVE = PrincipalId("user:eve")


@tool("bank", action="pay", target="account", reversible=False)
def pay(account: str, amount: int) -> str:
    """Pretend to pay."""
    return f"paid {amount} to {account}"


def a_policy(*, proven: bool = False, **scopes: ApproverScope) -> Policy:
    """Return a policy that lets some people approve something."""
    people = {PrincipalId(f"user:{name}"): scope for name, scope in scopes.items()}
    return Policy(enforce=True, proven=proven, approvers=people, file="batonpass.toml")


SMALL = ApproverScope(may=read_scope(["pay:* where amount <= 1000"]))
LARGE = ApproverScope(may=read_scope(["pay:*"]), agents=("payer", "lead"))


def waits(desk: Desk, what: str, amount: int) -> LiveHandoff | LiveCall:
    """Return a payment that waits: of an attempt, or of a root."""
    if what == "of a root":
        with pytest.raises(CallSuspendedError) as held:
            desk.lead.call(pay, "B", amount)
        return desk.relay.held_call(CallId(held.value.call))
    handoff = desk.lead.hand_off("payer", f"Pay {amount}", run=lambda run: run.call(pay, "B", amount))
    handoff.wait()
    return handoff


@pytest.mark.parametrize("what", ["of an attempt", "of a root"])
@pytest.mark.parametrize("proven", [False, True], ids=["by name", "with a key"])
def test_outside_of_their_scope_nobody_approves(what: str, proven: bool) -> None:  # noqa: FBT001
    """A thousand is Ben's, a million is not, whatever signs it; the sentence says whose it is. Anybody may deny."""
    desk = a_desk(a_policy(proven=proven, ben=SMALL, eve=LARGE))
    ben = an_approver(desk.relay, BEN) if proven else BEN
    small, large = waits(desk, what, 1000), waits(desk, what, 1_000_000)
    small.approve(by=ben)
    with pytest.raises(OutOfScopeError, match=r"user:ben may not approve .*: pay:B of .*; user:eve may"):
        large.approve(by=ben)
    large.approve(by=an_approver(desk.relay, EVE) if proven else EVE)
    waits(desk, what, 7).deny(by=BEN, reason="no")

    kind = "tool.approved" if what == "of a root" else "handoff.approved"
    assert [BEN, EVE] == [body.by for body in bodies(desk.relay, kind)]
    desk.relay.verify()


def test_who_has_no_table_may_approve_nothing() -> None:
    """As soon as the file says of one person what they may approve; where it says it of nobody, everybody may."""
    desk = a_desk(a_policy(ben=SMALL))
    large = waits(desk, "of an attempt", 5000)
    with pytest.raises(OutOfScopeError, match=r"user:ana may not .*; nobody may, by batonpass.toml"):
        large.approve(by=ANA)
    desk_of(desk.relay).gates = Policy(enforce=True, proven=False)
    large.approve(by=ANA)

    assert State.COMPLETED is large.wait().state  # type: ignore[union-attr]


def test_of_which_agents() -> None:
    """Eve approves what the payer does, and nothing that anybody else does."""
    desk = a_desk(a_policy(eve=LARGE))
    handoff = desk.lead.hand_off("buyer", "Buy", run=lambda run: run.call(pay, "B", 1))
    handoff.wait()

    with pytest.raises(OutOfScopeError, match="pay:B of buyer"):
        handoff.approve(by=EVE)


@pytest.mark.parametrize(
    ("may", "may_delegate", "within"),
    [
        (["pay:B where amount <= 10"], [], True),
        (["pay:B"], [], False),
        (["pay:B where amount <= 10"], ["pay:*"], False),
        ([], [], False),
    ],
    ids=["less", "more", "less to use and more to pass on", "whatever it likes"],
)
def test_a_handoff_is_all_that_it_grants(may: list[str], may_delegate: list[str], within: bool) -> None:  # noqa: FBT001
    """What it may use and pass on has to lie within the scope; what is bounded by nothing lies within none."""
    desk = a_desk(a_policy(ben=SMALL, eve=ApproverScope()))
    handoff = desk.lead.hand_off("payer", "Pay", hold=True, grant=grant_unless_nothing(may, may_delegate))
    if within:
        handoff.approve(by=BEN)
    else:
        with pytest.raises(OutOfScopeError, match="user:eve may"):
            handoff.approve(by=BEN)
        handoff.approve(by=EVE)

    assert State.OFFERED is handoff.state()


def test_to_confirm_needs_no_table() -> None:
    """It is for whoever asked for it, who has no scope to approve."""
    rule = Rule(name="ask", on=Subject.CALL, gate=Gate.CONFIRM, tool="bank")
    desk = a_desk(Policy(enforce=True, rules=(rule,), approvers={BEN: SMALL}))
    handoff = waits(desk, "of an attempt", 5000)
    handoff.approve(by="agent:lead")

    assert State.COMPLETED is handoff.wait().state  # type: ignore[union-attr]


def test_erased_words_lie_within_no_scope() -> None:
    """Nobody can tell any more how much it was."""
    desk = a_desk(a_policy(ben=SMALL))

    def work(run: LiveRun) -> str:
        return run.call(pay, "B", 10)

    handoff = desk.lead.hand_off("payer", "Pay", run=work)
    handoff.wait()
    (receipt,) = receipts(desk.relay, "tool.held")
    desk.relay.admin.erase([receipt.content["arguments"].id], by=ANA, reason="asked to")
    with pytest.raises(OutOfScopeError, match="whose extent is not on record; nobody may"):
        handoff.approve(by=BEN)
