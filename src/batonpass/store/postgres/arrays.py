"""Encodes arrays for PostgreSQL. The driver's own way takes longer than all the rest of an append on this side."""

from collections.abc import Sequence
from struct import Struct
from typing import Final

_HEADER: Final = Struct("!iiIii")  # dimensions, whether there are nulls, type of the elements, how many, first index
_LENGTH: Final = Struct("!i")
_NULL: Final = _LENGTH.pack(-1)
_TRUTH: Final = {True: b"\x01", False: b"\x00"}


class Array:
    """Elements as bytes, and the fixed number (OID) of their type in PostgreSQL."""

    element = 0

    def __init__(self, items: Sequence[bytes | None]) -> None:
        self.items = items


class TextArray(Array):
    """Texts, to be sent as text[]."""

    element = 25

    def __init__(self, items: Sequence[str | None]) -> None:
        super().__init__([None if item is None else item.encode() for item in items])


class BytesArray(Array):
    """Byte strings, to be sent as bytea[]."""

    element = 17


class NumberArray(Array):
    """Integers, to be sent as bigint[]."""

    element = 20

    def __init__(self, items: Sequence[int]) -> None:
        super().__init__([item.to_bytes(8, "big", signed=True) for item in items])


class TruthArray(Array):
    """Booleans, to be sent as boolean[]."""

    element = 16

    def __init__(self, items: Sequence[bool]) -> None:
        super().__init__([_TRUTH[item] for item in items])


def dump(array: Array) -> bytes:
    """Return an array in PostgreSQL's binary format."""
    parts = [_HEADER.pack(1, None in array.items, array.element, len(array.items), 1)]
    for item in array.items:
        parts += (_NULL,) if item is None else (_LENGTH.pack(len(item)), item)
    return b"".join(parts)
