"""The digest of a call: tool, action, resource and arguments, in canonical JSON as of RFC 8785.

Arguments can be any JSON, including floating-point numbers. `canonical.encode` refuses those, so they are spelled here.
"""

import math
from typing import Any, Final

import msgspec

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import LARGEST_INTEGER
from batonpass.model.base.ids import Digest
from batonpass.model.grants.call import Call
from batonpass.wire.canonical import digest, encode_typed

_LAST_OF_BMP: Final = "\uffff"
_DEEPEST: Final = 100
# The exponents at which ECMAScript, and so RFC 8785, begins to write an `e`.
_LARGEST_PLAIN: Final = 21
_SMALLEST_PLAIN: Final = -6


def digest_call(call: Call) -> Digest:
    """Return the digest of a call. Raises `InvalidValueError` for arguments that JSON cannot represent exactly."""
    said = {
        "action": call.action,
        "arguments": _closed(dict(call.arguments), "arguments", 0),
        "resource": call.resource,
        "tool": call.tool,
    }
    try:
        return digest(encode_typed(said))
    except UnicodeEncodeError:
        raise InvalidValueError("arguments", "hold a lone surrogate, which is not Unicode text") from None


def _closed(value: object, path: str, depth: int) -> Any:  # noqa: ANN401 - JSON
    if depth > _DEEPEST:
        raise InvalidValueError("arguments", f"are nested more than {_DEEPEST} deep")
    match value:
        case None | bool() | str():
            return value
        case int():
            if abs(value) > LARGEST_INTEGER:
                raise InvalidValueError(path, "is an integer of 2^53 or more; write it as a string")
            return value
        case float():
            return msgspec.Raw(spell_float(value, path))
        case dict():
            return {_key(name, path): _closed(item, f"{path}.{name}", depth + 1) for name, item in value.items()}
        case list() | tuple():
            return [_closed(item, path, depth + 1) for item in value]
        case _:
            raise InvalidValueError(path, f"{type(value).__name__} is nothing that JSON holds")


def _key(name: object, path: str) -> str:
    if not isinstance(name, str):
        raise InvalidValueError(path, "has a key that is not text")
    if name and max(name) > _LAST_OF_BMP:
        raise InvalidValueError(path, "has a key outside the basic multilingual plane")
    return name


def spell_float(value: float, path: str) -> bytes:
    """Return a number as ECMAScript writes it: the shortest digits that read back as the same number.

    Raises `InvalidValueError` if it is not finite. RFC 8785 requires this spelling, and Python's `repr` has the same
    digits but other rules for the exponent. So only the decimal point is moved here.
    """
    if not math.isfinite(value):
        raise InvalidValueError(path, "is not a finite number")
    if value == 0:
        return b"0"
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    raw = whole + fraction
    digits = raw.lstrip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = len(whole) + int(exponent or 0) - (len(raw) - len(digits))
    digits = digits.rstrip("0")
    return f"{sign}{_placed(digits, point)}".encode()


def _placed(digits: str, point: int) -> str:
    if len(digits) <= point <= _LARGEST_PLAIN:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _LARGEST_PLAIN:
        return f"{digits[:point]}.{digits[point:]}"
    if _SMALLEST_PLAIN < point <= 0:
        return f"0.{'0' * -point}{digits}"
    exponent = f"e{point - 1:+d}"
    return f"{digits[0]}.{digits[1:]}{exponent}" if len(digits) > 1 else f"{digits}{exponent}"
