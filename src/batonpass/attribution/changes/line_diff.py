"""Line diff, anchored at lines that occur once, so that the cost grows with the size of the texts."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from batonpass.attribution.changes.change import Hunk
from batonpass.attribution.changes.mark import Weight, weight

# Without such an anchor the shortest edit is searched, up to this many edits; beyond, everything counts as replaced.
_MOST_EDITS: Final = 128
_LONG_ENOUGH: Final = 4  # this many equal lines in a row are no coincidence


class Block(NamedTuple):
    """A number of equal lines, with the index where they begin in each text."""

    old: int
    new: int
    size: int


class Gap(NamedTuple):
    """A range of each text; between two blocks, these old lines became these new ones."""

    old: int
    old_end: int
    new: int
    new_end: int


def match_lines(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """Return the blocks that two texts have in common, in order; adjacent blocks are joined."""
    found: list[Block] = []
    open_ranges = [Gap(0, len(old), 0, len(new))]
    while open_ranges:
        inner = _trim(old, new, open_ranges.pop(), found)
        if inner.old == inner.old_end or inner.new == inner.new_end:
            continue
        if anchors := _anchors(old, new, inner):
            open_ranges += _between(anchors, inner)
            found += (Block(at_old, at_new, 1) for at_old, at_new in anchors)
        else:
            found += _shortest(old, new, inner)
    return _without_strays(_joined(found), old, new)


def gaps_of(blocks: Sequence[Block], old_size: int, new_size: int) -> Iterator[Gap]:
    """Yield the gaps between blocks, before the first and after the last."""
    at_old = at_new = 0
    for block in (*blocks, Block(old_size, new_size, 0)):
        if block.old > at_old or block.new > at_new:
            yield Gap(at_old, block.old, at_new, block.new)
        at_old, at_new = block.old + block.size, block.new + block.size


def blocks_between(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """Return the common blocks; an edit that fits in several places is moved to the last, as git does."""
    return _slid_down(old, new, match_lines(old, new))


def hunks_between(old: Sequence[str], new: Sequence[str]) -> tuple[Hunk, ...]:
    """Return the hunks from old to new; a hunk that fits in several places is moved to the last, as git does."""
    blocks = blocks_between(old, new)
    return tuple(
        Hunk(
            gap.old + (gap.old_end > gap.old),
            gap.old_end - gap.old,
            gap.new + (gap.new_end > gap.new),
            gap.new_end - gap.new,
            tuple(old[gap.old : gap.old_end]),
            tuple(new[gap.new : gap.new_end]),
        )
        for gap in gaps_of(blocks, len(old), len(new))
    )


def _trim(old: Sequence[str], new: Sequence[str], whole: Gap, found: list[Block]) -> Gap:
    head = _common(old, new, whole)
    if head:
        found.append(Block(whole.old, whole.new, head))
    tail = 0
    most = min(whole.old_end - whole.old, whole.new_end - whole.new) - head
    while tail < most and old[whole.old_end - 1 - tail] == new[whole.new_end - 1 - tail]:
        tail += 1
    if tail:
        found.append(Block(whole.old_end - tail, whole.new_end - tail, tail))
    return Gap(whole.old + head, whole.old_end - tail, whole.new + head, whole.new_end - tail)


def _common(old: Sequence[str], new: Sequence[str], whole: Gap) -> int:
    # Comparing slices is much faster than comparing line by line.
    most = min(whole.old_end - whole.old, whole.new_end - whole.new)
    size, step = 0, 64
    while size < most and step:
        here_old, here_new, width = whole.old + size, whole.new + size, min(step, most - size)
        if old[here_old : here_old + width] == new[here_new : here_new + width]:
            size += width
            step *= 2
        else:
            step = width // 2
    return size


def _anchors(old: Sequence[str], new: Sequence[str], inner: Gap) -> list[tuple[int, int]]:
    """Return lines that occur once on both sides, the longest sequence in the same order."""
    at_old = _once(old, inner.old, inner.old_end)
    at_new = _once(new, inner.new, inner.new_end)
    pairs = [(place, at_new[line]) for line, place in at_old.items() if line in at_new]
    return _longest_rising(pairs)


def _once(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    place: dict[str, int] = {}
    again: set[str] = set()
    for index in range(start, end):
        line = lines[index]
        if line in place:
            again.add(line)
        else:
            place[line] = index
    for line in again:
        del place[line]
    return place


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []
    top_index: list[int] = []
    below: list[int] = []
    for index, (_, at_new) in enumerate(pairs):
        pile = bisect_left(tops, at_new)
        below.append(top_index[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(at_new)
            top_index.append(index)
        else:
            tops[pile] = at_new
            top_index[pile] = index
    chain: list[tuple[int, int]] = []
    index = top_index[-1] if top_index else -1
    while index >= 0:
        chain.append(pairs[index])
        index = below[index]
    return chain[::-1]


def _between(anchors: Sequence[tuple[int, int]], inner: Gap) -> Iterator[Gap]:
    at_old, at_new = inner.old, inner.new
    for old, new in anchors:
        if old > at_old and new > at_new:
            yield Gap(at_old, old, at_new, new)
        at_old, at_new = old + 1, new + 1
    if inner.old_end > at_old and inner.new_end > at_new:
        yield Gap(at_old, inner.old_end, at_new, inner.new_end)


def _shortest(old: Sequence[str], new: Sequence[str], inner: Gap) -> list[Block]:
    """Return the blocks of a shortest edit (Myers 1986); none if the search would take too long."""
    a, b = old[inner.old : inner.old_end], new[inner.new : inner.new_end]
    if set(a).isdisjoint(b):
        return []
    reach: dict[int, int] = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(min(len(a) + len(b), _MOST_EDITS) + 1):
        trace.append(dict(reach))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
            x = reach[diagonal + 1] if down else reach[diagonal - 1] + 1
            while x < len(a) and 0 <= x - diagonal < len(b) and a[x] == b[x - diagonal]:
                x += 1
            reach[diagonal] = x
            if x >= len(a) and diagonal == len(a) - len(b):
                return _walked_back(trace, len(a), len(b), inner)
    return []


def _walked_back(trace: list[dict[int, int]], x: int, y: int, inner: Gap) -> list[Block]:
    blocks: list[Block] = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, diagonal = trace[edits], x - y
        down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        from_x = reach[before] if edits else 0
        start = (from_x if down else from_x + 1) if edits else 0
        if x > start:
            blocks.append(Block(inner.old + start, inner.new + start - diagonal, x - start))
        x, y = from_x, from_x - before
    return blocks


def _joined(found: list[Block]) -> list[Block]:
    joined: list[Block] = []
    for block in sorted(found):
        if joined and (last := joined[-1]).old + last.size == block.old and last.new + last.size == block.new:
            joined[-1] = Block(last.old, last.new, last.size + block.size)
        else:
            joined.append(block)
    return joined


def _without_strays(blocks: list[Block], old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """Drop trivial blocks that are out of line with the blocks before and after them.

    When a whole function is indented, one of its braces matches another by chance.
    """
    shifts = [block.new - block.old if _speaks(block, old) else None for block in blocks]
    after: list[int] = []
    following = len(new) - len(old)
    for shift in reversed(shifts):
        after.append(following)
        following = following if shift is None else shift
    kept: list[Block] = []
    before = 0
    for block, shift, following in zip(blocks, shifts, reversed(after), strict=True):
        if shift is not None or min(before, following) <= block.new - block.old <= max(before, following):
            kept.append(block)
        before = before if shift is None else shift
    return kept


def _speaks(block: Block, lines: Sequence[str]) -> bool:
    weights = [weight(line) for line in lines[block.old : block.old + min(block.size, _LONG_ENOUGH)]]
    return len(weights) == _LONG_ENOUGH or Weight.STRONG in weights


def _slid_down(old: Sequence[str], new: Sequence[str], blocks: list[Block]) -> list[Block]:
    """Move each pure insertion or deletion as far down as possible without meeting the next block."""
    slid: list[Block] = []
    for block in blocks:
        at_old, at_new = (slid[-1].old + slid[-1].size, slid[-1].new + slid[-1].size) if slid else (0, 0)
        moved = 0
        if at_old == block.old or at_new == block.new:
            lines, start, end = (new, at_new, block.new) if at_old == block.old else (old, at_old, block.old)
            while moved < block.size - 1 and lines[start + moved] == lines[end + moved]:
                moved += 1
            if moved == block.size - 1 and end + moved == len(lines) - 1 and lines[start + moved] == lines[end + moved]:
                moved += 1
        if moved:
            slid.append(Block(at_old, at_new, moved))
        if moved < block.size:
            slid.append(Block(block.old + moved, block.new + moved, block.size - moved))
    return _joined(slid)
