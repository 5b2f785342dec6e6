"""The texts that a run had before it: what it read and wrote, so that what it changed in them can be placed."""

import re
from typing import Final

from batonpass.adapters.claude_code.transcripts.patches import EDITORS, patch_of_input
from batonpass.adapters.claude_code.transcripts.transcript_values import FilePatch, ToolResult, ToolUse

# As the program numbers lines; older versions wrote an arrow.
_NUMBERED: Final = re.compile(r" *(\d+)(?:\t|→)(.*)")
_CREATED: Final = "File created successfully"

# Said of a file that nobody else has changed since the run read it. The program edits others too, and then says less.
_CURRENT: Final = "file state is current in your context"

# Beyond these the program shows a part of a file, or of a line, without saying so in a way that we rely on.
_MOST_LINES: Final = 2000
_LONGEST_LINE: Final = 2000


class Recall:
    """What one run knows of files: what it read or wrote last, as long as the program says that it is still so."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def take(self, use: ToolUse, result: ToolResult) -> FilePatch | None:
        """Learn from a call and its result; return what the call did to a file, if it did anything that we know."""
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
        patch = result.patch or patch_of_input(use.tool, use.input, before, created=created)
        self._keep(path, None if patch is None else patch.after)
        return patch

    def follow(self, source: str, path: str, *, copied: bool) -> str | None:
        """Learn that a file was moved or copied; return its text, if it is known."""
        text = self._texts.get(source) if copied else self._texts.pop(source, None)
        self._keep(path, text)
        return text

    def _keep(self, path: str, text: str | None) -> None:
        if text is None:
            self._texts.pop(path, None)
        else:
            self._texts[path] = text


def read_numbered(shown: str) -> str | None:
    """Return the text that was shown with numbered lines; None unless all of it was certainly shown."""
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
