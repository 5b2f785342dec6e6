"""Copilot CLI: Claude Code's names and JSON, without ids of calls. A sub-agent has a session of its own.

It runs the hooks of `.claude/settings.json` too, with the same events.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from batonpass.adapters.coders.dialects.dialect import SAME, Dialect, Failure, LinkKind, read_like_claude, say_nothing
from batonpass.adapters.coders.events import EVENTS, HookEvent, agent_in, id_in
from batonpass.adapters.tool_kinds import Coder

# Its tools get the names of Claude Code's in these events, and keep their own arguments.
_OWN_TOOLS: Final[Mapping[str, str]] = {
    "Agent": "task",
    "Bash": "bash",
    "Edit": "edit",
    "Glob": "glob",
    "Grep": "grep",
    "Read": "view",
    "Task": "task",
    "WebFetch": "web_fetch",
    "WebSearch": "web_search",
    "Write": "create",
}
_DONE: Final = "success"


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of Copilot CLI; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    if "session_id" not in raw and "sessionId" in raw:
        return _read_start(raw)
    event = read_like_claude(raw, Coder.COPILOT, names=SAME, call=None, response="tool_result")
    if event is None:
        return None
    parent = agent_in(raw, "parent_agent_id")
    if event.name == "Stop" and parent is not None:
        return None  # the end of a sub-agent follows as an event of its own, with its last words
    event = replace(event, parent=parent, tool=_OWN_TOOLS.get(event.tool, event.tool))
    result = raw.get("tool_result")
    if event.name != "PostToolUse" or not isinstance(result, dict):
        return event
    said = str(result.get("text_result_for_llm", ""))
    if result.get("result_type", _DONE) != _DONE:
        return replace(event, name="PostToolUseFailure", error=said or "it failed", response=None)
    return replace(event, response=said)


def _read_start(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return the start of a sub-agent, which alone is worded in another way, and does not even say its name."""
    agent = agent_in(raw, "agent_id") or agent_in(raw, "agentId")
    parent = agent_in(raw, "parent_agent_id") or agent_in(raw, "parentAgentId")
    if agent is None:
        return None
    kind = raw.get("agent_type") or raw.get("agentType")
    return HookEvent(
        name="SubagentStart",
        coder=Coder.COPILOT,
        session=id_in(raw, "sessionId"),
        agent=agent,
        agent_type=kind if isinstance(kind, str) else None,
        parent=parent,
        raw=raw,
    )


COPILOT = Dialect(
    coder=Coder.COPILOT,
    title="Copilot CLI",
    read=read_event,
    events=EVENTS,
    regret=say_nothing,
    on_crash=Failure.CLOSED,
    has_call_ids=False,
    links=(LinkKind.PARENT, LinkKind.INFERRED),
    cannot=("Copilot CLI gives calls no ids: ours are inferred from tool, arguments and order, and marked so",),
)
