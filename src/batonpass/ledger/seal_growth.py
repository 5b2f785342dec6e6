"""Offline proof that a newer seal covers all that an older one covers, as witnesses of C2SP take it.

The text is the body of an `add-checkpoint` request of c2sp.org/tlog-witness: the older size, hashes, the newer seal.
"""

from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.ledger.merkle import HASH_LENGTH
from batonpass.ledger.note import parse_note, read_decimal
from batonpass.wire.canonical import read_base64, write_base64

_OLD: Final = "old "
_MOST_HASHES: Final = 63  # of a tree with as many leaves as a seal can have


class SealGrowth(Struct, frozen=True):
    """The hashes that lead from the tree of an older seal to that of a newer one, and the newer seal."""

    old_size: int
    hashes: tuple[bytes, ...]
    seal: str


def format_growth(growth: SealGrowth) -> str:
    """Return the text of a proof. Raises `InvalidValueError` if it could not be read back."""
    text = "\n".join([f"{_OLD}{growth.old_size}", *map(write_base64, growth.hashes), "", growth.seal])
    parse_growth(text)
    return text


def parse_growth(text: str) -> SealGrowth:
    """Return the proof in a text. Neither hashes nor signatures are checked here.

    Raises `InvalidValueError` with the part that is malformed.
    """
    head, separator, seal = text.partition("\n\n")
    first, *lines = head.split("\n")
    if not first.startswith(_OLD):
        raise InvalidValueError("proof", "the first line must be `old` and the size of the older seal")
    if not separator:
        raise InvalidValueError("proof", "an empty line and the newer seal must follow the hashes")
    parse_note(seal)
    if len(lines) > _MOST_HASHES:
        raise InvalidValueError("hash", f"at most {_MOST_HASHES} are read, here are {len(lines)}")
    hashes = tuple(read_base64("hash", line) for line in lines)
    if any(len(value) != HASH_LENGTH for value in hashes):
        raise InvalidValueError("hash", f"each must have {HASH_LENGTH} bytes")
    return SealGrowth(read_decimal("old", first.removeprefix(_OLD)), hashes, seal)
