"""Files that a command moved or copied by name: of a shell, a session tells nothing but the command."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.attribution.worktree.write_intent import FileAct
from batonpass.handoff.shell.command_intent import shell_intent

_DOUBTS: Final = ("||", "if ", "for ", "while ", "case ")  # such a command may succeed without doing everything


class Moved(Struct, frozen=True):
    """A file that was moved or copied; both paths are absolute."""

    source: str
    path: str
    copied: bool


def find_moved(command: str, cwd: str | None, project: Path) -> Iterator[Moved]:
    """Yield the files that a successful command moved or copied by name within the project."""
    if any(one in command for one in _DOUBTS):
        return
    root = project.resolve()
    for write in shell_intent(command, cwd or root, root).writes:
        if write.act not in {FileAct.MOVES, FileAct.COPIES} or write.source is None or os.path.isabs(write.source):  # noqa: PTH117 - a text
            continue
        # The files in a directory are unknown, and a pattern names several.
        if not (root / write.path).is_dir() and not set("*?[").intersection(write.path + write.source):
            yield Moved(str(root / write.source), str(root / write.path), write.act is FileAct.COPIES)
