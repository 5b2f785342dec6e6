"""The format of Claude Code's hooks: its events as values, and our answers. Event texts are data, never trusted."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeGuard

from msgspec import Struct, field

from batonpass.adapters.claude_code.tool_kinds import DELEGATES, EDITORS, KINDS, ToolKind, file_argument
from batonpass.adapters.claude_code.transcripts.transcript import WRITTEN_BY_PROGRAM, notice_of
from batonpass.errors import InvalidValueError
from batonpass.handoff.tools.json_values import readable

# The events that are recorded. Any other event is ignored.
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

# The id becomes part of a file name, so it must not contain path separators.
_AGENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_LONGEST_ID: Final = 256
_TASK_NAMES: Final = ("task_id", "bash_id", "shell_id", "agent_id", "agentId")
_OVER: Final = frozenset({"cancelled", "completed", "error", "failed", "killed", "stopped"})
_STATUS: Final = re.compile(r"<status>([a-z_]+)</status>")
# The output of a program follows one of these, and may contain anything.
_PRINTED: Final = re.compile(r"<(?:stdout|stderr|output|result)>")


class HookEvent(Struct, frozen=True, kw_only=True):
    """One event of a session."""

    name: str
    session: str
    agent: str | None = None  # the sub-agent; None in the main conversation
    agent_type: str | None = None
    tool: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    call: str = ""  # the id of the call, for events about calls
    response: object = None
    error: str = ""
    interrupted: bool = False
    prompt: str = ""
    prompt_id: str | None = None
    said: str | None = None  # the last words of a conversation that stops
    reason: str | None = None
    transcript: Path | None = None
    directory: Path | None = None

    @property
    def path(self) -> str | None:
        """Return the file that an editing call names; None for any other call."""
        if self.tool not in EDITORS:
            return None
        path = self.input.get(file_argument(self.tool))
        return path if isinstance(path, str) and path.strip() else None

    @property
    def delegates(self) -> bool:
        """Return whether the call starts a sub-agent."""
        return self.tool in DELEGATES

    @property
    def by_human(self) -> bool:
        """Return whether a human wrote the prompt: notices of the program arrive as prompts too."""
        return bool(self.prompt.strip()) and not self.prompt.startswith(WRITTEN_BY_PROGRAM)

    @property
    def ended_call(self) -> str | None:
        """Return the call whose background work is over, if the prompt is a notice about that."""
        return notice_of(self.prompt).get("tool-use-id") if self.prompt.startswith("<task-notification>") else None


def task_of(response: object) -> str | None:
    """Return Claude Code's id of the background task that a call left running; None if there is none."""
    task = response.get("backgroundTaskId") if isinstance(response, dict) else None
    return task if isinstance(task, str) else None


def task_listened_to(event: HookEvent) -> str | None:
    """Return the background task whose output a call reads, or that it ends; None for any other call."""
    if KINDS.get(event.tool) not in {ToolKind.LISTENER, ToolKind.ENDER}:
        return None
    return next((given for name in _TASK_NAMES if isinstance(given := event.input.get(name), str) and given), None)


def find_ended_task(event: HookEvent) -> str | None:
    """Return the background task that is over according to the result of a call; None if there is none."""
    task = task_listened_to(event) if event.name == "PostToolUse" else None
    ended = KINDS.get(event.tool) is ToolKind.ENDER or _status_in(event.response) in _OVER
    return task if ended else None


def _status_in(response: object) -> str | None:
    if isinstance(response, str):
        found = _STATUS.search(_PRINTED.split(response, maxsplit=1)[0])
        return None if found is None else found[1]
    if not isinstance(response, Mapping):
        return None
    task = response.get("task")
    said = response.get("status") or (task.get("status") if isinstance(task, Mapping) else None)
    return said if isinstance(said, str) else None


def denied(sentence: str) -> dict[str, Any]:
    """Return the answer to Claude Code that a call must not be made."""
    return _before_call(permissionDecision="deny", permissionDecisionReason=sentence)


def regretted(sentence: str) -> dict[str, Any]:
    """Return the answer to Claude Code that a call did something it should not have done."""
    return {"decision": "block", "reason": sentence}


def answer_with(prompt: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer that starts a sub-agent with another prompt; nothing if the prompt stays."""
    return {} if prompt is None else _before_call(updatedInput={**given, "prompt": prompt})


def _before_call(**answer: object) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **answer}}


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event as a value; None if it is not recorded.

    Raises `InvalidValueError` for a known event with an unknown form.
    """
    name = raw.get("hook_event_name")
    if name not in EVENTS:
        return None
    about_call = name in ABOUT_CALLS
    given = raw.get("tool_input")
    agent = _text(raw, "agent_id")
    if agent is not None and not is_agent_id(agent):
        raise InvalidValueError("agent_id", "is not an id of Claude Code")
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
    """Return the session of an event, even if the rest is invalid; None if it is missing."""
    try:
        return _id(raw, "session_id")
    except InvalidValueError:
        return None


def is_agent_id(value: object) -> TypeGuard[str]:
    """Return whether a value can be the id of a sub-agent."""
    return isinstance(value, str) and _AGENT.fullmatch(value) is not None


def _id(raw: Mapping[str, Any], name: str) -> str:
    value = _text(raw, name)
    if value is None or not 0 < len(value) <= _LONGEST_ID:
        raise InvalidValueError(name, f"must have 1 to {_LONGEST_ID} characters in an event of Claude Code")
    return value


def _text(raw: Mapping[str, Any], name: str) -> str | None:
    value = raw.get(name)
    return readable(value) if isinstance(value, str) else None


def _path(raw: Mapping[str, Any], name: str) -> Path | None:
    value = _text(raw, name)
    return Path(value) if value and "\0" not in value else None
