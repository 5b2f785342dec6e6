"""Reads the change of a file from the result of a call, and derives the text after it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from batonpass.adapters.session_files.patches import apply_edits, apply_hunks, hunks_between, unplaced_hunk
from batonpass.adapters.session_files.session_values import FilePatch, PatchHunk
from batonpass.adapters.tool_kinds import EDITORS

_NO_NEWLINE: Final = "\\"  # diff's "\ No newline at end of file"


def read_patch(tool: str, result: object) -> FilePatch | None:
    """Return the change of a file that a result reports; None if it reports none in a known form."""
    if tool not in EDITORS or not isinstance(result, dict):
        return None
    path = result.get("filePath") or result.get("notebook_path")
    if not isinstance(path, str) or not path.strip():
        return None
    before = _text(result.get("originalFile"))
    hunks = _read_hunks(result.get("structuredPatch"))
    created = result.get("type") == "create" or (before == "" and tool != "Write")
    after = _text(result.get("content")) if tool == "Write" else _text(result.get("updated_file"))
    if after is None and before is not None and hunks is not None:
        after = apply_hunks(before, hunks)
    if created and after is not None and not hunks:
        hunks = hunks_between("", after)
    if hunks is None and after is None:
        return None
    return FilePatch(path=path, created=created, before=before, after=after, hunks=hunks or ())


def patch_of_input(tool: str, arguments: Mapping[str, Any], before: str | None, *, created: bool) -> FilePatch | None:
    """Return the change that a successful call must have made, from its arguments and the text before.

    Sub-agents' transcripts contain only the words of results. Without the text before, the position is unknown.
    """
    path = arguments.get("file_path")
    if tool not in EDITORS or not isinstance(path, str) or not path.strip():
        return None
    if tool == "Write":
        after = _text(arguments.get("content"))
        known = "" if created else before
        hunks = None if after is None or known is None else hunks_between(known, after)
    else:
        edits = _read_edits(arguments.get("edits") if tool == "MultiEdit" else [arguments])
        if not edits:
            return None
        after = None if before is None else apply_edits(before, edits)
        hunks = None if before is None or after is None else hunks_between(before, after)
        before = None if after is None else before
        if hunks is None:
            hunks = tuple(unplaced_hunk(old, new) for old, new, _ in edits)
    if hunks is None and after is None:
        return None
    return FilePatch(path=path, created=created, before=before, after=after, hunks=hunks or ())


def _read_hunks(found: object) -> tuple[PatchHunk, ...] | None:
    if not isinstance(found, list):
        return None
    hunks = []
    for part in found:
        if not isinstance(part, dict):
            return None
        lines = part.get("lines")
        starts = (part.get("oldStart"), part.get("newStart"))
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            return None
        if not all(isinstance(start, int) and not isinstance(start, bool) and start >= 0 for start in starts):
            return None
        hunks.append(
            PatchHunk(
                old_start=_start(part["oldStart"], lines, "+"),
                new_start=_start(part["newStart"], lines, "-"),
                lines=tuple(lines),
            ),
        )
    return tuple(hunks)


def _start(told: int, lines: Sequence[str], other: str) -> int:
    """Return the start of one side of a hunk; for a side without lines the program gives the line after it."""
    empty = all(line.startswith((other, _NO_NEWLINE)) for line in lines)
    return max(told - 1, 0) if empty else told


def _read_edits(found: object) -> list[tuple[str, str, bool]]:
    """Return edits as (old, new, everywhere); nothing if one cannot be read."""
    edits = []
    for edit in found if isinstance(found, list) else []:
        match edit:
            case {"old_string": str(old), "new_string": str(new)}:
                edits.append((old, new, edit.get("replace_all") is True))
            case _:
                return []
    return edits


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
