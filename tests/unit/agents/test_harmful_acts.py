"""What does harm: a model's call or delegation waits for a person by default, although its run is only observed."""

from typing import Any

import pytest

from batonpass import tool
from batonpass.agents import RunResult
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import PrincipalId
from batonpass.model.base.kinds import Gate
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.policy.policy_rules import Policy, Tier
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from tests.unit.agents.house import House, run_async
from tests.unit.handoff.approvers import an_approver
from tests.unit.handoff.places import bodies

ANA = "user:ana"


class Clerk:
    """An agent with one tool, which it calls once, on a relay without any policy."""

    def __init__(self, policy: Policy | None = None, *, gates: str = "hold", **declared: Any) -> None:  # noqa: ANN401
        self.house = House(gates=gates)
        self.house.relay = Relay(MemoryStore(), policy=policy)
        self.done: list[str] = []

        def act(to: str) -> str:
            """Do it."""
            self.done.append(to)
            return f"did {to}"

        self.house.agent("clerk", self.script, tool("act", **declared)(act) if declared else act)

    def script(self, turn: Any) -> Any:  # noqa: ANN401 - a turn
        """Act once, and say so."""
        return "done" if turn.returned else {"act": {"to": "bob"}}

    def run(self) -> RunResult:
        """Let it work, or go on."""
        agent = self.house.registry.get("clerk")
        result: RunResult = run_async(agent.runner.run(agent.definition, "Do it", by=ANA, key="k"))
        return result


@pytest.mark.parametrize(
    ("declared", "rule"),
    [({"reversible": False}, "tier.irreversible"), ({"external": True}, "tier.external-write")],
    ids=["it cannot be undone", "it leaves us"],
)
def test_a_harmful_call_of_a_model_waits_for_a_person(declared: dict[str, Any], rule: str) -> None:
    """Nothing grants, enforces or rules: the call is held all the same, and made once after the approval."""
    clerk = Clerk(**declared)
    held = clerk.run()

    assert (State.HELD, [rule], []) == (held.state, [one.rule for one in held.held], clerk.done)
    clerk.house.relay.held_call(held.held[0].id).approve(by=ANA)
    assert (State.COMPLETED, ["bob"]) == (clerk.run().state, clerk.done)
    clerk.house.relay.verify()


def test_a_name_opens_it_where_the_run_is_observed() -> None:
    """Once somebody has a key, an enforced gate takes a signature; an observed run only has to be told by somebody."""
    clerk = Clerk(reversible=False)
    an_approver(clerk.house.relay, PrincipalId("user:ben"))
    clerk.house.relay.held_call(clerk.run().held[0].id).approve(by=ANA)

    assert (State.COMPLETED, ["bob"]) == (clerk.run().state, clerk.done)
    clerk.house.relay.verify()


@pytest.mark.parametrize(
    ("policy", "gates"),
    [(None, "report"), (Policy(tiers={Tier.IRREVERSIBLE: Gate.NONE}), "hold")],
    ids=["the runner only reports", "the policy says none"],
)
def test_it_can_be_turned_off(policy: Policy | None, gates: str) -> None:
    """Of a runner that only reports, what would have been held is recorded; a policy that says so is obeyed."""
    clerk = Clerk(policy, gates=gates, reversible=False)

    assert (State.COMPLETED, ["bob"]) == (clerk.run().state, clerk.done)
    [requested] = bodies(clerk.house.relay, "tool.requested")
    assert (("would_hold.tier.irreversible",) if policy is None else ()) == requested.flags


def test_a_tool_that_declares_nothing_is_reported() -> None:
    """It is called, because most tools do no harm; its receipt says that nobody has declared whether it does."""
    clerk = Clerk()

    assert State.COMPLETED is clerk.run().state
    [requested] = bodies(clerk.house.relay, "tool.requested")
    assert ("tool.undeclared",) == requested.flags


@pytest.mark.parametrize(("gates", "state"), [("hold", State.HELD), ("report", State.COMPLETED)])
def test_a_delegation_that_may_spend_waits_too(gates: str, state: State) -> None:
    """A handoff with a budget of money or tokens lets somebody else spend: whoever asked for the work confirms it."""
    house = House(gates=gates)
    house.agent("helper", lambda _: "helped")

    async def delegate() -> str:
        """Let somebody else do it."""
        brief = BriefRequest(budget=Budget(tokens=1000))
        return str((await house.executor.execute("helper", "Help", brief=brief)).state)

    house.agent(
        "lead", lambda turn: "done" if turn.returned else {"delegate": {}}, tool("delegate", reads=True)(delegate)
    )
    lead = house.registry.get("lead")
    result = run_async(lead.runner.run(lead.definition, "Do it", by=ANA))

    assert state is result.state
    with house.relay.store.view() as view:
        assert [state] == [handoff.state for handoff in view.find_handoffs()]


def test_there_are_two_settings() -> None:
    """Another word is a mistake, and said to be one."""
    with pytest.raises(InvalidValueError, match="hold"):
        House(gates="off")
