"""What was found in a text is remembered: what is carried along is read once in a process, and not at every hop."""

from collections.abc import Callable, Sequence
from functools import lru_cache, update_wrapper
from typing import Final, Generic, TypeVar

Found = TypeVar("Found")

LONGEST_REMEMBERED: Final = 4096  # characters: what is remembered of texts stays within a few megabytes
MOST_REMEMBERED: Final = 1024  # texts, for each function


class remembered(Generic[Found]):  # noqa: N801 - a decorator
    """Remember what a function finds in texts, for the latest of them. Nobody may change what it returns."""

    def __init__(self, find: Callable[[str], Found]) -> None:
        self._find = find
        self._kept = lru_cache(maxsize=MOST_REMEMBERED)(find)
        update_wrapper(self, find)

    def __call__(self, text: str) -> Found:
        """Return what is found in a text."""
        return self._kept(text) if len(text) <= LONGEST_REMEMBERED else self._find(text)

    def each(self, texts: Sequence[str]) -> list[Found]:
        """Return what is found in each of these texts. One that is remembered costs no call of ours."""
        if max(map(len, texts), default=0) <= LONGEST_REMEMBERED:
            return [*map(self._kept, texts)]
        return [self(text) for text in texts]
