"""Files that a shell moved or copied, as its command says it: a transcript keeps nothing else of what a shell did."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.adapters.claude_code.transcripts.transcript_values import ToolResult, ToolUse
from batonpass.attribution.worktree.write_intent import FileAct
from batonpass.handoff.shell.command_intent import shell_intent

_SHELL: Final = "Bash"
_DOUBTS: Final = ("||", "if ", "for ", "while ", "case ")  # then a command that succeeds need not have done all of it


class Moved(Struct, frozen=True):
    """A file that has another name now, or a twin; both paths are absolute."""

    source: str
    path: str
    copied: bool


def find_moved(use: ToolUse, result: ToolResult, project: Path) -> Iterator[Moved]:
    """Yield what a command moved or copied by name, within the project, if it did what it was told."""
    command = use.input.get("command")
    if use.tool != _SHELL or not result.ok or not isinstance(command, str) or any(one in command for one in _DOUBTS):
        return
    root = project.resolve()
    told = shell_intent(command, use.cwd or root, root)
    for write in told.writes:
        if write.act not in {FileAct.MOVES, FileAct.COPIES} or write.source is None or os.path.isabs(write.source):  # noqa: PTH117 - a text
            continue
        # Of a directory nothing says what was in it, and a pattern names many.
        if not (root / write.path).is_dir() and not set("*?[").intersection(write.path + write.source):
            yield Moved(str(root / write.source), str(root / write.path), write.act is FileAct.COPIES)
