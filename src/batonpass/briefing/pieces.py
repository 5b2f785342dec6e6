"""The parts of a briefing, and which of them are given by reference when there is too much to read."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct

from batonpass.briefing.quotes import is_inline

# Characters of a piece besides its text: its bullet, or its two marker lines.
_AROUND: Final = 80
_ONE_LINE: Final = 400  # characters; longer texts are quoted, so that their end is visible


class Rank(IntEnum):
    """The order in which pieces are replaced by references."""

    BODY = 0  # the content of a file
    STATE = 1  # found or said along the way
    ORDER = 2  # what to do, for whom, and what must hold


class Piece(Struct, frozen=True, kw_only=True):
    """One text of a baton, under its heading."""

    heading: str
    text: str
    rank: Rank
    ref: str  # reference under which it can be read if it is not shown
    name: str  # name of its quotation
    lead: str = ""  # who said it, in our own words
    note: str = ""  # further remarks, in our own words
    facts: tuple[tuple[str, str], ...] = ()  # for the line that opens its quotation

    @property
    def is_line(self) -> bool:
        """Return whether it fits on one line without quotes."""
        return not self.facts and len(self.text) <= _ONE_LINE and is_inline(self.text)


def choose_deferred(pieces: Sequence[Piece], limit: int) -> frozenset[str]:
    """Return the references of the pieces to leave out to stay within a limit: by rank, the largest first."""
    total = sum(len(piece.text) + _AROUND for piece in pieces)
    deferred: set[str] = set()
    for piece in sorted(pieces, key=lambda piece: (piece.rank, -len(piece.text))):
        if total <= limit:
            break
        if len(piece.text) > _AROUND:  # a reference would be no shorter
            deferred.add(piece.ref)
            total -= len(piece.text)
    return frozenset(deferred)
