"""The real Claude Code with our MCP server, as the guide sets it up: its model hands off, and all is recorded."""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from batonpass.model.base.lifecycle import State
from batonpass.relay import Relay
from tests.claude_code.api import Block, ScriptedApi, says, uses
from tests.claude_code.cli import ClaudeCode

pytestmark = pytest.mark.slow

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "mcp-server.md").read_text(encoding="utf-8")
PROMPT = "Have the rounding fixed"


def tool(call: str, name: str, **arguments: object) -> list[Block]:
    """Return a call of one of our tools, as Claude Code names it."""
    return [uses(call, f"mcp__batonpass__{name}", **arguments)]


STORY = {
    PROMPT: [
        tool("a", "start", intent=PROMPT),
        tool("b", "hand_off", run="$RUN1", to="editor", task="Round half-even", may=["write:src/**"], hold=True),
        tool("c", "accept", run="$RUN1", handoff="$HANDOFF"),
        tool("d", "hand_off", run="$RUN1", to="tester", task="Test the rounding"),
        tool("e", "search", pattern="Round half-even"),
        tool("f", "report", run="$RUN1", result="handed off"),
        tool("g", "close", run="$RUN1"),
        [says("Done.")],
    ]
}


class CopyingApi(ScriptedApi):
    """A scripted model that copies what tools returned, as a model does: the run, and the id of the handoff."""

    def answer(self, body: Mapping[str, Any]) -> tuple[str, list[Block]]:
        """Return the next message, with what is to be copied filled in."""
        number, blocks = super().answer(body)
        results = [
            block
            for message in body.get("messages", [])
            if isinstance(message["content"], list)
            for block in message["content"]
            if block.get("type") == "tool_result"
        ]
        told = json.dumps(results)
        text = json.dumps(blocks)
        for name, pattern in (("$RUN1", r"run_\w{26}\.[\w-]{16}"), ("$HANDOFF", r"handoff_\w{26}")):
            if found := re.search(pattern, told):
                text = text.replace(name, found[0])
        filled: list[Block] = json.loads(text)
        return number, filled


def test_its_model_hands_off_and_what_is_held_waits_for_a_person(tmp_path: Path) -> None:
    """With the settings of the guide. Nobody can be asked here, so the model is told how a person approves."""
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    settings = json.loads(re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)[0])
    settings["mcpServers"]["batonpass"]["env"] = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    }
    (project / ".mcp.json").write_text(json.dumps(settings))
    with CopyingApi(STORY) as api:
        claude = ClaudeCode(home=home, project=project, api=api)
        claude.say(PROMPT, "--mcp-config=.mcp.json", "--strict-mcp-config", "--allowedTools=mcp__batonpass")
        told = json.dumps([one.body for one in api.asked][-1])
    with Relay.open(project / ".batonpass" / "ledger.db") as relay, relay.store.view() as view:
        handoffs = {one.to: one.state for one in view.find_handoffs()}
        (root,) = [one for one in view.find_runs() if one.parent is None]

    assert {"editor": State.HELD, "tester": State.CANCELLED} == handoffs
    assert ("user:ana", "completed") == (root.principal, root.state)
    assert ("Held, and not begun" in told, "batonpass handoff approve" in told) == (True, True)
