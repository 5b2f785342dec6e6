"""Blame for a diff that somebody pastes: its added lines are looked for in the files as they are now.

A pasted diff may be older than the files, so its line numbers are only where to look first. A block of lines that a
file does not have is said to be missing; nothing is guessed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.hunk_blame import BlamedHunk, blame_hunks
from batonpass.attribution.git.commit_span import ChangedLines
from batonpass.errors import InvalidValueError

_FILE: Final = re.compile(r"\+\+\+ (?P<path>[^\t\n]+)")
_WAS: Final = re.compile(r"--- (?P<path>[^\t\n]+)")
_HUNK: Final = re.compile(
    r"@@ -(?P<old>\d{1,9})(?:,(?P<removed>\d{1,9}))? \+(?P<new>\d{1,9})(?:,(?P<added>\d{1,9}))? @@"
)
_NOWHERE: Final = "/dev/null"
_MOST: Final = 500  # blocks of one diff


class PastedBlock(Struct, frozen=True, kw_only=True):
    """Lines that a diff put in one place of a file, and how many it took away there."""

    path: str
    first: int
    added: tuple[str, ...]
    removed: int


def blame_patch(text: str, blame_of: Callable[[str], Blame | None]) -> Iterator[BlamedHunk]:
    """Yield the blocks of a diff with the authors of their added lines. Raises `InvalidValueError` if it is none.

    `blame_of` is asked once for each file; None stands for one that cannot be read.
    """
    known = cache(blame_of)
    blocks = [*read_patch(text)]
    if not blocks:
        raise InvalidValueError("diff", "has no hunk; paste it as `git diff` prints it, with its @@ lines")
    return blame_hunks((_located(block, known(block.path)) for block in blocks[:_MOST]), known)


def read_patch(text: str) -> Iterator[PastedBlock]:
    """Yield the blocks of a unified diff. A hunk is as long as its header says, so no content can imitate a header."""
    lines = iter(text.splitlines())
    path = was = ""
    for line in lines:
        if (name := _WAS.match(line)) is not None:
            was = _plain(name["path"], "a/")
        elif (name := _FILE.match(line)) is not None:
            path = _plain(name["path"], "b/")
            path = was if path == _NOWHERE else path
        elif path and (hunk := _HUNK.match(line)) is not None:
            yield from _blocks(path, hunk, lines)


def _blocks(path: str, hunk: re.Match[str], lines: Iterator[str]) -> Iterator[PastedBlock]:
    old, new = (int(hunk[name] or 1) for name in ("removed", "added"))
    number, first = int(hunk["new"]), int(hunk["new"])
    added: list[str] = []
    removed = 0
    while old > 0 or new > 0:
        line = next(lines, None)
        if line is None:
            break
        if line.startswith("+"):
            first = number if not added else first
            added.append(line[1:])
            number, new = number + 1, new - 1
        elif line.startswith("-"):
            first = number if not added and not removed else first
            removed, old = removed + 1, old - 1
        elif not line.startswith("\\"):
            if added or removed:
                yield PastedBlock(path=path, first=first, added=tuple(added), removed=removed)
                added, removed = [], 0
            number, old, new = number + 1, old - 1, new - 1
    if added or removed:
        yield PastedBlock(path=path, first=first, added=tuple(added), removed=removed)


def _plain(name: str, side: str) -> str:
    name = name.strip()
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = name[1:-1]
    return name if name == _NOWHERE else name.removeprefix(side)


def _located(block: PastedBlock, blame: Blame | None) -> ChangedLines:
    """Return where the lines of a block are now."""
    if not block.added:
        return ChangedLines(path=block.path, first=block.first, added=0, removed=block.removed)
    count = len(block.added)
    lines = "1 line" if count == 1 else f"{count} lines"
    if blame is None:
        return _missing(block, f"{lines}, and the file cannot be read here")
    at = _find([line.text.removesuffix("\r") for line in blame.lines], block)
    if at is None:
        return _missing(block, f"{lines} that the file does not have now")
    return ChangedLines(path=block.path, first=at, added=count, removed=block.removed)


def _missing(block: PastedBlock, words: str) -> ChangedLines:
    return ChangedLines(path=block.path, first=block.first, added=0, removed=block.removed, instead=words)


def _find(lines: Sequence[str], block: PastedBlock) -> int | None:
    """Return the line, from 1, where a block is: where the diff says, else the nearest place that has all of it."""
    count, wanted = len(block.added), [line.removesuffix("\r") for line in block.added]
    places = [
        at + 1 for at in range(len(lines) - count + 1) if lines[at] == wanted[0] and lines[at : at + count] == wanted
    ]
    return min(places, key=lambda at: (abs(at - block.first), at), default=None)
