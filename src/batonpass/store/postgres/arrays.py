"""Arrays as PostgreSQL reads them. The driver's own way takes longer than all the rest of an append on this side."""

from collections.abc import Sequence
from struct import Struct
from typing import Final

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER: Final = Struct("!iiIii")  # dimensions, whether there are nulls, type of the elements, how many, first index
_LENGTH: Final = Struct("!i")


class TextArray:
    """Texts, to be sent as text[]."""

    type, element = 1009, 25

    def __init__(self, items: Sequence[str]) -> None:
        self.items = [item.encode() for item in items]


class BytesArray:
    """Byte strings, to be sent as bytea[]."""

    type, element = 1001, 17

    def __init__(self, items: Sequence[bytes]) -> None:
        self.items = list(items)


class _TextArrayDumper(Dumper):
    format = Format.BINARY
    oid = TextArray.type

    def dump(self, obj: TextArray | BytesArray) -> bytes:
        parts = [_HEADER.pack(1, 0, obj.element, len(obj.items), 1)]
        for item in obj.items:
            parts += (_LENGTH.pack(len(item)), item)
        return b"".join(parts)


class _BytesArrayDumper(_TextArrayDumper):
    oid = BytesArray.type


psycopg.adapters.register_dumper(TextArray, _TextArrayDumper)
psycopg.adapters.register_dumper(BytesArray, _BytesArrayDumper)
