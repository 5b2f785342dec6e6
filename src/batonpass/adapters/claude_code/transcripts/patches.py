"""Reads the change of a file from the result of a call, and derives the text after it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from batonpass.adapters.claude_code.tool_kinds import EDITORS
from batonpass.adapters.claude_code.transcripts.transcript_values import FilePatch, PatchHunk
from batonpass.attribution.changes import line_diff

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
        after = None if before is None else _edited(before, edits)
        hunks = None if before is None or after is None else hunks_between(before, after)
        before = None if after is None else before
        if hunks is None:
            hunks = tuple(
                PatchHunk(old_start=None, new_start=None, lines=_signed(_lines(old), _lines(new)))
                for old, new, _ in edits
            )
    if hunks is None and after is None:
        return None
    return FilePatch(path=path, created=created, before=before, after=after, hunks=hunks or ())


def hunks_between(before: str, after: str) -> tuple[PatchHunk, ...]:
    """Return the hunks from one text to another."""
    return tuple(
        PatchHunk(old_start=hunk.old_start, new_start=hunk.new_start, lines=_signed(hunk.removed, hunk.added))
        for hunk in line_diff.hunks_between(_lines(before), _lines(after))
    )


def apply_hunks(before: str, hunks: Sequence[PatchHunk]) -> str | None:
    """Return the text after some hunks; None if they do not fit."""
    old = before.split("\n")
    new: list[str] = []
    at = 0
    for hunk in hunks:
        if hunk.old_start is None:
            return None
        # A hunk that only adds gives the line before it.
        removes = any(not line.startswith(("+", _NO_NEWLINE)) for line in hunk.lines)
        start = hunk.old_start - 1 if removes else hunk.old_start
        if not at <= start <= len(old):
            return None
        new += old[at:start]
        at = start
        for line in hunk.lines:
            mark, text = line[:1], line[1:]
            if mark == _NO_NEWLINE:
                continue
            if mark == "+":
                new.append(text)
                continue
            if at >= len(old) or old[at] != text:
                return None
            at += 1
            if mark != "-":
                new.append(text)
    return "\n".join([*new, *old[at:]])


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


def _edited(text: str, edits: Sequence[tuple[str, str, bool]]) -> str | None:
    """Return a text after some edits; None if one does not fit, because they began with another text."""
    for old, new, everywhere in edits:
        if not old and not text:
            text = new
            continue
        count = text.count(old) if old else 0
        if count == 0 or (count > 1 and not everywhere):
            return None
        text = text.replace(old, new)
    return text


def _signed(removed: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    return (*(f"-{line}" for line in removed), *(f"+{line}" for line in added))


def _lines(text: str) -> list[str]:
    """Return the lines of a text, without an empty one after the last newline."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
