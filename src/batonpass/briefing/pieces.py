"""What a briefing is made of, and which of it is given by reference when it is more than a reader can take."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct

from batonpass.briefing.quotes import is_inline

# What a piece costs beside its text: its bullet or its two marker lines.
_AROUND: Final = 80
_ONE_LINE: Final = 400  # characters; what is longer is quoted, so that it has an end that can be seen


class Rank(IntEnum):
    """What is given by reference first, if it is too much."""

    BODY = 0  # what is in a file
    STATE = 1  # what was found and said on the way
    ORDER = 2  # what to do, for whom, and what must hold


class Piece(Struct, frozen=True, kw_only=True):
    """One text of a baton, under its heading."""

    heading: str
    text: str
    rank: Rank
    ref: str  # what to ask for if it is not shown
    name: str  # what its quotation is called
    lead: str = ""  # who said it, in our own words
    note: str = ""  # what else is to be said about it, in our own words
    facts: tuple[tuple[str, str], ...] = ()  # for the line that opens its quotation

    @property
    def is_line(self) -> bool:
        """Return whether it can stand on a line of its own, unquoted."""
        return not self.facts and len(self.text) <= _ONE_LINE and is_inline(self.text)


def choose_deferred(pieces: Sequence[Piece], limit: int) -> frozenset[str]:
    """Return the references of what is not shown, so that the rest stays within a limit: by rank, the largest first."""
    total = sum(len(piece.text) + _AROUND for piece in pieces)
    deferred: set[str] = set()
    for piece in sorted(pieces, key=lambda piece: (piece.rank, -len(piece.text))):
        if total <= limit:
            break
        if len(piece.text) > _AROUND:  # a reference is no shorter than that
            deferred.add(piece.ref)
            total -= len(piece.text)
    return frozenset(deferred)
