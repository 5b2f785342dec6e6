"""What Claude Code tells a hook, as values. Everything in an event was written by somebody else: data, no more."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeGuard

from msgspec import Struct, field

from batonpass.adapters.claude_code.transcripts.patches import EDITORS
from batonpass.adapters.claude_code.transcripts.transcript import DELEGATES, WRITTEN_BY_PROGRAM, notice_of
from batonpass.errors import InvalidValueError
from batonpass.handoff.tools.json_values import readable

# Those that say something to record. Others may be sent as well, by this version or the next, and are passed over.
EVENTS: Final = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)
ABOUT_CALLS: Final = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})

# It becomes part of a file's name: what could lead elsewhere is no id.
_AGENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_LONGEST_ID: Final = 256


class HookEvent(Struct, frozen=True, kw_only=True):
    """One thing that happened in a session."""

    name: str
    session: str
    agent: str | None = None  # the sub-agent that it happened in; None in the main conversation
    agent_type: str | None = None
    tool: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    call: str = ""  # the id of the call, of events about calls
    response: object = None
    error: str = ""
    interrupted: bool = False
    prompt: str = ""
    prompt_id: str | None = None
    said: str | None = None  # the last words of whoever stops
    reason: str | None = None
    transcript: Path | None = None
    directory: Path | None = None

    @property
    def path(self) -> str | None:
        """Return the file that a call names as the one it edits; None if it names none."""
        if self.tool not in EDITORS:
            return None
        path = self.input.get(file_argument(self.tool))
        return path if isinstance(path, str) and path.strip() else None

    @property
    def delegates(self) -> bool:
        """Return whether it is about a call that starts a sub-agent."""
        return self.tool in DELEGATES

    @property
    def by_human(self) -> bool:
        """Return whether a human said it: notices of the program come by the same way."""
        return bool(self.prompt.strip()) and not self.prompt.startswith(WRITTEN_BY_PROGRAM)

    @property
    def ended_call(self) -> str | None:
        """Return the call whose work in the background is over, if this is the notice that says so."""
        return notice_of(self.prompt).get("tool-use-id") if self.prompt.startswith("<task-notification>") else None


def task_of(response: object) -> str | None:
    """Return how Claude Code names what a call left at work in the background; None if it says nothing of any."""
    task = response.get("backgroundTaskId") if isinstance(response, dict) else None
    return task if isinstance(task, str) else None


def file_argument(tool: str) -> str:
    """Return by which argument a tool takes its file, and by no other: what stands beside it is a decoy."""
    if tool in {"NotebookEdit", "NotebookRead"}:
        return "notebook_path"
    return "path" if tool in {"Glob", "Grep", "LS"} else "file_path"


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return what a hook was told; None if there is nothing in it to record.

    Raises `InvalidValueError` for an event that we know in a shape that we do not.
    """
    name = raw.get("hook_event_name")
    if name not in EVENTS:
        return None
    about_call = name in ABOUT_CALLS
    given = raw.get("tool_input")
    agent = _text(raw, "agent_id")
    if agent is not None and not is_agent_id(agent):
        raise InvalidValueError("agent_id", "is not one of Claude Code's")
    return HookEvent(
        name=str(name),
        session=_id(raw, "session_id"),
        agent=agent,
        agent_type=_text(raw, "agent_type"),
        tool=_id(raw, "tool_name") if about_call else "",
        input=given if isinstance(given, dict) else {},
        call=_id(raw, "tool_use_id") if about_call else "",
        response=raw.get("tool_response"),
        error=_text(raw, "error") or "",
        interrupted=raw.get("is_interrupt") is True,
        prompt=_text(raw, "prompt") or "",
        prompt_id=_text(raw, "prompt_id"),
        said=_text(raw, "last_assistant_message"),
        reason=_text(raw, "reason"),
        transcript=_path(raw, "transcript_path"),
        directory=_path(raw, "cwd"),
    )


def session_of(raw: Mapping[str, Any]) -> str | None:
    """Return the session that an event is of, whatever else is wrong with it; None if it does not say."""
    try:
        return _id(raw, "session_id")
    except InvalidValueError:
        return None


def is_agent_id(value: object) -> TypeGuard[str]:
    """Return whether something can be the id of a sub-agent."""
    return isinstance(value, str) and _AGENT.fullmatch(value) is not None


def _id(raw: Mapping[str, Any], name: str) -> str:
    value = _text(raw, name)
    if value is None or not 0 < len(value) <= _LONGEST_ID:
        raise InvalidValueError(name, f"has 1 to {_LONGEST_ID} characters in an event of Claude Code")
    return value


def _text(raw: Mapping[str, Any], name: str) -> str | None:
    value = raw.get(name)
    return readable(value) if isinstance(value, str) else None


def _path(raw: Mapping[str, Any], name: str) -> Path | None:
    value = _text(raw, name)
    return Path(value) if value and "\0" not in value else None
