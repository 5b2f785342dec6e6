"""Line numbers as text: `3-9,12`. Never expanded, because a hostile note may name a billion lines."""

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from batonpass.errors import InvalidValueError

MOST_LINES: Final = 10_000_000  # of one file
_RANGES: Final = re.compile(r"[0-9]{1,8}(?:-[0-9]{1,8})?(?:,[0-9]{1,8}(?:-[0-9]{1,8})?)*|", re.ASCII)


class LineRanges:
    """Some lines of a file, from 1, as ranges that rise and do not touch."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self.ranges = tuple(ranges)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "LineRanges":
        """Return the ranges of these lines."""
        found: list[tuple[int, int]] = []
        for number in sorted(set(numbers)):
            if found and found[-1][1] == number - 1:
                found[-1] = found[-1][0], number
            else:
                found.append((number, number))
        return cls(found)

    @classmethod
    def parse(cls, text: str) -> "LineRanges":
        """Return the ranges in a text. Raises `InvalidValueError`."""
        if not _RANGES.fullmatch(text):
            raise InvalidValueError("lines", "are not ranges of line numbers")
        found: list[tuple[int, int]] = []
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            found.append((int(first), int(last or first)))
        ends = [0, *(end for one in found for end in one)]
        rises = all(first <= last for first, last in found) and all(
            one[1] < other[0] for one, other in itertools.pairwise(found)
        )
        if not rises or (found and (found[0][0] < 1 or max(ends) > MOST_LINES)):
            raise InvalidValueError("lines", "do not rise from 1")
        return cls(found)

    @cached_property
    def _starts(self) -> list[int]:
        return [first for first, _ in self.ranges]

    def __contains__(self, number: int) -> bool:
        """Return whether a line is among these."""
        index = bisect_right(self._starts, number) - 1
        return index >= 0 and number <= self.ranges[index][1]

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.ranges)

    def __str__(self) -> str:
        """Return them as text."""
        return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in self.ranges)

    def within(self, total: int) -> Iterator[int]:
        """Yield the lines up to a number."""
        for first, last in self.ranges:
            yield from range(first, min(last, total) + 1)

    @property
    def size(self) -> int:
        """Return how many lines these are."""
        return sum(last - first + 1 for first, last in self.ranges)
