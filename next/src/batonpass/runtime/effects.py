"""What a call changed in a file: its digest before and after, and the lines that are new.

A tool that writes to a path is looked at from outside: the file as it was before the call and as it is after. So nobody
has to tell what they changed, and nobody can tell otherwise.
"""

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Final

from msgspec import Struct

from batonpass.model.values import Effect, Hunk
from batonpass.wire.canonical import digest, encode, keyed_digest

_LARGEST_TEXT: Final = 1024 * 1024  # beyond, the digests are kept and no lines
_LARGEST_FILE: Final = 256 * 1024 * 1024
_MOST_LINES: Final = 20_000
_MOST_WORK: Final = 3_000_000  # comparisons of lines, beyond which a difference is looked for in one pass
_AUTOJUNK: Final = 200  # lines, from which on the comparison leaves out those that are everywhere


class Snapshot(Struct, frozen=True):
    """A file at one moment. Without a digest there was none; without lines it is too large, or no text."""

    digest: str | None = None
    lines: tuple[str, ...] | None = None


def from_work_tree(work_tree: Path, target: str) -> str:
    """Return a target as it is named from the work tree on, wherever in it this process works."""
    try:
        tree, here = str(work_tree), os.getcwd()  # noqa: PTH109 - in a fourth of the time
    except FileNotFoundError:  # the folder is gone
        return target
    # A program that works elsewhere names what it writes from the work tree on.
    if not here.startswith(f"{tree}/") or os.path.isabs(target):  # noqa: PTH117 - as above
        return target
    return f"{here[len(tree) + 1 :]}/{target}"


def name_of_target(work_tree: Path, target: str) -> str:
    """Return the name of a file in the record: from the work tree on, or absolute where it is elsewhere.

    Links are followed: what a call writes through one is a change of the file behind it, under whichever name it asked.
    """
    path, tree = os.path.realpath(work_tree / target), os.path.realpath(work_tree)
    inside = os.path.relpath(path, tree)
    return path if inside == ".." or inside.startswith("../") else inside


def target_digest(secret: bytes, name: str) -> str:
    """Return by what a target is found; nobody without the ledger's secret can try names out."""
    return keyed_digest(secret, b"target\0" + name.encode("utf-8", "surrogateescape"))


def take_snapshot(path: str) -> Snapshot:
    """Return a file as it is now. What is no plain file, or cannot be read, is like none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - in a third of the time, twice for each call that writes
        if not S_ISREG(status.st_mode) or status.st_size > _LARGEST_FILE:
            return Snapshot()
        data = Path(path).read_bytes()
    except (OSError, ValueError):  # the second: a zero byte, or what no file system can spell
        return Snapshot()
    return Snapshot(digest(data), split_lines(data))


def split_lines(data: bytes) -> tuple[str, ...] | None:
    """Return the lines of a text; None if it is none, or too large to compare."""
    if len(data) > _LARGEST_TEXT or b"\0" in data:
        return None
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return None
    if lines[-1] == "":  # the end of the last line, not a line
        lines.pop()
    return tuple(lines) if len(lines) <= _MOST_LINES else None


def effect_of(secret: bytes, name: str, before: Snapshot, after: Snapshot) -> tuple[Effect, bytes | None]:
    """Return what changed, and the new lines as content."""
    effect = Effect(target_digest(secret, name), before.digest, after.digest)
    if (before.digest is not None and before.lines is None) or (after.digest is not None and after.lines is None):
        return effect, None
    return effect, encode(find_hunks(before.lines or (), after.lines or ()))


def find_hunks(old: Sequence[str], new: Sequence[str]) -> tuple[Hunk, ...]:
    """Return what makes the new lines of the old ones, in a time that no text can draw out."""
    start, end = _equal_ends(old, new)  # what is equal at both ends is most of the file
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if _most_work(old, new) > _MOST_WORK:
        return tuple(_hunks_between(old, new, start))
    from difflib import SequenceMatcher  # noqa: PLC0415 - most programs never compare, and all would wait for it

    return tuple(
        Hunk(at=start + first + 1, removed=last - first, added=tuple(new[begin:stop]))
        for kind, first, last, begin, stop in SequenceMatcher(None, old, new, autojunk=True).get_opcodes()
        if kind != "equal"
    )


def _equal_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    start, shortest = 0, min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def _most_work(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many steps `SequenceMatcher` takes at most: all pairs of equal lines, once for each that it keeps."""
    times = Counter(new)
    popular = len(new) // 100 + 1 if len(new) >= _AUTOJUNK else len(new)
    pairs = sum(times[line] for line in old if times[line] <= popular)
    return (len(old) + pairs) * min(len(old), len(new))


def _hunks_between(old: Sequence[str], new: Sequence[str], start: int) -> Iterator[Hunk]:
    """Yield what stands between lines that are on both sides once: each time one hunk, however much of it is equal."""
    single_old, single_new = _single_places(old), _single_places(new)
    kept = sorted((at, single_old[line]) for line, at in single_new.items() if line in single_old)
    for gap_old, gap_new in gaps(sorted(longest_rise(kept)), len(old), len(new)):
        removed, added = old[gap_old.start : gap_old.stop], new[gap_new.start : gap_new.stop]
        if removed != added:
            head, tail = _equal_ends(removed, added)
            lines = tuple(added[head : len(added) - tail])
            yield Hunk(at=start + gap_old.start + head + 1, removed=len(removed) - head - tail, added=lines)


def _single_places(lines: Sequence[str]) -> dict[str, int]:
    times = Counter(lines)
    return {line: at for at, line in enumerate(lines) if times[line] == 1}


def longest_rise(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the most pairs that rise on both sides: what moved past them is not in the place where it was."""
    ends: list[int] = []  # the smallest end of a rise of each length
    last: list[int] = []  # the pair at that end
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else -1)
    number = last[-1] if last else -1
    while number >= 0:
        yield pairs[number]
        number = before[number]


def gaps(pairs: Sequence[tuple[int, int]], end_old: int, end_new: int) -> Iterator[tuple[range, range]]:
    """Yield what stands between pairs of places (new, old), and behind the last one, on the old and on the new side."""
    at_old = at_new = 0
    for new, old in (*pairs, (end_new, end_old)):
        yield range(at_old, old), range(at_new, new)
        at_old, at_new = old + 1, new + 1
