"""Ids: a prefix that says what it is, and a UUID in 26 letters (TypeID). Text that sorts as its UUID does.

New things have a UUIDv7, so their rows fall on the last page of a table. What must be the same when it is made twice
has a UUIDv8 of a digest: a handoff of its parent and its key or words, a relay of its public key.
"""

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_SUFFIX: Final = r"_[0-7][0-9a-hjkmnp-tv-z]{25}$(?!\n)"  # `$` alone also stands before a newline at the end
_PAIRS: Final = [first + second for first in _LETTERS for second in _LETTERS]  # a letter is five bits

RunId: TypeAlias = Annotated[str, Meta(pattern=f"^run{_SUFFIX}")]
HandoffId: TypeAlias = Annotated[str, Meta(pattern=f"^handoff{_SUFFIX}")]
CallId: TypeAlias = Annotated[str, Meta(pattern=f"^call{_SUFFIX}")]
RelayId: TypeAlias = Annotated[str, Meta(pattern=f"^relay{_SUFFIX}")]
ReceiptId: TypeAlias = Annotated[str, Meta(pattern=f"^receipt{_SUFFIX}")]
StreamId: TypeAlias = Annotated[str, Meta(pattern=f"^(run|handoff|relay){_SUFFIX}")]
AccountId: TypeAlias = Annotated[str, Meta(pattern=f"^(run|handoff){_SUFFIX}")]

NEW_ID_ENTROPY: Final = 10


def new_id(prefix: str, at: int, entropy: bytes) -> str:
    """Return a new id: a UUIDv7 of a time in microseconds and ten random bytes."""
    high, low = int.from_bytes(entropy[:2], "big"), int.from_bytes(entropy[2:], "big")
    # 48 bits of milliseconds, version 7, 12 random bits, variant 2, 62 random bits.
    value = (at // 1000) << 80 | 0x7 << 76 | (high & 0xFFF) << 64 | 0x2 << 62 | (low & 0x3FFF_FFFF_FFFF_FFFF)
    return f"{prefix}_{_spell(value)}"


def derived_id(prefix: str, digest: bytes) -> str:
    """Return an id that follows from a digest: a UUIDv8 of its first 122 bits."""
    bits = int.from_bytes(digest[:16], "big") >> 6
    high, middle, low = bits >> 74, (bits >> 62) & 0xFFF, bits & 0x3FFF_FFFF_FFFF_FFFF
    value = high << 80 | 0x8 << 76 | middle << 64 | 0x2 << 62 | low
    return f"{prefix}_{_spell(value)}"


def short(identity: str) -> str:
    """Return the last four letters, by which people name a thing."""
    return identity[-4:]


def _spell(value: int) -> str:
    # From the right, as a TypeID is spelled; `base64.b32encode` goes from the left, and is Python as well.
    return "".join([_PAIRS[value >> shift & 0x3FF] for shift in range(120, -1, -10)])
