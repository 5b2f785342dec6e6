"""Claude Code's own tools: one table, on which reading, recording, rules and grants depend."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ToolKind(StrEnum):
    """What a tool does."""

    SHELL = "shell"  # runs a command
    WRITER = "writer"  # edits one file
    READER = "reader"  # reads one file
    SEARCHER = "searcher"  # searches for files, or in them
    DELEGATE = "delegate"  # starts a sub-agent
    LISTENER = "listener"  # returns the output of a background task so far
    ENDER = "ender"  # ends a background task


KINDS: Final[Mapping[str, ToolKind]] = {
    **dict.fromkeys(("Bash", "Monitor", "PowerShell"), ToolKind.SHELL),
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit", "Write"), ToolKind.WRITER),
    **dict.fromkeys(("NotebookRead", "Read"), ToolKind.READER),
    **dict.fromkeys(("Glob", "Grep", "LS"), ToolKind.SEARCHER),
    **dict.fromkeys(("Agent", "Task"), ToolKind.DELEGATE),
    **dict.fromkeys(("AgentOutput", "BashOutput", "TaskOutput"), ToolKind.LISTENER),
    **dict.fromkeys(("KillBash", "KillShell", "TaskStop"), ToolKind.ENDER),
}
# A rule about this tool applies to every tool of its kind: a rule about Edit is about every tool that edits files.
_LEADING: Final[Mapping[ToolKind, str]] = {ToolKind.SHELL: "Bash", ToolKind.WRITER: "Edit"}


def tools_of(*kinds: ToolKind) -> frozenset[str]:
    """Return the tools of some kinds."""
    return frozenset(name for name, kind in KINDS.items() if kind in kinds)


SHELLS: Final = tools_of(ToolKind.SHELL)
DELEGATES: Final = tools_of(ToolKind.DELEGATE)
FILES: Final = tools_of(ToolKind.WRITER, ToolKind.READER) | {"Glob", "Grep"}
# Only the results of these report a change of a file; any other tool could return the same fields.
EDITORS: Final = tools_of(ToolKind.WRITER) | {"Update"}
_WEB: Final = frozenset({"WebFetch", "WebSearch"})
# These change nothing that outlives the session. A shell may do anything.
_HARMLESS: Final = (
    tools_of(ToolKind.READER, ToolKind.SEARCHER, ToolKind.LISTENER)
    | _WEB
    | {"AskUserQuestion", "ExitPlanMode", "ListAgents", "TodoRead", "TodoWrite", "ToolSearch"}
)
_MCP: Final = "mcp__"


def leading_name(tool: str) -> str | None:
    """Return the other name by which rules include a tool; None if there is none."""
    kind = KINDS.get(tool)
    name = None if kind is None else _LEADING.get(kind)
    return None if name == tool else name


def is_reading(tool: str) -> bool:
    """Return whether a tool changes nothing."""
    return tool in _HARMLESS


def is_external(tool: str) -> bool:
    """Return whether the result of a tool comes from outside: the web, or an MCP server."""
    return tool in _WEB or tool.startswith(_MCP)


def file_argument(tool: str) -> str:
    """Return the only argument that names the file of a tool; a similar argument next to it is a decoy."""
    if tool in {"NotebookEdit", "NotebookRead"}:
        return "notebook_path"
    return "path" if tool in {"Glob", "Grep", "LS"} else "file_path"
