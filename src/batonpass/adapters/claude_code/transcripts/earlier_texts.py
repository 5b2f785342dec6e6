"""Remembers the texts that a run read and wrote, so that its later changes to them can be placed."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from batonpass.adapters.claude_code.transcripts.patches import patch_of_input
from batonpass.adapters.session_files.moved_files import Moved, find_moved
from batonpass.adapters.session_files.patches import hunks_between
from batonpass.adapters.session_files.session_values import FilePatch, ToolResult, ToolUse
from batonpass.adapters.tool_kinds import EDITORS

# The program's line numbers; older versions wrote an arrow.
_NUMBERED: Final = re.compile(r" *(\d+)(?:\t|→)(.*)")
_CREATED: Final = "File created successfully"

# Said of a file that nobody else changed since the run read it. The program edits other files too, without this note.
_CURRENT: Final = "file state is current in your context"

# Beyond these the program shows only part of a file or line, without a reliable notice.
_MOST_LINES: Final = 2000
_LONGEST_LINE: Final = 2000

_SHELL: Final = "Bash"


class Recall:
    """The files as one run last read or wrote them, as long as the program says that they are unchanged."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._texts: dict[str, str] = {}

    def take(self, use: ToolUse, result: ToolResult, told: FilePatch | None) -> tuple[FilePatch, ...]:
        """Learn from a call, its result and the change that it tells; return the changes of files that are known."""
        patch = self._edited(use, result, told)
        if patch is not None:
            return (replace(patch, written=use.tool == "Write"),)
        command = use.input.get("command")
        if use.tool != _SHELL or not result.ok or not isinstance(command, str):
            return ()
        return tuple(self._moved(find_moved(command, use.cwd, self._project)))

    def _edited(self, use: ToolUse, result: ToolResult, told: FilePatch | None) -> FilePatch | None:
        path = use.input.get("file_path")
        if not result.ok or not isinstance(path, str):
            return None
        if use.tool == "Read":
            text = None if {"offset", "limit", "pages"} & use.input.keys() else read_numbered(result.text)
            self._keep(path, text)
            return None
        if use.tool not in EDITORS:
            return None
        created = result.text.startswith(_CREATED)
        before = self._texts.get(path) if _CURRENT in result.text else None
        patch = told or patch_of_input(use.tool, use.input, before, created=created)
        self._keep(path, None if patch is None else patch.after)
        return patch

    def _moved(self, moves: Iterable[Moved]) -> Iterator[FilePatch]:
        """Yield the changes of a command that moved files, or copied files whose text its run knows."""
        for moved in moves:
            text = self._follow(moved)
            if not moved.copied:
                yield FilePatch(path=moved.path, renamed_from=moved.source)
            elif text is not None:
                yield FilePatch(path=moved.path, created=True, after=text, hunks=hunks_between("", text), written=True)

    def _follow(self, moved: Moved) -> str | None:
        """Learn that a file was moved or copied; return its text if it is known."""
        text = self._texts.get(moved.source) if moved.copied else self._texts.pop(moved.source, None)
        self._keep(moved.path, text)
        return text

    def _keep(self, path: str, text: str | None) -> None:
        if text is None:
            self._texts.pop(path, None)
        else:
            self._texts[path] = text


def read_numbered(shown: str) -> str | None:
    """Return the text that was shown with numbered lines; None unless it certainly is the whole file."""
    lines: list[str] = []
    rest = shown.split("\n")
    for line in rest:
        found = _NUMBERED.fullmatch(line)
        if found is None or int(found[1]) != len(lines) + 1:
            break
        lines.append(found[2])
    after = "\n".join(rest[len(lines) :]).strip()
    if not lines or (after and not after.startswith("<system-reminder>")):
        return None
    if len(lines) >= _MOST_LINES or any(len(line) >= _LONGEST_LINE for line in lines):
        return None
    return "\n".join(lines)
