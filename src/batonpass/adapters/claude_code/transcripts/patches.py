"""Patches: what the result of a call says it did to a file, and the text that follows from it."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from batonpass.adapters.claude_code.transcripts.transcript_values import FilePatch, PatchHunk

# Only the results of these say what was done to a file; any other tool could write the same fields.
EDITORS: Final = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Update", "Write"})

_MOST_COMPARED: Final = 5000
_NO_NEWLINE: Final = "\\"  # "\ No newline at end of file", as diff writes it


def read_patch(tool: str, result: object) -> FilePatch | None:
    """Return what a result says was done to a file; None if it says nothing, or not in a way that we know."""
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
        hunks = (added(after),) if after else ()
    if hunks is None and after is None:
        return None
    return FilePatch(path=path, created=created, before=before, after=after, hunks=hunks or ())


def patch_of_input(tool: str, arguments: Mapping[str, Any], before: str | None, *, created: bool) -> FilePatch | None:
    """Return what a call that succeeded must have done, from what it was asked to do and the text that it began with.

    Sub-agents' transcripts keep no results beyond their words. Without the text before, the place is not known.
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
        hunks = _unplaced(edits) if hunks is None else hunks
    if hunks is None and after is None:
        return None
    return FilePatch(path=path, created=created, before=before, after=after, hunks=hunks or ())


def hunks_between(before: str, after: str) -> tuple[PatchHunk, ...] | None:
    """Return the hunks that lead from one text to another; None if there is too much to compare."""
    old, new = _lines(before), _lines(after)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    changed_old, changed_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(changed_old), len(changed_new)) > _MOST_COMPARED:
        return None
    matcher = SequenceMatcher(a=changed_old, b=changed_new, autojunk=False)
    return tuple(
        PatchHunk(
            old_start=head + i + (j > i),
            new_start=head + k + (m > k),
            lines=(*(f"-{line}" for line in changed_old[i:j]), *(f"+{line}" for line in changed_new[k:m])),
        )
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    )


def added(text: str) -> PatchHunk:
    """Return the hunk that makes a text out of nothing."""
    return PatchHunk(old_start=0, new_start=1, lines=tuple(f"+{line}" for line in _lines(text)))


def apply_hunks(before: str, hunks: Sequence[PatchHunk]) -> str | None:
    """Return the text after some hunks; None if they do not fit it."""
    old = before.split("\n")
    new: list[str] = []
    at = 0
    for hunk in hunks:
        if hunk.old_start is None:
            return None
        # A hunk that only adds names the line before it.
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
    """Return where a side of a hunk begins; of one without lines the program tells the line after it."""
    empty = all(line.startswith((other, _NO_NEWLINE)) for line in lines)
    return max(told - 1, 0) if empty else told


def _read_edits(found: object) -> list[tuple[str, str, bool]]:
    """Return what is to be replaced by what, and whether everywhere; nothing if one of them cannot be read."""
    edits = []
    for edit in found if isinstance(found, list) else []:
        match edit:
            case {"old_string": str(old), "new_string": str(new)}:
                edits.append((old, new, edit.get("replace_all") is True))
            case _:
                return []
    return edits


def _edited(text: str, edits: Sequence[tuple[str, str, bool]]) -> str | None:
    """Return a text after some edits; None if one does not fit: then it is not the text that they began with."""
    for old, new, everywhere in edits:
        if not old and not text:
            text = new
            continue
        count = text.count(old) if old else 0
        if count == 0 or (count > 1 and not everywhere):
            return None
        text = text.replace(old, new)
    return text


def _unplaced(edits: Sequence[tuple[str, str, bool]]) -> tuple[PatchHunk, ...]:
    return tuple(
        PatchHunk(
            old_start=None,
            new_start=None,
            lines=(*(f"-{line}" for line in _lines(old)), *(f"+{line}" for line in _lines(new))),
        )
        for old, new, _ in edits
    )


def _lines(text: str) -> list[str]:
    """Return the lines of a text; what follows the last line's end is none."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
