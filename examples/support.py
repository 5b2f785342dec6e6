"""A support desk: user to support to billing to payment specialist, and where the chain ends.

Run it in an empty folder: `python support.py`. The models follow scripts, so it needs no key and no network; put
`AnthropicClient()` in the place of `ScriptedClient(...)` and the same agents think for themselves.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from batonpass import Relay
from batonpass.agents import (
    AgentDefinition,
    AgentRegistry,
    AgentRunner,
    EventLog,
    HandoffExecutor,
    HandoffPolicy,
    RunResult,
    ScriptedClient,
    ToolExecutor,
    ToolRegistry,
    create_handoff_tool,
)
from batonpass.agents.framework.scripted_model import Turn

WORDS = "I was charged twice in March. I want one of the two back, and no voucher."


def charges(month: str) -> str:
    """List the charges of a month.

    Args:
        month: Such as 2026-03.

    """
    return f"{month}-02 19.00 order 42\n{month}-02 19.00 no order"


def support(turn: Turn) -> str | dict[str, Any]:
    """Hand what is about money to billing; answer with what comes back."""
    if not turn.returned:
        return {
            "handoff_to_billing-agent": {
                "task": "Find out which of the two charges of March is wrong, and have it returned",
                "context": "The customer is polite and in a hurry.",
                "exclusions": ["vouchers"],
            }
        }
    return "The second charge, 19.00, is on its way back to your card."


def billing(turn: Turn) -> str | dict[str, Any]:
    """Look the charges up, hand the return to the specialist, and report."""
    if not turn.returned:
        return {"charges": {"month": "2026-03"}}
    if len(turn.returned) == 1:
        return {
            "handoff_to_payment-specialist": {
                "task": "Return the charge of 2026-03-02 that has no order",
                "decisions": ["the charge without an order is the wrong one"],
                "criteria": ["exactly 19.00 is returned"],
            }
        }
    return {"report_back": {"result": "one charge had no order; 19.00 is returned", "none": ["question", "rejected"]}}


def specialist(turn: Turn) -> str | dict[str, Any]:
    """Try to go further; when that is refused, do it here."""
    if not turn.returned:
        return {"handoff_to_bank-agent": {"task": "Wire 19.00"}}
    return {"report_back": {"result": "19.00 returned to the card", "open_questions": ["is the card still valid?"]}}


def desk(relay: Relay) -> AgentRegistry:
    """Return the agents of the desk; three may stand in one chain."""
    registry = AgentRegistry()
    executor = HandoffExecutor(registry, HandoffPolicy(max_depth=3, refuse_loops=True))
    plan = {
        "bank-agent": (lambda _: "wired", ()),
        "payment-specialist": (specialist, ("bank-agent",)),
        "billing-agent": (billing, ("payment-specialist",)),
        "support-agent": (support, ("billing-agent",)),
    }
    for agent, (script, others) in plan.items():
        tools = ToolRegistry([charges] if agent == "billing-agent" else [])
        for other in others:
            tools.register_tool_definition(create_handoff_tool(other, f"Hand to {other}.", executor))
        registry.register(
            agent,
            AgentRunner(ScriptedClient(script), ToolExecutor(tools), relay=relay),
            AgentDefinition(name=agent, model="scripted", system_prompt=f"You are {agent}."),
            description=f"The {agent.replace('-', ' ')} of the desk.",
        )
    return registry


async def answer(relay: Relay) -> RunResult:
    """Let the desk answer a customer."""
    front = desk(relay).get("support-agent")
    return await front.runner.run(front.definition, WORDS, by="user:ana", session_id="ticket-7")


async def main() -> None:
    """Answer, and list what was handed to whom."""
    place = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    with Relay.open(f"sqlite:///{place}/.batonpass/ledger.db") as relay:
        print((await answer(relay)).output)
        for event in await EventLog(relay).get_events(session_id="ticket-7", event_type_prefix="handoff"):
            print(f"  {event.event_type}: {event.summary}")


if __name__ == "__main__":
    asyncio.run(main())
