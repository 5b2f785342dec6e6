"""The events of coding agents as values. Their texts are data, never trusted."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeGuard

from msgspec import Struct, field

from batonpass.adapters.claude_code.transcripts.transcript_reader import WRITTEN_BY_PROGRAM, notice_of
from batonpass.adapters.tool_kinds import Coder, ToolForm, ToolKind, find_form
from batonpass.errors import InvalidValueError
from batonpass.handoff.tools.json_values import readable

# The events that are recorded, by the names that Claude Code gave them and most others took over. Any other is ignored.
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
_PATCHED: Final = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
# The output of a program follows one of these, and may contain anything.
_PRINTED: Final = re.compile(r"<(?:stdout|stderr|output|result)>")


class HookEvent(Struct, frozen=True, kw_only=True):
    """One event of a session, whichever agent it comes from."""

    name: str
    session: str  # of the main conversation, also in events of its sub-agents
    coder: Coder = Coder.CLAUDE_CODE
    agent: str | None = None  # the sub-agent; None in the main conversation
    agent_type: str | None = None
    parent: str | None = None  # the sub-agent that started it, if the event says so; None: the main conversation
    link: str | None = None  # how the parent is known: `parent` (the event says it) or `file`; None: it is not
    tool: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    call: str = ""  # the id of the call, for events about calls; "" if the agent gives none
    inferred: bool = False  # the id of the call was made up by us: the agent gives none
    among: int = 0  # number of sub-agents, any of which may have made the call; 0: it is known who did
    response: object = None
    error: str = ""
    interrupted: bool = False
    prompt: str = ""
    prompt_id: str | None = None
    said: str | None = None  # the last words of a conversation that stops
    reason: str | None = None
    model: str | None = None  # the one that makes the call, if the event says so
    transcript: Path | None = None
    directory: Path | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)  # as it came

    @property
    def form(self) -> ToolForm | None:
        """Return the known form of the tool; None for one that may do anything."""
        return find_form(self.coder, self.tool)

    @property
    def kind(self) -> ToolKind | None:
        """Return the kind of the tool; None if it is unknown."""
        form = self.form
        return None if form is None else form.kind

    @property
    def reads(self) -> bool:
        """Return whether the tool changes nothing."""
        form = self.form
        return form is not None and form.is_reading

    @property
    def command(self) -> str | None:
        """Return the command of a shell; None for any other call."""
        form = self.form
        given = None if form is None or form.command is None else self.input.get(form.command)
        if isinstance(given, list) and all(isinstance(one, str) for one in given):
            return "\n".join(given)
        return given if isinstance(given, str) else None

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the files that an editing call names; nothing for any other call."""
        form = self.form
        if form is None or form.kind is not ToolKind.WRITER:
            return ()
        if form.patch is not None:
            return _paths_in_patch(self.input.get(form.patch))
        path = None if form.file is None else self.input.get(form.file)
        return (path,) if isinstance(path, str) and path.strip() else ()

    @property
    def path(self) -> str | None:
        """Return the only file that an editing call names; None for any other call."""
        paths = self.paths
        return paths[0] if len(paths) == 1 else None

    @property
    def delegates(self) -> bool:
        """Return whether the call starts a sub-agent."""
        return self.kind is ToolKind.DELEGATE

    @property
    def by_human(self) -> bool:
        """Return whether a human wrote the prompt: notices of the program and tasks of sub-agents are prompts too."""
        return self.agent is None and bool(self.prompt.strip()) and not self.prompt.startswith(WRITTEN_BY_PROGRAM)

    @property
    def ended_call(self) -> str | None:
        """Return the call whose background work is over, if the prompt is a notice about that."""
        return notice_of(self.prompt).get("tool-use-id") if self.prompt.startswith("<task-notification>") else None

    @property
    def stays_behind(self) -> bool:
        """Return whether a command was asked to go on in the background."""
        given = self.input
        return self.kind is ToolKind.SHELL and (
            given.get("is_background") is True or given.get("fireAndForget") is True or given.get("mode") == "async"
        )


def task_of(response: object) -> str | None:
    """Return Claude Code's id of the background task that a call left running; None if there is none."""
    task = response.get("backgroundTaskId") if isinstance(response, dict) else None
    return task if isinstance(task, str) else None


def task_listened_to(event: HookEvent) -> str | None:
    """Return the background task whose output a call reads, or that it ends; None for any other call."""
    if event.kind not in {ToolKind.LISTENER, ToolKind.ENDER}:
        return None
    return next((given for name in _TASK_NAMES if isinstance(given := event.input.get(name), str) and given), None)


def find_ended_task(event: HookEvent) -> str | None:
    """Return the background task that is over according to the result of a call; None if there is none."""
    task = task_listened_to(event) if event.name == "PostToolUse" else None
    ended = event.kind is ToolKind.ENDER or _status_in(event.response) in _OVER
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


def is_agent_id(value: object) -> TypeGuard[str]:
    """Return whether a value can be the id of a sub-agent."""
    return isinstance(value, str) and _AGENT.fullmatch(value) is not None


def id_in(raw: Mapping[str, Any], name: str) -> str:
    """Return an id. Raises `InvalidValueError` if there is none, or if it is too long."""
    value = text_in(raw, name)
    if value is None or not 0 < len(value) <= _LONGEST_ID:
        raise InvalidValueError(name, f"must have 1 to {_LONGEST_ID} characters in an event of a coding agent")
    return value


def text_in(raw: Mapping[str, Any], name: str) -> str | None:
    """Return a text; None if there is none."""
    value = raw.get(name)
    return readable(value) if isinstance(value, str) else None


def path_in(raw: Mapping[str, Any], name: str) -> Path | None:
    """Return a path; None if there is none."""
    value = text_in(raw, name)
    return Path(value) if value and "\0" not in value else None


def agent_in(raw: Mapping[str, Any], name: str) -> str | None:
    """Return the id of a sub-agent; None if there is none. Raises `InvalidValueError` if it cannot be one."""
    agent = text_in(raw, name)
    if agent is not None and not is_agent_id(agent):
        raise InvalidValueError(name, "is not an id of a coding agent's sub-agent")
    return agent


def _paths_in_patch(patch: object) -> tuple[str, ...]:
    """Return the files that an `apply_patch` creates, changes, deletes or moves, each once; none for other values."""
    return tuple(dict.fromkeys(_PATCHED.findall(patch))) if isinstance(patch, str) else ()
