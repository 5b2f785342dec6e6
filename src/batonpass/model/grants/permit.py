"""Permits: one line of a scope, with its pattern, conditions, limits and end."""

from datetime import datetime
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, require_utc
from batonpass.model.grants.call import Call
from batonpass.model.grants.condition import Between, Condition, Like, OneOf, Under, holds, implies, word
from batonpass.model.grants.limits import UNLIMITED, Limits
from batonpass.model.grants.pattern import Pattern
from batonpass.model.grants.resource import Resource

_MOST_CONDITIONS: Final = 32


class Permit(Struct, frozen=True, dict=True):
    """Allows calls that match the pattern and whose arguments meet every condition.

    `str()` is its canonical spelling, on one line. Conditions on one argument are joined and sorted, so permits that
    differ only in the order of conditions are equal.
    """

    pattern: Pattern
    where: tuple[Condition, ...] = ()
    limits: Limits = UNLIMITED
    until: datetime | None = None

    def __post_init__(self) -> None:
        require_instance("pattern", self.pattern, Pattern)
        require_instance("limits", self.limits, Limits)
        if self.until is not None:
            require_utc("until", self.until)
        if self.where:
            if (where := _joined(require_instance("where", self.where, tuple))) is None:
                raise InvalidValueError("where", f"no call keeps to all of: {', '.join(map(str, self.where))}")
            force_setattr(self, "where", where)

    @cached_property
    def text(self) -> str:
        """Return the canonical spelling."""
        text = word(str(self.pattern))
        if self.where:
            text += f" where {', '.join(map(str, self.where))}"
        if self.limits is not UNLIMITED and self.limits != UNLIMITED:
            text += f"; {self.limits}"
        if self.until is not None:
            text += f"; until {spell_time(self.until)}"
        return text

    def __str__(self) -> str:
        return self.text

    def allows(self, call: Call, at: datetime, place: Resource | None = None) -> bool:
        """Return whether the permit allows a call at a moment. Limits are not counted here.

        `place` is `call.place`, for callers that ask many permits.
        """
        if not self.pattern.matches(call.action, place or call.place) or (self.until is not None and at >= self.until):
            return False
        return not self.where or all(holds(condition, call.arguments) for condition in self.where)

    def covers(self, other: "Permit", *, unsaid: bool = False) -> bool:
        """Return whether this permit allows every call that the other one allows, as often and as long.

        With `unsaid`, limits and an end that the other permit does not have are taken to be those of this one.
        """
        return (
            self.pattern.covers(other.pattern)
            and self._demands_no_more(other)
            and self._lasts_as_long(other, unsaid=unsaid)
        )

    def _demands_no_more(self, other: "Permit") -> bool:
        return all(
            implies([held for held in other.where if held.argument == wanted.argument], wanted) for wanted in self.where
        )

    def _lasts_as_long(self, other: "Permit", *, unsaid: bool) -> bool:
        if self.until is not None and (not unsaid if other.until is None else other.until > self.until):
            return False
        return all(unsaid and getattr(other.limits, unit) is None for unit in self.limits.find_excess(other.limits))

    def meet(self, other: "Permit") -> "Permit | None":
        """Return the permit of everything that both allow; None if that is nothing."""
        pattern = self.pattern.meet(other.pattern)
        if pattern is None or (where := _joined((*self.where, *other.where))) is None:
            return None
        return Permit(pattern, where, self.limits.meet(other.limits), earlier(self.until, other.until))

    def within(self, other: "Permit") -> "Permit":
        """Return this permit with the lower limits and the earlier end of both."""
        return Permit(self.pattern, self.where, self.limits.meet(other.limits), earlier(self.until, other.until))

    def of(self, pattern: Pattern) -> "Permit":
        """Return this permit with another pattern."""
        return Permit(pattern, self.where, self.limits, self.until)


def earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the earlier of two ends. None: no end."""
    return min((end for end in (one, other) if end is not None), default=None)


def spell_time(at: datetime) -> str:
    """Return a time as it is spelled in signed bytes and in permits."""
    return at.isoformat().replace("+00:00", "Z")


def _joined(conditions: tuple[Condition, ...]) -> tuple[Condition, ...] | None:
    """Return conditions in canonical order, with those on one argument joined; None if no call can meet them all."""
    different = dict.fromkeys(conditions)
    if len(different) > _MOST_CONDITIONS:
        raise InvalidValueError("where", f"has {len(different)} conditions; at most {_MOST_CONDITIONS} are read")
    joined: list[Condition] = []
    ordered = sorted(different, key=attrgetter("argument"))
    for argument, group in groupby(ordered, key=attrgetter("argument")):
        given = list(group)
        kept = given if len(given) == 1 else _of_one_argument(argument, given)
        if kept is None:
            return None
        joined += kept
    return tuple(sorted(joined, key=str))


def _of_one_argument(argument: str, given: list[Condition]) -> list[Condition] | None:
    choices = [condition for condition in given if isinstance(condition, OneOf)]
    if choices:
        left = tuple(value for value in choices[0].values if all(condition.allows(value) for condition in given))
        return [OneOf(argument, left)] if left else None
    ranges = [condition for condition in given if isinstance(condition, Between)]
    places = [condition for condition in given if isinstance(condition, Under)]
    forms = {condition for condition in given if isinstance(condition, Like)}
    kept: list[Condition] = [one for one in forms if not any(one.contains(other) for other in forms - {one})]
    if ranges:
        least = max((Decimal(one.least) for one in ranges if one.least is not None), default=None)
        most = min((Decimal(one.most) for one in ranges if one.most is not None), default=None)
        if least is not None and most is not None and least > most:
            return None
        kept.append(Between(argument, _text(least), _text(most)))
    if places:
        deepest = max(places, key=lambda place: len(place.place.segments))
        if not all(place.contains(deepest) for place in places):
            return None
        kept.append(deepest)
    return kept


def _text(number: Decimal | None) -> str | None:
    return None if number is None else format(number, "f")
