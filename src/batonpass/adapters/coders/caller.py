"""Who called a hook. Copilot CLI and Cursor run the hooks that were written for Claude Code.

The payload decides. The environment of the hook only confirms it, because every program that an agent starts inherits
it, and that may be another agent. An event that could be of either agent belongs to the agent whose hook it is.
"""

from collections.abc import Mapping
from typing import Any, Final

from batonpass.adapters.tool_kinds import Coder

# Parts of the path of a session file, which every agent keeps in a directory of its own.
_PLACES: Final[tuple[tuple[str, Coder], ...]] = (
    ("/.claude/", Coder.CLAUDE_CODE),
    ("/session-state/", Coder.COPILOT),
    ("/.copilot/", Coder.COPILOT),
    ("/.codex/", Coder.CODEX),
    ("/.qwen/", Coder.QWEN),
    ("/.gemini/", Coder.GEMINI),
    ("/.factory/", Coder.DROID),
)
_ABOUT_CALLS: Final = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})


def find_caller(raw: Mapping[str, Any], hook_of: Coder, marks: frozenset[str] = frozenset()) -> Coder:
    """Return the agent whose event this is, for an event that came to a hook of `hook_of`.

    `marks` are the names of agents' variables in the environment of the hook.
    """
    if hook_of is not Coder.CLAUDE_CODE:
        return hook_of  # nobody else reads the settings of the others
    if "cursor_version" in raw or ("conversation_id" in raw and "generation_id" in raw):
        return Coder.CURSOR
    if "tool_use_id" in raw and "turn_id" not in raw and "tool_call_id" not in raw:
        return hook_of  # Copilot CLI gives calls no ids
    if "turn_id" in raw and "model" in raw:
        return Coder.CODEX
    if "tool_call_id" in raw:
        return Coder.QWEN
    return _by_place(raw) or (_is_worded_by_copilot(raw, marks) and Coder.COPILOT) or hook_of


def _by_place(raw: Mapping[str, Any]) -> Coder | None:
    told = raw.get("transcript_path") or raw.get("transcriptPath")
    if not isinstance(told, str):
        return None
    return next((coder for part, coder in _PLACES if part in told), None)


def _is_worded_by_copilot(raw: Mapping[str, Any], marks: frozenset[str]) -> bool:
    if "transcript_path" in raw:
        return False  # of another agent; Copilot CLI names its own place
    if "sessionId" in raw or "parent_agent_id" in raw or "tool_result" in raw:
        return True
    if raw.get("hook_event_name") in _ABOUT_CALLS:
        return "tool_use_id" not in raw and ("timestamp" in raw or "COPILOT_CLI" in marks)
    # Claude Code names a transcript in every event. That and a time of its own are Copilot CLI's.
    return "timestamp" in raw
