"""A program that runs one native agent under a key, and dies or waits in the middle if it is told to.

Arguments: the ledger, what to do (`finish`, `die`, `slow`, `next`), the key, the session, and the shape: the agent
`alone`, below a `lead` that hands to it, or the second of a `crew`. Every model request and
every call that is really made is a line in the file `log` beside the ledger.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from batonpass import Relay, tool
from batonpass.agents import (
    AgentDefinition,
    AgentRegistry,
    AgentRunner,
    Crew,
    HandoffExecutor,
    ScriptedClient,
    ToolExecutor,
    ToolRegistry,
    create_handoff_tool,
)

LEDGER, WHAT, KEY, SESSION, SHAPE = sys.argv[1:6]
LOG = Path(LEDGER).with_name("log")


def log(words: str) -> None:
    """Write a line that a kill cannot take back."""
    with LOG.open("a") as file:
        file.write(f"{words}\n")


@tool("send")
def send(to: str) -> str:
    """Send a mail."""
    log(f"sent to {to}")
    return f"sent to {to}"


@tool("look", reads=True)
def look() -> str:
    """Look something up; this is where the process dies."""
    if WHAT == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if WHAT == "slow":
        log("looking")
        time.sleep(1.5)
    return "seen"


def script(turn: Any) -> Any:  # noqa: ANN401 - a turn
    """Decide, send a mail, look, and answer."""
    log(f"asked after {len(turn.returned)} results; knows {'round half-even' in turn.known}")
    noted = {"note_down": {"decisions": [{"what": "round half-even", "why": "tax office"}]}}
    steps = [*([noted] if "note_down" in turn.tools else []), {"send": {"to": "ana"}}, {"look": {}}]
    if turn.prompt == "And now?":
        return "told"
    return steps[len(turn.returned)] if len(turn.returned) < len(steps) else "done: " + turn.returned[-1][1]


def lead(turn: Any) -> Any:  # noqa: ANN401 - a turn
    """Hand the task to support, and tell what came back."""
    log("the lead is asked")
    return turn.returned[0][1] if turn.returned else {"handoff_to_support": {"task": "Tell ana"}}


def first(_: Any) -> str:  # noqa: ANN401 - a turn
    """Deliver at once."""
    log("the first is asked")
    return "researched"


async def main() -> dict[str, Any]:
    """Run the agent, its lead or its crew once."""
    words = "And now?" if WHAT == "next" else "Tell ana"
    asked: dict[str, Any] = {"by": "user:ana", "key": KEY or None, "session_id": SESSION or None}
    with Relay.open(LEDGER) as relay:
        registry = AgentRegistry()
        runner = AgentRunner(ScriptedClient(script), ToolExecutor(ToolRegistry([send, look])), relay=relay)
        support = AgentDefinition(name="support", model="any")
        registry.register("support", runner, support)
        registry.register(
            "first", AgentRunner(ScriptedClient(first), relay=relay), AgentDefinition(name="first", model="any")
        )
        if SHAPE == "crew":
            done = await Crew.pipeline(["first", "support"], registry=registry, relay=relay).run(words, **asked)
            return {"output": done.output, "run": done.run, "reused": False}
        if SHAPE == "lead":
            tools = ToolRegistry()
            tools.register_tool_definition(create_handoff_tool("support", "It tells.", HandoffExecutor(registry)))
            runner = AgentRunner(ScriptedClient(lead), ToolExecutor(tools), relay=relay)
            support = AgentDefinition(name="lead", model="any")
        result = await runner.run(support, words, **asked)
        return {"output": result.output, "run": result.run, "reused": result.reused}


sys.stdout.write(json.dumps(asyncio.run(main())))
