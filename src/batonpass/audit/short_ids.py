"""Ids shortened for people to their last characters, since those are random."""

from collections.abc import Sequence
from typing import Final

LAST: Final = "last"

_SHORT: Final = 4
_LONG: Final = 26


def ending(identifier: str, length: int = _SHORT) -> str:
    """Return the last characters of an id."""
    return identifier[-length:]


def telling_length(identifiers: Sequence[str], least: int = _SHORT) -> int:
    """Return how many last characters make these ids distinct."""
    distinct = len(set(identifiers))
    lengths = range(least, _LONG)
    return next((size for size in lengths if len({ending(one, size) for one in identifiers}) == distinct), _LONG)
