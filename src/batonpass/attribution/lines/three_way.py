"""A three-way merge, as git does it for rebase, pick, squash and merge.

If a merge leads to exactly a given text, it tells where each line came from, even trivial ones.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from batonpass.attribution.changes.line_diff import blocks_between
from batonpass.attribution.changes.mark import MarkedText, is_anybodys, matched


class LineOrigin(NamedTuple):
    """The side and the index that a merged line comes from."""

    of_tip: bool
    place: int


class Merge(Struct, frozen=True):
    """Three texts that may have become one: the common base, the text that was there, and the text that came."""

    base: MarkedText
    onto: MarkedText
    tip: MarkedText
    is_said: bool  # git's traces say that this merge was made

    @property
    def speaks(self) -> bool:
        """Return whether the incoming change is more than anybody may write at any time."""
        changed = set(self.base.lines) ^ set(self.tip.lines)
        return not all(map(is_anybodys, changed))

    def explain(self, lines: Sequence[str]) -> MarkedText | None:
        """Return lines with the marks of this merge; None if the merge leads to other lines."""
        origins = merge_origins(self.base.lines, self.onto.lines, self.tip.lines)
        if origins is None:
            return None
        if [(self.tip if one.of_tip else self.onto).lines[one.place] for one in origins] != list(lines):
            return None
        marks = [matched(self.tip.marks[one.place]) if one.of_tip else self.onto.marks[one.place] for one in origins]
        at = max(filter(None, (self.onto.at, self.tip.at)), default=None)
        return MarkedText(list(lines), marks, None, at, self.onto.commit)


class Arrival:
    """The lines that came and went, for a quick test whether another text can have brought them."""

    def __init__(self, onto: Sequence[str], lines: Sequence[str]) -> None:
        there, here = set(onto), set(lines)
        self._new, self._gone = here - there, there - here
        self._tips: dict[int, bool] = {}

    def may_be_of(self, tip: MarkedText, *, is_said: bool) -> bool:
        """Return whether a text has all lines that came and none that went; unless said, some must have come."""
        if id(tip) not in self._tips:
            theirs = set(tip.lines)
            self._tips[id(tip)] = self._new <= theirs and self._gone.isdisjoint(theirs)
        return self._tips[id(tip)] and (is_said or bool(self._new))


def merge_origins(base: Sequence[str], onto: Sequence[str], tip: Sequence[str]) -> list[LineOrigin] | None:
    """Return the lines of onto with the changes from base to tip applied; None if they conflict."""
    ours, theirs = _kept(base, onto), _kept(base, tip)
    merged: list[LineOrigin] = []
    at_base = at_ours = at_theirs = 0
    for index in (*(index for index in range(len(base)) if index in ours and index in theirs), len(base)):
        end_ours, end_theirs = ours.get(index, len(onto)), theirs.get(index, len(tip))
        old, left, right = base[at_base:index], onto[at_ours:end_ours], tip[at_theirs:end_theirs]
        if right in (old, left):
            merged += _origins(at_ours, end_ours, of_tip=False)
        elif left == old:
            merged += _origins(at_theirs, end_theirs, of_tip=True)
        else:
            return None
        if index < len(base):
            merged.append(LineOrigin(of_tip=False, place=end_ours))
        at_base, at_ours, at_theirs = index + 1, end_ours + 1, end_theirs + 1
    return merged


def _origins(start: int, end: int, *, of_tip: bool) -> Iterator[LineOrigin]:
    return (LineOrigin(of_tip=of_tip, place=at) for at in range(start, end))


def _kept(base: Sequence[str], side: Sequence[str]) -> dict[int, int]:
    blocks = blocks_between(base, side)
    return {block.old + step: block.new + step for block in blocks for step in range(block.size)}
