"""Changes as PostgreSQL's binary form of an array of the type `change`, which is the one parameter of an append.

The driver's own ways, a list for each column or a class registered for the type, cost the caller more than the server
needs to write the rows.
"""

from collections.abc import Sequence
from operator import attrgetter
from struct import Struct as Layout
from typing import Final, get_type_hints

from batonpass.model.change import Change
from batonpass.model.receipt import Signed

_BYTES: Final = 17  # the types' numbers, the same on every server
_INTEGER: Final = 20
_TEXT: Final = 25

_RECEIPT: Final = ("payload", "signature", "cosignature", "contents")
COLUMNS: Final = (*Change.__struct_fields__, *_RECEIPT)
_HINTS: Final = get_type_hints(Change)
_TYPES: Final = tuple(_INTEGER if _HINTS[name] in {int, int | None} else _TEXT for name in Change.__struct_fields__)
_values_of_change: Final = attrgetter(*Change.__struct_fields__)
_values_of_receipt: Final = attrgetter(*_RECEIPT)

_pack_integer: Final = Layout(">Iiq").pack
_pack_header: Final = Layout(">Ii").pack
_pack_length: Final = Layout(">i").pack
_pack_array: Final = Layout(">iiIii").pack
_NULLS: Final = {kind: _pack_header(kind, -1) for kind in (_BYTES, _INTEGER, _TEXT)}
_ROW: Final = _pack_length(len(COLUMNS))


def encode_change(change: Change, signed: Signed) -> bytes:
    """Return one element of the array: a change, and the receipt that makes it."""
    row = [_ROW]
    for kind, value in zip(_TYPES, _values_of_change(change), strict=True):
        if value is None:
            row.append(_NULLS[kind])
        elif kind == _INTEGER:
            row.append(_pack_integer(kind, 8, value))
        else:
            text = value.encode()
            row += (_pack_header(kind, len(text)), text)
    for data in _values_of_receipt(signed):
        row += (_NULLS[_BYTES],) if data is None else (_pack_header(_BYTES, len(data)), data)
    encoded = b"".join(row)
    return _pack_length(len(encoded)) + encoded


def encode_array(rows: Sequence[bytes], kind: int) -> bytes:
    """Return an array of the type `change`, which has this number in its database."""
    return _pack_array(1, 0, kind, len(rows), 1) + b"".join(rows)
