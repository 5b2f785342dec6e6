"""Codex: Claude Code's names and JSON. A sub-agent has its parent's session, and an id."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind, read_like_claude
from batonpass.adapters.coders.events import HookEvent, is_agent_id
from batonpass.adapters.tool_kinds import Coder


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of Codex; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    event = read_like_claude(raw, Coder.CODEX, prompt_id="turn_id")
    # Its name for a sub-agent that nobody gave a type.
    return None if event is None else replace(event, agent_type=_type(event.agent_type))


def _type(told: str | None) -> str | None:
    return None if told == "default" else told


def started_agent(event: HookEvent) -> str | None:
    """Return the sub-agent that `spawn_agent` started; newer models are told only a name."""
    try:
        told = json.loads(event.response) if isinstance(event.response, str) else event.response
    except (ValueError, RecursionError):
        return None
    agent = told.get("agent_id") if isinstance(told, dict) else None
    return agent if is_agent_id(agent) else None


CODEX = Dialect(
    coder=Coder.CODEX,
    title="Codex",
    read=read_event,
    events=(
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "SessionEnd",
    ),
    usual="default",
    links=(LinkKind.ID, LinkKind.FILE, LinkKind.INFERRED),
    started_agent=started_agent,
    cannot=(
        "a command that fails is told as one that returned",
        "a newer model's sub-agent is linked by the order of events, because Codex does not say which call started it",
    ),
)
