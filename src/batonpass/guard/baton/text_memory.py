"""What was found in a text is remembered: what is carried along is read once in a process, and not at every hop."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

_Found = TypeVar("_Found")

LONGEST_REMEMBERED: Final = 4096  # characters: what is remembered of texts stays within a few megabytes
MOST_REMEMBERED: Final = 1024  # texts, for each function


def remembered(find: Callable[[str], _Found]) -> Callable[[str], _Found]:
    """Remember what a function finds in texts, for the latest of them. Nobody may change what it returns."""
    kept = lru_cache(maxsize=MOST_REMEMBERED)(find)

    @wraps(find)
    def recall(text: str) -> _Found:
        return kept(text) if len(text) <= LONGEST_REMEMBERED else find(text)

    return recall
