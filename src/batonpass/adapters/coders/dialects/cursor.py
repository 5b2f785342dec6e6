"""Cursor, as its documents describe it: not tried against the program.

It runs the hooks of `.claude/settings.json` too, once third-party hooks are switched on.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind, deny_like_claude, say_nothing
from batonpass.adapters.coders.events import ABOUT_CALLS, HookEvent, agent_in, id_in, path_in, text_in
from batonpass.adapters.tool_kinds import Coder
from batonpass.errors import InvalidValueError

NAMES: Final[Mapping[str, str]] = {
    "sessionStart": "SessionStart",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "subagentStart": "SubagentStart",
    "subagentStop": "SubagentStop",
    "stop": "Stop",
    "sessionEnd": "SessionEnd",
}
_ALL_NAMES: Final[Mapping[str, str]] = {**NAMES, **{ours: ours for ours in NAMES.values()}}


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of Cursor; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    name = _ALL_NAMES.get(str(raw.get("hook_event_name")))
    if name is None:
        return None
    about_call = name in ABOUT_CALLS
    given = raw.get("tool_input")
    agent = agent_in(raw, "subagent_id") or agent_in(raw, "agent_id")
    session = text_in(raw, "parent_conversation_id") if agent is not None else None
    return HookEvent(
        name=name,
        coder=Coder.CURSOR,
        session=session or _session(raw),
        agent=agent,
        agent_type=text_in(raw, "subagent_type"),
        parent=session,
        tool=id_in(raw, "tool_name") if about_call else "",
        input=given if isinstance(given, dict) else {},
        call=id_in(raw, "tool_use_id") if about_call else "",
        response=_output(raw.get("tool_output", raw.get("tool_response"))),
        error=text_in(raw, "error_message") or text_in(raw, "error") or "",
        interrupted=raw.get("is_interrupt") is True,
        prompt=text_in(raw, "task") or "" if agent is not None else text_in(raw, "prompt") or "",
        prompt_id=text_in(raw, "generation_id"),
        said=text_in(raw, "summary"),
        reason=text_in(raw, "reason"),
        model=text_in(raw, "model"),
        transcript=path_in(raw, "transcript_path"),
        directory=path_in(raw, "cwd") or _root(raw),
        raw=raw,
    )


def _session(raw: Mapping[str, Any]) -> str:
    try:
        return id_in(raw, "conversation_id")
    except InvalidValueError:
        return id_in(raw, "session_id")


def _root(raw: Mapping[str, Any]) -> Path | None:
    roots = raw.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else None
    return Path(first) if isinstance(first, str) and first and "\0" not in first else None


def _output(told: object) -> object:
    try:
        return json.loads(told) if isinstance(told, str) else told
    except (ValueError, RecursionError):
        return told


def deny(sentence: str) -> dict[str, Any]:
    """Return the answer that a call must not be made; also in the form of the hooks that it takes over."""
    return {
        "permission": "deny",
        "user_message": sentence,
        "agent_message": sentence,
        **deny_like_claude(sentence),
    }


CURSOR = Dialect(
    coder=Coder.CURSOR,
    title="Cursor",
    read=read_event,
    session_key="conversation_id",
    events=tuple(NAMES),
    deny=deny,
    regret=say_nothing,
    links=(LinkKind.PARENT, LinkKind.INFERRED),
    cannot=("Cursor was not tried: the events are as its documents describe them",),
)
