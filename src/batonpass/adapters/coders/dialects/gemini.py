"""Gemini CLI: names of its own, no ids of calls, and sub-agents that look like the main conversation."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind, read_like_claude, say_nothing
from batonpass.adapters.coders.events import HookEvent, text_in
from batonpass.adapters.tool_kinds import Coder

NAMES: Final[Mapping[str, str]] = {
    "SessionStart": "SessionStart",
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "AfterAgent": "Stop",
    "SessionEnd": "SessionEnd",
}


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of Gemini CLI; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    event = read_like_claude(raw, Coder.GEMINI, names=NAMES, call=None)
    if event is None:
        return None
    if event.name == "Stop":
        return replace(event, said=text_in(raw, "prompt_response"), prompt="")
    failed = event.response.get("error") if isinstance(event.response, dict) else None
    if event.name == "PostToolUse" and failed:
        words = failed.get("message") if isinstance(failed, dict) else failed
        return replace(event, name="PostToolUseFailure", error=str(words or "it failed"))
    return event


def deny(sentence: str) -> dict[str, Any]:
    """Return the answer that a call must not be made."""
    return {"decision": "deny", "reason": sentence}


def report(event: HookEvent) -> str:
    """Return the last words of a sub-agent in the result of the call that started it."""
    told = event.response.get("llmContent") if isinstance(event.response, dict) else None
    if isinstance(told, str):
        return told
    parts = told if isinstance(told, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


GEMINI = Dialect(
    coder=Coder.GEMINI,
    title="Gemini CLI",
    read=read_event,
    events=tuple(NAMES),
    deny=deny,
    regret=say_nothing,
    second=1000,
    tells_ends=False,
    has_call_ids=False,
    links=(LinkKind.INFERRED,),
    nested=True,
    report=report,
    cannot=(
        "Gemini CLI gives calls no ids: ours are inferred from tool, arguments and order, and marked so",
        "while several sub-agents work, nobody can tell whose a call is: it is recorded in the main conversation",
    ),
)
