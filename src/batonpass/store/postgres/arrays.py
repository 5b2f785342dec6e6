"""Encodes arrays for PostgreSQL. The driver's own way takes longer than all the rest of an append on this side."""

from collections.abc import Sequence
from itertools import chain
from struct import Struct
from typing import Any, ClassVar, Final

_HEADER: Final = Struct("!iiIii")  # dimensions, whether there are nulls, type of the elements, how many, first index
_LENGTH: Final = Struct("!i")
_NULL: Final = _LENGTH.pack(-1)
_TRUTH: Final = {True: b"\x01", False: b"\x00"}


class Array:
    """Elements, the fixed number (OID) of their type in PostgreSQL, and the encoder of one element.

    The elements are encoded when the array is sent. The encoder is not written in Python: a batch has twenty arrays.
    """

    element: ClassVar = 0
    encode: "ClassVar[staticmethod[[Any], bytes]]"

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items


class TextArray(Array):
    """Texts, to be sent as text[]."""

    __slots__ = ()

    element = 25
    encode = staticmethod(str.encode)


class BytesArray(Array):
    """Byte strings, to be sent as bytea[]."""

    __slots__ = ()

    element = 17
    encode = staticmethod(bytes)


class NumberArray(Array):
    """Integers, to be sent as bigint[]."""

    __slots__ = ()

    element = 20
    encode = staticmethod(Struct("!q").pack)


class TruthArray(Array):
    """Booleans, to be sent as boolean[]."""

    __slots__ = ()

    element = 16
    encode = staticmethod(_TRUTH.__getitem__)


def dump(array: Array) -> bytes:
    """Return an array in PostgreSQL's binary format."""
    items = array.items
    header = _HEADER.pack(1, None in items, array.element, len(items), 1)
    if None in items:
        encode = array.encode
        encoded = [b"" if item is None else encode(item) for item in items]
        lengths = [_NULL if item is None else _LENGTH.pack(len(one)) for item, one in zip(items, encoded, strict=True)]
    else:
        encoded = [*map(array.encode, items)]
        lengths = [*map(_LENGTH.pack, map(len, encoded))]
    return b"".join((header, *chain.from_iterable(zip(lengths, encoded, strict=True))))
