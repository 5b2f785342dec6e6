"""Recognises lines that a checkout, a rebase, a merge or an undo brings back.

A returning line keeps its author if it is distinctive, occurs no more often than before, and has the same neighbours.
Trivial lines return only together with such a line, in one piece.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from batonpass.attribution.changes.mark import LineMark, Weight, joined, matched, opened, unexplained, weight
from batonpass.attribution.lines.untouched_lines import UntouchedMarks

_KEPT: Final = 4  # latest places that are kept for one line
_FREQUENT: Final = 32  # occurrences in one text
_BOTH: Final = 2  # ends
_NEAR: Final = 3  # lines to search for a neighbour that is not trivial


class Fragment:
    """Lines of an earlier text with their marks; context lines have no mark."""

    __slots__ = ("_counts", "_places", "held_by", "is_seen", "lines", "marks", "used")

    def __init__(
        self,
        lines: Sequence[str],
        marks: Sequence[LineMark | None],
        *,
        used: Mapping[int, int] = MappingProxyType({}),
        held_by: int = 0,
        is_seen: bool = False,
    ) -> None:
        self.held_by = held_by  # at how many ends a returning piece must have its old neighbour
        self.is_seen = is_seen  # it was in a text before, or may have been: that all of it is here proves nothing
        self.lines = lines
        self.marks = marks
        self.used = used  # lines that certainly still exist, with their new position
        self._counts: Counter[str] | None = None
        self._places: dict[str, int] | None = None

    def count(self, line: str) -> int:
        """Return how often a line occurs."""
        if self._counts is None:
            self._counts = Counter(self.lines)
        return self._counts[line]

    def find(self, line: str) -> int | None:
        """Return the position of a line that occurs once."""
        if self._places is None:
            self._places = {text: index for index, text in enumerate(self.lines)}
        return self._places.get(line) if self.count(line) == 1 else None

    def shows(self, index: int, line: str) -> bool:
        """Return whether this line is at this position."""
        return 0 <= index < len(self.lines) and self.lines[index] == line

    def has(self, index: int, line: str) -> bool:
        """Return whether this line is at this position and is not known to be elsewhere."""
        return self.shows(index, line) and index not in self.used


class Attic(Struct):
    """Lines of earlier texts, by content."""

    _places: defaultdict[str, list[tuple[Fragment, int]]] = field(default_factory=lambda: defaultdict(list))

    def put(self, fragment: Fragment, indexes: Iterable[int]) -> None:
        """Keep these lines of a fragment, if they are distinctive."""
        for index in indexes:
            line = fragment.lines[index]
            if fragment.marks[index] is not None and weight(line) is Weight.STRONG:
                places = self._places[line]
                places.append((fragment, index))
                if len(places) > _KEPT:
                    del places[0]

    def put_missing(self, fragment: Fragment, present: Iterable[str]) -> None:
        """Keep the lines of a fragment that are not in the present text."""
        there = set(present)
        self.put(fragment, (index for index, line in enumerate(fragment.lines) if line not in there))

    def find(self, line: str) -> Iterator[tuple[Fragment, int]]:
        """Yield the places where a line was, latest first."""
        return reversed(self._places.get(line, ()))


class Search:
    """One search of an attic and of a few whole texts for the lines of a text that are not explained yet."""

    def __init__(
        self,
        lines: Sequence[str],
        carried: UntouchedMarks,
        attic: Attic,
        *,
        texts: Sequence[Fragment],
        since: datetime | None,
    ) -> None:
        self._lines = lines
        self._since = since
        self._carried = carried
        self._attic = attic
        self._texts = texts
        self._claims: defaultdict[int, list[tuple[int, LineMark]]] = defaultdict(
            list
        )  # with the size of the piece around it
        self._hints: defaultdict[int, list[LineMark]] = defaultdict(list)
        self._doubts: defaultdict[int, list[LineMark]] = defaultdict(list)
        self._kept = Counter(line for line, sure in zip(lines, carried.sure, strict=True) if sure)
        self._done: dict[tuple[int, int], int] = {}  # by fragment and distance: searched up to this line
        self._arrived: dict[int, Fragment] = {}

    def run(self) -> None:
        """Complete the carried marks with those of recognised lines."""
        unsure = [index for index in self._carried.open_lines() if weight(self._lines[index]) is Weight.STRONG]
        if not unsure:
            return
        counts = Counter(self._lines)
        for index in unsure:
            # A very frequent line is not distinctive, and comparing all its places with each other takes too long.
            if (times := counts[self._lines[index]]) <= _FREQUENT:
                self._look_for(index, times)
        # Text that a change wrote at an unknown place arrives once. If it is seen again, somebody may have typed a part
        # of it again.
        for fragment in self._arrived.values():
            fragment.held_by, fragment.is_seen = 1, True
        for index, claims in self._claims.items():
            self._settle(index, claims)
        for index, marks in self._doubts.items():
            if (known := self._carried.marks[index]) is not None:
                self._carried.marks[index] = joined([known, *marks])
        for index, marks in self._hints.items():
            if index not in self._claims:
                known = self._carried.marks[index]
                self._carried.marks[index] = opened(joined(marks if known is None else [known, *marks]), self._since)

    def _look_for(self, index: int, times: int) -> None:
        line = self._lines[index]
        for fragment, place in self._places_of(line):
            if self._done.get((id(fragment), place - index), -1) >= index:
                continue
            if times <= fragment.count(line) and self._is_in_place(fragment, place, index):
                self._claim(fragment, place, index)
            elif (mark := fragment.marks[place]) is not None and mark.authors:
                self._hints[index].append(matched(mark))

    def _places_of(self, line: str) -> Iterator[tuple[Fragment, int]]:
        """Yield where a line was: in the latest texts if they had it, otherwise in the attic."""
        texts = [text for text in self._texts if text.count(line)]
        there = self._kept[line]
        for text in texts:
            place = text.find(line)
            # If the line is still at its old place, this one is a copy by an unknown author.
            if place is not None and text.has(place, line) and not there:
                yield text, place
        if not texts:
            yield from self._attic.find(line)

    def _is_in_place(self, fragment: Fragment, place: int, index: int) -> bool:
        alike = [
            (theirs := _neighbour(fragment.lines, place, way)) is not None
            and theirs == _neighbour(self._lines, index, way)
            for way in (-1, 1)
        ]
        # A copy has the same neighbours as the original, except at its ends.
        return all(alike) if fragment.count(fragment.lines[place]) > 1 else any(alike)

    def _claim(self, fragment: Fragment, place: int, index: int) -> None:
        """Claim a line and the lines connected with it on both sides."""
        (above, firm_above, held_above) = self._walk(fragment, place, index, -1)
        (below, firm_below, held_below) = self._walk(fragment, place, index, 1)
        first = index - (above if held_above else firm_above)
        last = index + (below if held_below else firm_below)
        whole = above + below + 1 == len(fragment.lines) and not fragment.is_seen
        if held_above + held_below < fragment.held_by and not whole:
            first, last = index, index - 1
        for here in range(index - above, index + below + 1):
            if (mark := fragment.marks[place + here - index]) is None:
                continue
            if first <= here <= last:
                self._claims[here].append((above + below, matched(mark)))
                if fragment.held_by == 0:
                    self._arrived[id(fragment)] = fragment
            else:
                self._hints[here].append(matched(mark))
        self._done[id(fragment), place - index] = index + below

    def _walk(self, fragment: Fragment, place: int, index: int, way: int) -> tuple[int, int, bool]:
        """Return how many lines are connected with one on one side: all, those up to the last distinctive, and if held.

        Held means that the piece has its old neighbour at the far end too: trivial lines may belong to a new neighbour.
        """
        at, here = place + way, index + way
        size = firm = 0
        while 0 <= here < len(self._lines) and not self._carried.sure[here] and fragment.has(at, self._lines[here]):
            if fragment.marks[at] is None:
                # Removed lines return between lines that stayed, not together with a copy of them. A blank line beside
                # them may be anybody's.
                return size, firm, fragment.held_by < _BOTH and self._is_held(fragment, at, here, way)
            size += 1
            if weight(self._lines[here]) is Weight.STRONG:
                firm = size
            at, here = at + way, here + way
        inside = 0 <= here < len(self._lines), 0 <= at < len(fragment.lines)
        if not all(inside):
            return size, firm, not any(inside)
        self._contest(fragment, at, here, way)
        ends_there = at in fragment.used and bool(self._carried.sure[here])
        return size, firm, ends_there or self._is_held(fragment, at, here, way)

    def _is_held(self, fragment: Fragment, at: int, here: int, way: int) -> bool:
        """Return whether the next lines are equal up to one that is not trivial; blank lines do not count."""
        for _ in range(_NEAR):
            inside = 0 <= here < len(self._lines), 0 <= at < len(fragment.lines)
            if not all(inside):
                return not any(inside)
            if fragment.lines[at] != self._lines[here]:
                return False
            if weight(self._lines[here]) is not Weight.TRIVIAL:
                return True
            at, here = at + way, here + way
        return False

    def _contest(self, fragment: Fragment, at: int, here: int, way: int) -> None:
        """Doubt trivial lines that were matched elsewhere, where they continue a recognised piece."""
        while (
            0 <= here < len(self._lines)
            and weight(self._lines[here]) is Weight.TRIVIAL
            and fragment.shows(at, self._lines[here])
            and (mark := fragment.marks[at]) is not None
        ):
            elsewhere = fragment.used.get(at)
            if elsewhere is not None and elsewhere != here:
                self._doubts[elsewhere].append(unexplained(self._since))
            elif elsewhere is None and self._carried.sure[here]:
                self._doubts[here].append(matched(mark))
            at, here = at + way, here + way

    def _settle(self, index: int, claims: Sequence[tuple[int, LineMark]]) -> None:
        # A trivial line belongs to the largest piece that contains it.
        least = 0 if weight(self._lines[index]) is Weight.STRONG else max(size for size, _ in claims)
        mark = joined(mark for size, mark in claims if size >= least)
        known = self._carried.marks[index]
        if known is not None and weight(self._lines[index]) is Weight.TRIVIAL:
            # It may also be the line that was here before, and the piece beside it came without one.
            mark = joined((mark, known))
        self._carried.marks[index] = mark
        self._carried.sure[index] = mark.is_certain


def _neighbour(lines: Sequence[str], index: int, way: int) -> str | None:
    """Return the nearest line above or below that is not trivial."""
    for step in range(1, _NEAR + 1):
        at = index + way * step
        if not 0 <= at < len(lines):
            return None
        if weight(lines[at]) is not Weight.TRIVIAL:
            return lines[at]
    return None
