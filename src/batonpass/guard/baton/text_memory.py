"""A memory of findings in texts: a text that travels is read once in a process, and not at every hop."""

from collections.abc import Callable, Sequence
from functools import lru_cache, update_wrapper
from typing import Final, Generic, TypeVar

Found = TypeVar("Found")

LONGEST_REMEMBERED: Final = 4096  # characters: what is remembered of texts stays within a few megabytes
MOST_REMEMBERED: Final = 1024  # texts, for each function


class remembered(Generic[Found]):  # noqa: N801 - a decorator
    """Remember the results of a function for the latest texts. Nobody may change them."""

    def __init__(self, find: Callable[[str], Found]) -> None:
        self._find = find
        self._kept = lru_cache(maxsize=MOST_REMEMBERED)(find)
        update_wrapper(self, find)

    def __call__(self, text: str) -> Found:
        """Return the findings in a text."""
        return self._kept(text) if len(text) <= LONGEST_REMEMBERED else self._find(text)

    def each(self, texts: Sequence[str]) -> list[Found]:
        """Return the findings in each of these texts. A remembered one costs no Python call."""
        if max(map(len, texts), default=0) <= LONGEST_REMEMBERED:
            return [*map(self._kept, texts)]
        return [self(text) for text in texts]
