"""The lines that an unrecorded change left alone, as far as the two texts prove it.

A diff is one account of an edit, and seldom the only one. So a line counts as kept only if it is distinctive and stands
once on both sides, in one order; or if it lies at the edge between two such lines, where every account of one edit
keeps it. A brace that was deleted here and typed again there is not the same brace.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

_LETTERS: Final = 12
# Long enough, and yet typed by everybody: finding one again says nothing about who wrote it.
_COMMON: Final = re.compile(
    r"(?:import|from|use|using|package|export|require|include|return|raise|throw|except|catch|else)\b"
    r"|#include|#!|@|if __name__|if TYPE_CHECKING|def __init__\(self"
)

Texts = Sequence[str | None]
"""The lines of a text. None: a line whose words are not known."""


def align(old: Texts, new: Texts, writers: Sequence[Hashable]) -> dict[int, int]:
    """Return which line of `old` a line of `new` is, for those of which that is certain. `writers` are of `old`."""
    places_old, places_new = _single_places(old), _single_places(new)
    pairs = sorted((place, places_old[text]) for text, place in places_new.items() if text in places_old)
    kept = dict(_longest_rise(pairs))
    for gap_old, gap_new in _gaps(sorted(kept.items()), len(old), len(new)):
        kept |= _align_gap(old, new, writers, gap_old, gap_new)
    return kept


def is_distinctive(line: str) -> bool:
    """Return whether a line is unlikely to be typed twice by chance."""
    return sum(map(str.isalnum, line)) >= _LETTERS and _COMMON.match(line.strip()) is None


def _single_places(texts: Texts) -> Mapping[str, int]:
    times = Counter(texts)
    return {text: place for place, text in enumerate(texts) if text and times[text] == 1 and is_distinctive(text)}


def _longest_rise(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
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


def _gaps(pairs: Sequence[tuple[int, int]], end_old: int, end_new: int) -> Iterator[tuple[range, range]]:
    at_old = at_new = 0
    for new, old in (*pairs, (end_new, end_old)):
        yield range(at_old, old), range(at_new, new)
        at_old, at_new = old + 1, new + 1


def _align_gap(
    old: Texts, new: Texts, writers: Sequence[Hashable], gap_old: range, gap_new: range
) -> Iterator[tuple[int, int]]:
    """Yield the lines at both edges of a gap between two kept lines, unless another account would keep others."""
    before, after = [old[place] for place in gap_old], [new[place] for place in gap_new]
    if None in before or None in after:
        return  # an unknown line may be the one that was kept
    if before == after:
        yield from zip(gap_new, gap_old, strict=True)
        return
    candidates = defaultdict(set)
    for place in gap_old:
        candidates[old[place]].add(writers[place])
    times_before, times_after = Counter(before), Counter(after)
    shorter = min(len(before), len(after))
    top = next((step for step in range(shorter) if before[step] != after[step]), shorter)
    rest = range(1, shorter - top + 1)
    bottom = next((step - 1 for step in rest if before[-step] != after[-step]), shorter - top)
    edges = [(step, step) for step in range(top)]
    edges += [(len(after) - step, len(before) - step) for step in range(1, bottom + 1)]
    for place_new, place_old in edges:
        text = after[place_new]
        # Once more than before, one of them is new, and nobody can tell which; of several writers' nobody knows whose.
        if times_after[text] <= times_before[text] and len(candidates[text]) == 1:
            yield gap_new[place_new], gap_old[place_old]
