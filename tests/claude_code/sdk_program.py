"""A program that people write with the Claude Agent SDK, with one line more: it is recorded.

It runs where the SDK is installed; what Batonpass needs besides is found at the end of the path.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any


async def main(given: dict[str, Any]) -> None:
    """Ask for one thing, and wait until it is done."""
    from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, query  # type: ignore[import-not-found]  # noqa: I001, PLC0415 - found there, not here
    from batonpass.adapters.claude_agent_sdk import record_hooks  # noqa: PLC0415 - once the path is known

    with record_hooks(project=given["project"], enforce=given["enforce"], by="user:ana") as hooks:
        options = ClaudeAgentOptions(
            hooks=hooks,
            cwd=given["project"],
            setting_sources=[],
            permission_mode="bypassPermissions" if given["enforce"] else "acceptEdits",
            allowed_tools=["Agent", "Bash", "Edit", "Read", "Task", "Write"],
            agents={"editor": AgentDefinition(description="edits", prompt="You edit.", model="inherit")},
            model="claude-sonnet-4-5",
            env=given["env"],
        )
        async for _ in query(prompt=given["prompt"], options=options):
            pass


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    sys.path += told["path"]
    Path(told["project"]).mkdir(exist_ok=True)
    asyncio.run(main(told))
