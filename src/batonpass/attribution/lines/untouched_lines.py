"""Finds the lines that an unrecorded edit certainly left alone.

A diff is one possible account of an edit, seldom the only one. So around each change, up to the next distinctive line
that occurs once on both sides, a line counts as kept only if every account keeps it. Where accounts differ, all
possible authors are candidates.

One exception: a single block was added or removed, and only trivial lines leave its exact position open. Of two blank
lines in a row either may be the new one, and not even the person who typed it could tell. Then the position is the one
that git reports, as far down as possible.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.attribution.changes.line_diff import Block, gaps_of, match_lines
from batonpass.attribution.changes.mark import UNRECORDED, LineMark, Weight, joined, opened, squeezed, weight

_MOST_PLACES: Final = 16  # places where a block is searched for


class UntouchedMarks(Struct):
    """The marks of a new text, as far as an old text explains them."""

    marks: list[LineMark | None]  # None: a new line
    sure: bytearray  # 1: the mark certainly belongs to this line
    used: dict[int, int] = field(default_factory=dict)  # old lines that certainly remain, with their new position

    def open_lines(self) -> Iterator[int]:
        """Yield the lines that are not certain."""
        at = self.sure.find(0)
        while at >= 0:
            yield at
            at = self.sure.find(0, at + 1)


class _Zone(Struct, frozen=True):
    """A part of both texts without a certain line in between, and the blocks that a diff matches in it."""

    old: range
    new: range
    blocks: tuple[Block, ...]


def carry_over(
    old: Sequence[str], marks: Sequence[LineMark], new: Sequence[str], since: datetime | None
) -> UntouchedMarks:
    """Return the lines of old that remain in new. Doubtful lines may have been written after `since`."""
    if is_reformatted(old, new):
        kept = [
            mark if was == now else reformatted(mark, UNRECORDED)
            for mark, was, now in zip(marks, old, new, strict=True)
        ]
        return UntouchedMarks([*kept], bytearray(b"\1" * len(new)), {index: index for index in range(len(new))})
    blocks = match_lines(old, new)
    carried = UntouchedMarks([None] * len(new), bytearray(len(new)))
    for block in blocks:
        carried.marks[block.new : block.new + block.size] = marks[block.old : block.old + block.size]
        carried.sure[block.new : block.new + block.size] = b"\1" * block.size
        carried.used |= {block.old + step: block.new + step for step in range(block.size)}
    judge = _Judge(old, marks, new, since, carried, _moved(blocks, old, new))
    for zone in _zones(blocks, old, new):
        judge.judge(zone)
    carried.used = {source: target for source, target in carried.used.items() if carried.sure[target]}
    return carried


def _moved(blocks: Sequence[Block], old: Sequence[str], new: Sequence[str]) -> frozenset[str]:
    """Return the lines that were removed in one place and added in another."""
    gaps = list(gaps_of(blocks, len(old), len(new)))
    gone = {squeezed(line) for gap in gaps for line in old[gap.old : gap.old_end]}
    return frozenset(gone.intersection(squeezed(line) for gap in gaps for line in new[gap.new : gap.new_end])) - {""}


def _zones(blocks: Sequence[Block], old: Sequence[str], new: Sequence[str]) -> list[_Zone]:
    """Return the parts around each change, up to the next anchor on both sides."""
    in_old, in_new = Counter(old), Counter(new)

    def anchors(block: Block) -> Iterator[bool]:
        for line in old[block.old : block.old + block.size]:
            yield in_old[line] == 1 == in_new[line] and weight(line) is Weight.STRONG

    zones: list[_Zone] = []
    start_old = start_new = 0
    inside: list[Block] = []
    for block in blocks:
        is_anchor = list(anchors(block))
        if True not in is_anchor:
            inside.append(block)
            continue
        first = is_anchor.index(True)
        last = block.size - 1 - is_anchor[::-1].index(True)
        if first:
            inside.append(Block(block.old, block.new, first))
        zones.append(_Zone(range(start_old, block.old + first), range(start_new, block.new + first), tuple(inside)))
        start_old, start_new = block.old + last + 1, block.new + last + 1
        rest = block.size - 1 - last
        inside = [Block(start_old, start_new, rest)] if rest else []
    zones.append(_Zone(range(start_old, len(old)), range(start_new, len(new)), tuple(inside)))
    sizes = (sum(block.size for block in zone.blocks) for zone in zones)
    return [zone for zone, size in zip(zones, sizes, strict=True) if not size == len(zone.old) == len(zone.new)]


class _Judge(Struct):
    """Decides which lines are certain within a zone."""

    old: Sequence[str]
    marks: Sequence[LineMark]
    new: Sequence[str]
    since: datetime | None
    carried: UntouchedMarks
    moved: frozenset[str]

    def judge(self, zone: _Zone) -> None:
        """Withdraw matches of the diff in this zone that another account would not make."""
        if self._is_told(zone):
            return
        source = {block.new + step: block.old + step for block in zone.blocks for step in range(block.size)}
        kept = set(source.values())
        gone = [index for index in zone.old if index not in kept]
        fresh = [index for index in zone.new if index not in source]
        in_old = Counter(self.old[index] for index in zone.old)
        in_new = Counter(self.new[index] for index in zone.new)
        # A line that is removed here and added there: the diff might as well have kept it and dropped another.
        crossed = not {self.old[index] for index in gone}.isdisjoint(self.new[index] for index in fresh)
        reformatted_to = self._reformatted(gone, [index for index in fresh if not in_old[self.new[index]]])
        held = self._held(zone, reformatted_to)
        origins = self._origins(zone)
        for index in zone.new:
            line = self.new[index]
            if not in_old[line]:
                continue
            even = in_old[line] == in_new[line] and not crossed
            if index in source and even and (index in held or self._speaks(line, in_old[line])):
                continue
            fewer = in_new[line] < in_old[line] and not crossed
            self._doubt(index, origins, fewer=fewer and (index in held or weight(line) is Weight.STRONG))

    def _is_told(self, zone: _Zone) -> bool:
        """Handle a zone with one block more or less as git reports it; return whether it is such a zone."""
        old, new = self.old[zone.old.start : zone.old.stop], self.new[zone.new.start : zone.new.stop]
        at = _same_beginning(old, new)
        more, less = max(len(new) - len(old), 0), max(len(old) - len(new), 0)
        if more == less or list(old[at + less :]) != list(new[at + more :]):
            return False
        block, elsewhere = (new[at : at + more], self.old) if more else (old[at : at + less], self.new)
        is_moved = not self.moved.isdisjoint(map(squeezed, block))
        if is_moved and not _stands_in(elsewhere, block):
            return False  # more than one edit
        slack = _slack(old[:at], block)
        if any(weight(line) is Weight.STRONG for line in old[at - slack : at]):
            return False  # a copy next to its original
        self._tell(zone, at)
        self._doubt_slack(zone, at, slack, is_moved=is_moved)
        return True

    def _tell(self, zone: _Zone, at: int) -> None:
        """Keep all of the shorter side; the other side has one more block at this index."""
        more, less = max(len(zone.new) - len(zone.old), 0), max(len(zone.old) - len(zone.new), 0)
        for source in zone.old:
            self.carried.used.pop(source, None)
        for step in range(min(len(zone.old), len(zone.new))):
            source = zone.old.start + step + (less if step >= at else 0)
            target = zone.new.start + step + (more if step >= at else 0)
            self.carried.marks[target], self.carried.sure[target] = self.marks[source], 1
            self.carried.used[source] = target
        for target in range(zone.new.start + at, zone.new.start + at + more):
            self.carried.marks[target], self.carried.sure[target] = None, 0

    def _doubt_slack(self, zone: _Zone, at: int, slack: int, *, is_moved: bool) -> None:
        """Doubt the lines over which the block could also be further up, if they have other authors."""
        more, less = max(len(zone.new) - len(zone.old), 0), max(len(zone.old) - len(zone.new), 0)
        for step in range(at - slack, at) if less else ():
            gone = self.marks[zone.old.start + step + less]
            self.carried.marks[zone.new.start + step] = joined((self.marks[zone.old.start + step], gone))
        if not is_moved:
            return
        # A moved block brought its own lines, not those that the diff groups with it.
        origins = self._origins(zone)
        for step in (*range(at - slack, at), *range(max(at + more - slack, 0), at + more)):
            if self.new[zone.new.start + step] in origins:
                self._doubt(zone.new.start + step, origins, fewer=False)

    def _held(self, zone: _Zone, reformatted_to: Mapping[int, int]) -> set[int]:
        """Return the lines that are connected with a certain line above or below."""
        edges = {(zone.old.start - 1, zone.new.start - 1), (zone.old.stop, zone.new.stop), *reformatted_to.items()}
        held: set[int] = set()
        for block in zone.blocks:
            if not edges.isdisjoint(((block.old - 1, block.new - 1), (block.old + block.size, block.new + block.size))):
                held.update(range(block.new, block.new + block.size))
        return held

    def _origins(self, zone: _Zone) -> dict[str, LineMark]:
        """Return for each line of a zone all its possible authors there."""
        marks: defaultdict[str, dict[LineMark, None]] = defaultdict(dict)
        for index in zone.old:
            marks[self.old[index]][self.marks[index]] = None
        return {line: joined(several) for line, several in marks.items()}

    def _speaks(self, line: str, times: int) -> bool:
        said = weight(line)
        return said is Weight.STRONG or (said is Weight.SHORT and times == 1)

    def _doubt(self, index: int, origins: Mapping[str, LineMark], *, fewer: bool) -> None:
        mark = origins[self.new[index]]
        # If one call wrote all of them, it wrote those that remain.
        self.carried.sure[index] = fewer and mark.is_certain
        self.carried.marks[index] = mark if fewer else opened(mark, self.since)

    def _reformatted(self, gone: Sequence[int], fresh: Sequence[int]) -> dict[int, int]:
        """Keep the marks of lines of which only the white space changed; return the pairs."""
        before = [squeezed(self.old[index]) for index in gone]
        after = [squeezed(self.new[index]) for index in fresh]
        pairs: dict[int, int] = {}
        for block in match_lines(before, after):
            steps = range(block.size)
            says = [weight(before[block.old + step]) for step in steps]
            if Weight.STRONG in says or len(before) == len(after) == block.size:
                pairs |= {gone[block.old + step]: fresh[block.new + step] for step in steps if before[block.old + step]}
        gone_times, fresh_times = Counter(before), Counter(after)
        for source, target in pairs.items():
            mark = reformatted(self.marks[source], UNRECORDED)
            bare = squeezed(self.new[target])
            # If several lines look the same now, it is unknown which one is the old line.
            even = gone_times[bare] == fresh_times[bare]
            self.carried.marks[target] = mark if even else opened(mark, self.since)
            self.carried.sure[target] = even
        return pairs


def _same_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    size = 0
    while size < min(len(one), len(other)) and one[size] == other[size]:
        size += 1
    return size


def _stands_in(lines: Sequence[str], block: Sequence[str]) -> bool:
    """Return whether lines contain a block in one piece."""
    strong = next((index for index, line in enumerate(block) if weight(line) is Weight.STRONG), 0)
    starts = (index - strong for index, line in enumerate(lines) if line == block[strong] and index >= strong)
    return any(list(lines[start : start + len(block)]) == list(block) for start in islice(starts, _MOST_PLACES))


def _slack(above: Sequence[str], block: Sequence[str]) -> int:
    """Return how far up a block could be moved over lines that equal its last ones."""
    lines = [*above, *block]
    slack = 0
    while slack < len(above) and lines[len(above) - 1 - slack] == lines[len(lines) - 1 - slack]:
        slack += 1
    return slack


def is_reformatted(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether two texts differ at most in the white space within lines."""
    return len(old) == len(new) and all(
        was == now or squeezed(was) == squeezed(now) for was, now in zip(old, new, strict=True)
    )


def reformatted(mark: LineMark, by: str) -> LineMark:
    """Return the mark of a line whose white space was changed."""
    return replace(mark, reformatted_by=by) if mark.authors else mark
