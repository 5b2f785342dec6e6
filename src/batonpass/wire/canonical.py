"""Canonical JSON as of RFC 8785: each value has exactly one sequence of bytes. Base64 also has one spelling here.

A fast encoder that only sorts keys gives the canonical bytes because some values are refused: floating-point numbers,
integers of 2^53 or more, and keys outside the basic multilingual plane. RFC 8785 sorts keys by UTF-16 code units and
the encoder by code points, which is the same order only inside that plane.
"""

from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Final

import msgspec

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import LARGEST_INTEGER
from batonpass.model.base.ids import Digest

_LAST_OF_BMP: Final = "\uffff"
_DEEPEST: Final = 100
_ENCODER: Final = msgspec.json.Encoder(order="sorted")

encode_typed: Final = _ENCODER.encode
"""Encode a value whose types already exclude what canonical JSON cannot hold. Use `encode` for anything else."""


def encode(value: object) -> bytes:
    """Return the canonical bytes of a JSON value. Raises `InvalidValueError` with the path of a refused value."""
    _require_closed(value, "$", 0)
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        raise InvalidValueError("$", "holds a lone surrogate, which is not Unicode text") from None


def digest(data: bytes) -> Digest:
    """Return the sha256 digest of bytes."""
    return Digest(sha256(data).hexdigest())


def write_base64(data: bytes) -> str:
    """Return data as standard base64, padded and on one line."""
    return b64encode(data).decode("ascii")


def read_base64(field: str, text: str) -> bytes:
    """Return the bytes of standard base64. Raises `InvalidValueError` for any spelling but the canonical one."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        raise InvalidValueError(field, "not base64") from None
    # Decoders ignore the unused bits before the padding, so several texts decode to the same bytes. Only one of them is
    # accepted, so that equal bytes always have equal text.
    if write_base64(data) != text:
        raise InvalidValueError(field, "not canonical base64")
    return data


def _require_closed(value: object, path: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise InvalidValueError(path[:_DEEPEST], f"is nested more than {_DEEPEST} deep")
    match value:
        case None | bool() | str():
            return
        case int():
            if abs(value) > LARGEST_INTEGER:
                raise InvalidValueError(path, "is an integer of 2^53 or more; write it as a string")
        case dict():
            for key, item in value.items():
                _require_key(key, path)
                _require_closed(item, f"{path}.{key}", depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                _require_closed(item, f"{path}[{index}]", depth + 1)
        case _:
            raise InvalidValueError(path, f"{type(value).__name__} has no canonical form; write decimals as strings")


def _require_key(key: object, path: str) -> None:
    if not isinstance(key, str):
        raise InvalidValueError(path, "has a key that is not text")
    if key and max(key) > _LAST_OF_BMP:
        raise InvalidValueError(path, "has a key outside the basic multilingual plane")
