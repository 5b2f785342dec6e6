"""What a session hears of what is at work in the background: that it is over, and what a sub-agent says meanwhile."""

import re
from collections.abc import Mapping
from typing import Final

from batonpass.adapters.claude_code.hooks.events import HookEvent
from batonpass.adapters.claude_code.hooks.rules.tool_kinds import KINDS, ToolKind

_NAMES: Final = ("task_id", "bash_id", "shell_id", "agent_id", "agentId")
_OVER: Final = frozenset({"cancelled", "completed", "error", "failed", "killed", "stopped"})
_STATUS: Final = re.compile(r"<status>([a-z_]+)</status>")
# What a program printed comes after one of these, and can say anything.
_PRINTED: Final = re.compile(r"<(?:stdout|stderr|output|result)>")


def task_listened_to(event: HookEvent) -> str | None:
    """Return which task a call asks about or ends; None if it is no such call."""
    if KINDS.get(event.tool) not in {ToolKind.LISTENER, ToolKind.ENDER}:
        return None
    return next((given for name in _NAMES if isinstance(given := event.input.get(name), str) and given), None)


def find_ended_task(event: HookEvent) -> str | None:
    """Return the task of which the result of a call says that it is over; None if it does not."""
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
