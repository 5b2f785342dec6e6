"""Decimals in signed bytes: exact texts, with one spelling for each number."""

import math
import re
from decimal import Decimal
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten

_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?")
_MOST_BITS: Final = 1024  # converting larger integers takes too long for a check


def as_decimal(field: str, value: str | int | Decimal) -> str:
    """Return the canonical spelling of a decimal, without superfluous zeros. Raises `InvalidValueError`."""
    text = format(value, "f") if isinstance(value, Decimal) else str(value) if type(value) is int else value
    if not isinstance(text, str) or _DECIMAL.fullmatch(text) is None:
        raise InvalidValueError(field, f"{shorten(value)} is not a decimal such as 100 or 12.50")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def number_of(value: object) -> Decimal | None:
    """Return the value of an argument as a number; None if it is no finite number and no plain decimal text."""
    match value:
        case bool():
            return None
        case int():
            return Decimal(value) if value.bit_length() <= _MOST_BITS else None
        case float():
            # By its decimal spelling, not by its binary value: whoever writes the bound 0.1 means a tenth.
            return Decimal(repr(value)) if math.isfinite(value) else None
        case Decimal():
            return value if value.is_finite() else None
        case str():
            return Decimal(value) if _DECIMAL.fullmatch(value) else None
        case _:
            return None
