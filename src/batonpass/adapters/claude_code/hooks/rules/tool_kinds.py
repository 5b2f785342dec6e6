"""What Claude Code's own tools are: one table, from which rules, grants and what is protected take theirs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ToolKind(StrEnum):
    """What a tool does with what it is given."""

    SHELL = "shell"  # it runs a command
    WRITER = "writer"  # it edits one file
    READER = "reader"  # it reads one file
    SEARCHER = "searcher"  # it looks for files, or in them
    DELEGATE = "delegate"  # it starts a sub-agent
    LISTENER = "listener"  # it tells what something in the background has said so far
    ENDER = "ender"  # it ends something in the background


KINDS: Final[Mapping[str, ToolKind]] = {
    "Bash": ToolKind.SHELL,
    "Monitor": ToolKind.SHELL,
    "PowerShell": ToolKind.SHELL,
    "Edit": ToolKind.WRITER,
    "MultiEdit": ToolKind.WRITER,
    "NotebookEdit": ToolKind.WRITER,
    "Write": ToolKind.WRITER,
    "NotebookRead": ToolKind.READER,
    "Read": ToolKind.READER,
    "Glob": ToolKind.SEARCHER,
    "Grep": ToolKind.SEARCHER,
    "LS": ToolKind.SEARCHER,
    "Agent": ToolKind.DELEGATE,
    "Task": ToolKind.DELEGATE,
    "AgentOutput": ToolKind.LISTENER,
    "BashOutput": ToolKind.LISTENER,
    "TaskOutput": ToolKind.LISTENER,
    "KillBash": ToolKind.ENDER,
    "KillShell": ToolKind.ENDER,
    "TaskStop": ToolKind.ENDER,
}
# By this name rules mean every tool of its kind, as a rule about Edit is about every tool that edits files.
LEADING: Final[Mapping[ToolKind, str]] = {ToolKind.SHELL: "Bash", ToolKind.WRITER: "Edit"}


def tools_of(*kinds: ToolKind) -> frozenset[str]:
    """Return the tools of some kinds."""
    return frozenset(name for name, kind in KINDS.items() if kind in kinds)


def leading_name(tool: str) -> str | None:
    """Return by which other name rules mean a tool; None if by none."""
    kind = KINDS.get(tool)
    name = None if kind is None else LEADING.get(kind)
    return None if name == tool else name
