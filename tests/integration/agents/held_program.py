"""A program that runs one native agent whose payment waits for a person.

Arguments: the ledger, the key, and the shape: the agent `alone`, below a `lead` that hands to it, or handed to a
`worker` that carries it once. Every model request and every call that is really made is a line in the file `log` beside
the ledger.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from batonpass import Relay, tool
from batonpass.agents import (
    AgentDefinition,
    AgentRegistry,
    AgentRunner,
    HandoffExecutor,
    ScriptedClient,
    ToolExecutor,
    ToolRegistry,
    create_handoff_tool,
)
from batonpass.dispatch.worker import Worker
from batonpass.model.policy.policy_rules import Policy

LEDGER, KEY, SHAPE = sys.argv[1:4]
LOG = Path(LEDGER).with_name("log")


def log(words: str) -> None:
    """Write a line."""
    with LOG.open("a") as file:
        file.write(f"{words}\n")


@tool("look", reads=True)
def look() -> str:
    """Look up the sum."""
    log("looked")
    return "19.00"


@tool("pay", reversible=False)
def pay(to: str) -> str:
    """Pay somebody."""
    log(f"paid {to}")
    return f"paid {to}"


def clerk(turn: Any) -> Any:  # noqa: ANN401 - a turn
    """Look, pay, and claim that it is done, whatever came of it."""
    log("asked")
    if "Decided since then" in f"{turn.known}\n{turn.prompt}":
        return turn.returned[-1][1] if turn.returned else {"pay": {"to": "bob"}}
    steps: list[Any] = [{"look": {}}, {"pay": {"to": "bob"}}]
    return steps[len(turn.returned)] if len(turn.returned) < len(steps) else "all done"


def lead(turn: Any) -> Any:  # noqa: ANN401 - a turn
    """Hand the payment over, and tell what came of it."""
    if "Decided since then" in turn.prompt:
        return turn.prompt
    return "all done" if turn.returned else {"handoff_to_clerk": {"task": "Pay bob"}}


def carried(relay: Relay, registry: AgentRegistry) -> dict[str, Any]:
    """Hand the payment to whoever works, let one worker do what there is, and return the state."""
    registry.serve(relay)
    root = relay.start("Pay bob", by="user:ana", agent="lead", key=KEY)
    handoff = root.hand_off("clerk", "Pay bob", carrier="worker")
    Worker(relay).work_one()
    result = handoff.result()
    held = [] if result.blocked_by is None else [result.blocked_by]
    return {"state": result.state, "output": str(result.value), "held": held, "attempt": result.attempt}


async def main(registry: AgentRegistry) -> dict[str, Any]:
    """Run the agent or its lead once."""
    agent = registry.get("lead" if SHAPE == "lead" else "clerk")
    result = await agent.runner.run(agent.definition, "Pay bob", by="user:ana", key=KEY)
    return {"state": result.state, "output": result.output, "held": [one.id for one in result.held], "run": result.run}


with Relay.open(LEDGER, policy=Policy(enforce=True, proven=False)) as opened:
    agents = AgentRegistry()
    executor = ToolExecutor(ToolRegistry([look, pay]))
    runner = AgentRunner(ScriptedClient(clerk), executor, relay=opened)
    agents.register("clerk", runner, AgentDefinition(name="clerk", model="any"))
    tools = ToolRegistry()
    tools.register_tool_definition(create_handoff_tool("clerk", "It pays.", HandoffExecutor(agents)))
    runner = AgentRunner(ScriptedClient(lead), ToolExecutor(tools), relay=opened)
    agents.register("lead", runner, AgentDefinition(name="lead", model="any"))
    told = carried(opened, agents) if SHAPE == "worker" else asyncio.run(main(agents))
    sys.stdout.write(json.dumps(told))
