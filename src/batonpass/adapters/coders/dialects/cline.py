"""Cline: events with a form of their own. It can only cancel the whole run, so it is only recorded."""

from collections.abc import Mapping
from typing import Any, Final

from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind, say_nothing
from batonpass.adapters.coders.events import HookEvent, agent_in, id_in, text_in
from batonpass.adapters.tool_kinds import Coder

# Its events, by the names that their files have and by those that the JSON has.
FILES: Final = (
    "TaskStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "TaskComplete",
    "SessionShutdown",
)
_NAMES: Final[Mapping[str, str]] = {
    "agent_start": "SessionStart",
    "prompt_submit": "UserPromptSubmit",
    "tool_call": "PreToolUse",
    "tool_result": "PostToolUse",
    "agent_end": "Stop",
    "session_shutdown": "SessionEnd",
}


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of Cline; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    name = _NAMES.get(str(raw.get("hookName")))
    if name is None:
        return None
    parent = agent_in(raw, "parent_agent_id")
    agent = agent_in(raw, "agent_id") if parent is not None else None
    if agent is not None and name in {"Stop", "SessionEnd"}:
        return None  # its last words are in the result of the call that started it
    if agent is not None and name == "SessionStart":
        name = "SubagentStart"
    call = _part(raw, "tool_call") or _part(raw, "tool_result")
    given = call.get("input")
    told = _part(raw, "postToolUse")
    failed = name == "PostToolUse" and told.get("success") is False
    prompt = _part(raw, "userPromptSubmit").get("prompt")
    return HookEvent(
        name="PostToolUseFailure" if failed else name,
        coder=Coder.CLINE,
        session=_session(raw),
        agent=agent,
        parent=parent,
        tool=id_in(call, "name") if call else "",
        input=given if isinstance(given, dict) else {},
        call=id_in(call, "id") if call else "",
        response=call.get("output"),
        error=str(told.get("result") or "it failed") if failed else "",
        prompt=prompt if isinstance(prompt, str) else "",
        said=text_in(_part(raw, "taskComplete"), "result"),
        raw=raw,
    )


def _part(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = raw.get(name)
    return part if isinstance(part, dict) else {}


def report(event: HookEvent) -> str:
    """Return the last words of a sub-agent in the result of the call that started it."""
    told = event.response.get("text") if isinstance(event.response, dict) else None
    return told if isinstance(told, str) else ""


def _session(raw: Mapping[str, Any]) -> str:
    context = _part(raw, "sessionContext")
    return id_in(context, "rootSessionId") if "rootSessionId" in context else id_in(raw, "taskId")


CLINE = Dialect(
    coder=Coder.CLINE,
    title="Cline",
    read=read_event,
    session_key="taskId",
    events=FILES,
    deny=None,
    regret=say_nothing,
    go_on={"cancel": False},
    usual="sub-agent",
    tells_ends=False,
    links=(LinkKind.PARENT, LinkKind.INFERRED),
    report=report,
    cannot=(
        "Cline cannot refuse one call: `cancel` ends the whole run, so it is only recorded",
        "the command line of Cline does not tell what its user said",
    ),
)
