"""Changes of texts: from one text to another, from edits, and from unified diffs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from batonpass.adapters.session_files.session_values import FilePatch, PatchHunk
from batonpass.attribution.changes import line_diff

_NO_NEWLINE: Final = "\\"  # diff's "\ No newline at end of file"
_CONTEXT: Final = 3
_NEW_NAME: Final = re.compile(r"^\+\+\+ b/(.+?)[\t\r]*$", re.MULTILINE)
_HEADER: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")


def hunks_between(before: str, after: str) -> tuple[PatchHunk, ...]:
    """Return the hunks from one text to another."""
    return tuple(
        PatchHunk(old_start=hunk.old_start, new_start=hunk.new_start, lines=signed(hunk.removed, hunk.added))
        for hunk in line_diff.hunks_between(split_lines(before), split_lines(after))
    )


def read_unified(text: str) -> tuple[PatchHunk, ...] | None:
    """Return the hunks of one file's unified diff; None if it is not one, or its numbers and lines disagree."""
    hunks: list[PatchHunk] = []
    lines = iter(split_lines(text))
    for line in lines:
        header = _HEADER.fullmatch(line.rstrip("\r"))
        if header is None:
            if hunks and not line.startswith(_NO_NEWLINE):
                return None  # something after the lines that a hunk announces
            continue  # names of files and the like
        old_start, old_count, new_start, new_count = (1 if part is None else int(part) for part in header.groups())
        taken = _take(lines, old_count, new_count)
        if taken is None:
            return None
        hunks.append(PatchHunk(old_start=old_start, new_start=new_start, lines=taken))
    return tuple(hunks) or None


def read_git_diffs(text: str) -> dict[str, tuple[PatchHunk, ...]]:
    """Return the hunks of a diff of several files by their new names, without `b/`. Unreadable parts are left out."""
    found: dict[str, tuple[PatchHunk, ...]] = {}
    for part in re.split(r"^diff --git ", text, flags=re.MULTILINE)[1:]:
        name = _NEW_NAME.search(part)
        hunks = read_unified(part)
        if name is not None and hunks is not None:
            found[name[1]] = without_last_blank(hunks)
    return found


def without_last_blank(hunks: Sequence[PatchHunk]) -> tuple[PatchHunk, ...]:
    """Return hunks without an empty line at the very end: some programs count one more line than a file has."""
    *others, last = hunks
    return (*others, replace(last, lines=last.lines[:-1]) if last.lines[-1:] == (" ",) else last)


def with_context(hunks: Sequence[PatchHunk], before: Sequence[str]) -> tuple[PatchHunk, ...]:
    """Return hunks with the lines around them, which tell the place of a change better than its number does."""
    around: list[PatchHunk] = []
    edge = 0  # the lines before it belong to an earlier hunk
    for number, hunk in enumerate(hunks):
        old = sum(line[:1] == "-" for line in hunk.lines)
        start = (hunk.old_start or 0) - (old > 0)
        following = hunks[number + 1] if number + 1 < len(hunks) else None
        end = len(before) if following is None else (following.old_start or 0) - _removes(following)
        above = before[max(edge, start - _CONTEXT) : start]
        # The lines between two hunks belong to the first of them, so that no line is in both.
        below = before[start + old : min(end, start + old + _CONTEXT)]
        new = (hunk.new_start or 0) - (any(line[:1] == "+" for line in hunk.lines))
        edge = start + old + len(below)
        around.append(
            PatchHunk(
                old_start=start - len(above) + 1 if old or above or below else start,
                new_start=new - len(above) + 1,
                lines=(*(f" {line}" for line in above), *hunk.lines, *(f" {line}" for line in below)),
            )
        )
    return tuple(around)


def _removes(hunk: PatchHunk) -> bool:
    return any(line[:1] == "-" for line in hunk.lines)


def changed_file(path: str, before: str | None, after: str, *, written: bool = False) -> FilePatch:
    """Return the change from one text to another; None as the first if the file did not exist."""
    hunks = hunks_between(before or "", after)
    if before is not None:
        hunks = with_context(hunks, split_lines(before))
    # Whole texts are kept only where their digest will be: a long session has many.
    return FilePatch(path=path, created=before is None, after=after if written else None, hunks=hunks, written=written)


def edited_file(path: str, hunks: tuple[PatchHunk, ...] | None) -> Iterator[FilePatch]:
    """Yield the change of a file by hunks; nothing if they could not be read or change nothing."""
    if hunks:
        yield FilePatch(path=path, hunks=hunks)


def _take(lines: Iterable[str], old: int, new: int) -> tuple[str, ...] | None:
    """Return as many lines as a hunk announces; None if there are fewer, or others."""
    taken: list[str] = []
    for line in lines if old or new else ():
        mark = line[:1]
        if mark == _NO_NEWLINE:
            continue
        # Some programs cut the blank off an empty line of context.
        if mark not in {"", " ", "-", "+", "\r"}:
            return None
        taken.append(line if mark in {" ", "-", "+"} else f" {line}")
        old -= mark != "+"
        new -= mark != "-"
        if old < 0 or new < 0:
            return None
        if not old and not new:
            break
    return None if old or new else tuple(taken)


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


def apply_edits(text: str, edits: Sequence[tuple[str, str, bool]]) -> str | None:
    """Return a text after some edits, each as (old, new, everywhere); None if one does not fit exactly once."""
    for old, new, everywhere in edits:
        if not old and not text:
            text = new
            continue
        count = text.count(old) if old else 0
        if count == 0 or (count > 1 and not everywhere):
            return None
        text = text.replace(old, new)
    return text


def edit_in_excerpt(path: str, old: str, new: str, excerpt: str, first: int) -> FilePatch | None:
    """Return an edit whose result a program showed from a line on; None if it is not there exactly once."""
    if not new or excerpt.count(new) != 1:
        return None
    before = split_lines(excerpt.replace(new, old))
    hunks = with_context(hunks_between("\n".join(before), excerpt), before)
    moved = (
        replace(one, old_start=(one.old_start or 0) + first - 1, new_start=(one.new_start or 0) + first - 1)
        for one in hunks
    )
    return FilePatch(path=path, hunks=tuple(moved))


def unplaced_hunk(old: str, new: str) -> PatchHunk:
    """Return a change of a text whose position is unknown."""
    return PatchHunk(old_start=None, new_start=None, lines=signed(split_lines(old), split_lines(new)))


def signed(removed: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return removed and added lines with their signs."""
    return (*(f"-{line}" for line in removed), *(f"+{line}" for line in added))


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, without an empty one after the last newline."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
