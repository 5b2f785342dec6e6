"""Limits: how much may be used altogether. A unit that is None has no limit."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_integer
from batonpass.model.base.decimals import as_decimal

UNITS: Final = ("calls", "spend", "rows", "bytes", "tokens", "seconds")


class Limits(Struct, frozen=True, kw_only=True):
    """The most that may be used of each unit.

    `spend` is a decimal text, in the currency of the program that reports costs. All others are whole numbers.
    """

    calls: int | None = None
    spend: str | None = None
    rows: int | None = None
    bytes: int | None = None
    tokens: int | None = None
    seconds: int | None = None  # wall time of calls

    def __post_init__(self) -> None:
        for unit in UNITS:
            given = getattr(self, unit)
            if given is not None and unit == "spend":
                force_setattr(self, unit, as_decimal(f"limits.{unit}", given))
                if given.startswith("-"):
                    raise InvalidValueError("limits.spend", f"{given} is less than nothing")
            elif given is not None:
                require_integer(f"limits.{unit}", given)

    def find_excess(self, other: "Limits") -> Iterator[str]:
        """Yield the units in which the other limits allow more than these."""
        for unit in UNITS:
            mine, theirs = _amount(self, unit), _amount(other, unit)
            if mine is not None and (theirs is None or theirs > mine):
                yield unit

    def meet(self, other: "Limits") -> "Limits":
        """Return the lower limit of both in every unit."""
        if self is other or other is UNLIMITED:
            return self
        if self is UNLIMITED:
            return other
        least = {
            unit: min(
                (given for limits in (self, other) if (given := getattr(limits, unit)) is not None),
                key=Decimal,
                default=None,
            )
            for unit in UNITS
        }
        return Limits(**least)

    def __str__(self) -> str:
        amounts = [f"{given} {unit}" for unit in UNITS if (given := getattr(self, unit)) is not None]
        return f"at most {', '.join(amounts)}" if amounts else ""


UNLIMITED: Final = Limits()


def _amount(limits: Limits, unit: str) -> Decimal | int | None:
    given = getattr(limits, unit)
    return Decimal(given) if unit == "spend" and given is not None else given
