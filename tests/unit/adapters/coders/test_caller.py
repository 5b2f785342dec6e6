"""Who called a hook of Claude Code: the payload decides, and what is unclear is Claude Code's."""

from typing import Any

import pytest

from batonpass.adapters.coders.caller import find_caller
from batonpass.adapters.tool_kinds import Coder

ABOUT_CALL = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {}}


@pytest.mark.parametrize(
    ("raw", "marks", "caller"),
    [
        ({**ABOUT_CALL, "tool_use_id": "toolu_1", "transcript_path": "/x/.claude/a.jsonl"}, (), Coder.CLAUDE_CODE),
        ({**ABOUT_CALL, "tool_use_id": "toolu_1"}, ("COPILOT_CLI",), Coder.CLAUDE_CODE),
        ({**ABOUT_CALL, "timestamp": "2026-11-17T19:56:54Z"}, (), Coder.COPILOT),
        ({**ABOUT_CALL, "timestamp": "2026-11-17T19:56:54Z"}, ("COPILOT_CLI",), Coder.COPILOT),
        (ABOUT_CALL, ("COPILOT_CLI",), Coder.COPILOT),
        (ABOUT_CALL, (), Coder.CLAUDE_CODE),
        ({"sessionId": "s", "agentName": "a", "transcriptPath": "/x/session-state/s/events.jsonl"}, (), Coder.COPILOT),
        ({"hook_event_name": "SessionStart", "session_id": "s"}, ("COPILOT_CLI",), Coder.CLAUDE_CODE),
        ({"hook_event_name": "SessionStart", "session_id": "s", "timestamp": "t"}, (), Coder.COPILOT),
        ({"hook_event_name": "preToolUse", "conversation_id": "c", "generation_id": "g"}, (), Coder.CURSOR),
        ({**ABOUT_CALL, "tool_use_id": "t", "cursor_version": "3.1"}, (), Coder.CURSOR),
        ({**ABOUT_CALL, "tool_use_id": "t", "turn_id": "u", "model": "m"}, (), Coder.CODEX),
        ({**ABOUT_CALL, "tool_use_id": "t", "tool_call_id": "u"}, (), Coder.QWEN),
        ({**ABOUT_CALL, "transcript_path": "/x/.factory/sessions/p/s.jsonl"}, (), Coder.DROID),
    ],
    ids=[
        "Claude Code",
        "Claude Code, started by Copilot CLI, whose variables it inherited",
        "Copilot CLI, which gives calls no id, but a time",
        "the same, confirmed",
        "neither id nor time, but its mark",
        "neither id, time nor mark",
        "the start of Copilot CLI's sub-agent",
        "a mark alone, in an event that could be either's",
        "a time, and no transcript",
        "Cursor, by its ids",
        "Cursor, by its version",
        "Codex, by its turns",
        "Qwen Code, by its second id",
        "droid, by the place of its files",
    ],
)
def test_the_payload_decides(raw: dict[str, Any], marks: tuple[str, ...], caller: Coder) -> None:
    """The environment only confirms; what could be either's is an event of the agent whose hook it is."""
    assert caller is find_caller(raw, Coder.CLAUDE_CODE, frozenset(marks))


def test_nobody_else_runs_the_hooks_of_another_agent() -> None:
    """Only the settings of Claude Code are read by others."""
    assert Coder.GEMINI is find_caller({"sessionId": "s"}, Coder.GEMINI)
