"""A program that runs one native agent under a key, and dies or waits in the middle if it is told to.

Arguments: the ledger, what to do (`finish`, `die`, `slow`, `next`), the key, and the session. Every model request and
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
from batonpass.agents import AgentDefinition, AgentRunner, ScriptedClient, ToolExecutor, ToolRegistry

LEDGER, WHAT, KEY, SESSION = sys.argv[1:5]
LOG = Path(LEDGER).with_name("log")


def log(words: str) -> None:
    """Write a line that a kill cannot take back."""
    with LOG.open("a") as file:
        file.write(f"{words}\n")


@tool("send", reversible=False)
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
    steps = [
        {"note_down": {"decisions": [{"what": "round half-even", "why": "tax office"}]}},
        {"send": {"to": "ana"}},
        {"look": {}},
    ]
    if turn.prompt == "And now?":
        return "told"
    return steps[len(turn.returned)] if len(turn.returned) < len(steps) else "done: " + turn.returned[-1][1]


async def main() -> dict[str, Any]:
    """Run the agent once."""
    with Relay.open(LEDGER) as relay:
        runner = AgentRunner(ScriptedClient(script), ToolExecutor(ToolRegistry([send, look])), relay=relay)
        agent = AgentDefinition(name="support", model="any")
        words = "And now?" if WHAT == "next" else "Tell ana"
        result = await runner.run(agent, words, by="user:ana", key=KEY or None, session_id=SESSION or None)
        return {"output": result.output, "run": result.run, "reused": result.reused}


sys.stdout.write(json.dumps(asyncio.run(main())))
