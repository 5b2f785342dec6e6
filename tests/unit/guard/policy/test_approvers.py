"""What a person may approve: calls and handoffs within their scope, and nothing that only looks like it."""

from datetime import UTC, datetime

import pytest

from batonpass.errors import InvalidValueError
from batonpass.guard.policy.approvers import Approvable, find_approvers, may_approve
from batonpass.model.base.ids import AgentId, PrincipalId
from batonpass.model.grants.call import Call
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.policy.approver_scope import ApproverScope

AT = datetime(2026, 11, 20, tzinfo=UTC)
PAYER = AgentId("payer")


def a_scope(*may: str, agents: tuple[str, ...] | None = None) -> ApproverScope:
    return ApproverScope(agents=agents, may=read_scope(may))


def a_payment(amount: object, to: str = "B") -> Approvable:
    return Approvable(worker=PAYER, call=Call("bank", "pay", to, {"amount": amount}))


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        pytest.param(a_payment(1000), True, id="as much as that"),
        pytest.param(a_payment("1000.00"), True, id="a decimal as text"),
        pytest.param(a_payment(1000.01), False, id="a little more"),
        pytest.param(a_payment("1e9"), False, id="a lot in another spelling"),
        pytest.param(a_payment("10 "), False, id="a number with a space"),
        pytest.param(a_payment(float("nan")), False, id="no number"),
        pytest.param(a_payment(True), False, id="true is not one"),  # noqa: FBT003
        pytest.param(a_payment([10, 5000]), False, id="one of several is more"),
        pytest.param(a_payment({"of": 10}), False, id="an object"),
        pytest.param(a_payment(None), False, id="nothing"),
        pytest.param(Approvable(worker=PAYER, call=Call("bank", "pay", "B", {})), False, id="no amount at all"),
        pytest.param(a_payment(10, "../B"), False, id="a target with dots"),
        pytest.param(a_payment(10, "B/C"), False, id="a target below"),
        pytest.param(
            Approvable(worker=PAYER, call=Call("bank", "refund", "B", {"amount": 10})), False, id="another act"
        ),
        pytest.param(Approvable(worker=AgentId("editor"), call=a_payment(10).call), False, id="of another agent"),
        pytest.param(Approvable(worker=PAYER), False, id="nobody knows what"),
        pytest.param(Approvable(worker=PAYER, granted=read_scope(["pay:B where amount <= 10"])), True, id="a grant"),
        pytest.param(Approvable(worker=PAYER, granted=read_scope(["pay:B"])), False, id="a grant without that bound"),
        pytest.param(
            Approvable(worker=PAYER, granted=read_scope(["pay:B where amount <= 10; at most 3 calls", "write:a"])),
            False,
            id="a grant of more",
        ),
    ],
)
def test_what_lies_within_a_scope(what: Approvable, expected: bool) -> None:  # noqa: FBT001
    """Agent, action, target and amount all have to fit; what is not known fits nothing."""
    assert expected is may_approve(a_scope("pay:* where amount <= 1000", agents=("pay*",)), what, AT)


def test_what_is_not_given_bounds_nothing() -> None:
    """An empty table lets a person approve everything; an empty list lets them approve nothing."""
    unknown = Approvable(worker=PAYER)

    assert [True, True, False, False] == [
        may_approve(scope, unknown, AT)
        for scope in (ApproverScope(), ApproverScope(agents=("*",)), ApproverScope(agents=()), a_scope())
    ]


def test_a_right_to_approve_ends() -> None:
    """Until then it covers grants that last longer: it is about approving, not about what is approved."""
    scope = a_scope("pay:*; until 2026-11-21T00:00:00Z")
    what = Approvable(worker=PAYER, granted=read_scope(["pay:B"]))

    assert (True, False) == (may_approve(scope, what, AT), may_approve(scope, what, AT.replace(day=21)))


def test_nobody_counts_approvals() -> None:
    """A limit that nothing enforces is refused, not passed over."""
    with pytest.raises(InvalidValueError, match="has limits"):
        a_scope("pay:*; at most 3 calls")


def test_who_may() -> None:
    """In the order of the file."""
    people = {PrincipalId("user:ana"): a_scope("write:**"), PrincipalId("user:ben"): a_scope("pay:*")}

    assert ["user:ben"] == list(find_approvers(people, a_payment(10), AT))
