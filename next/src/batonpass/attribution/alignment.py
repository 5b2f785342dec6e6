"""The lines that an unrecorded change left alone, as far as the two texts prove it.

A diff is one account of an edit, and seldom the only one. So a line counts as kept only if it is distinctive and stands
once on both sides, in one order; or if all between two such lines is as it was.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from batonpass.runtime.effects import gaps, longest_rise

_LETTERS: Final = 12
# Long enough, and yet typed by everybody: finding one again says nothing about who wrote it.
_COMMON: Final = re.compile(
    r"(?:import|from|use|using|package|export|require|include|return|raise|throw|except|catch|else)\b"
    r"|#include|#!|@|if __name__|if TYPE_CHECKING|def __init__\(self"
)

Texts = Sequence[str | None]
"""The lines of a text. None: a line whose words are not known."""


def align(old: Texts, new: Texts) -> dict[int, int]:
    """Return which line of `old` a line of `new` is, for those of which that is certain."""
    places_old, places_new = _single_places(old), _single_places(new)
    pairs = sorted((place, places_old[text]) for text, place in places_new.items() if text in places_old)
    kept = dict(longest_rise(pairs))
    for gap_old, gap_new in gaps(sorted(kept.items()), len(old), len(new)):
        before = [old[place] for place in gap_old]
        if None not in before and before == [new[place] for place in gap_new]:
            kept |= zip(gap_new, gap_old, strict=True)
    return kept


def is_distinctive(line: str) -> bool:
    """Return whether a line is unlikely to be typed twice by chance."""
    return sum(map(str.isalnum, line)) >= _LETTERS and _COMMON.match(line.strip()) is None


def _single_places(texts: Texts) -> Mapping[str, int]:
    times = Counter(texts)
    return {text: place for place, text in enumerate(texts) if text and times[text] == 1 and is_distinctive(text)}
