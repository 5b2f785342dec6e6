"""Scopes: sets of permits, and whether one covers another."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance
from batonpass.model.grants.call import Call
from batonpass.model.grants.permit import Permit

MOST_PERMITS: Final = 256


class Scope(Struct, frozen=True):
    """Allows every call that one of its permits allows, and no other. Without permits it allows nothing."""

    permits: tuple[Permit, ...] = ()

    def __post_init__(self) -> None:
        unique = {require_instance("permits", permit, Permit).text: permit for permit in self.permits}
        if len(unique) > MOST_PERMITS:
            raise InvalidValueError("permits", f"are {len(unique):,}; at most {MOST_PERMITS} are held at once")
        force_setattr(self, "permits", tuple(unique[text] for text in sorted(unique)))

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the permits as texts, in canonical order."""
        return tuple(permit.text for permit in self.permits)

    def __bool__(self) -> bool:
        return bool(self.permits)

    def __str__(self) -> str:
        return " | ".join(self.lines) or "nothing"

    def find_permit(self, call: Call, at: datetime) -> Permit | None:
        """Return the first permit that allows a call; None if none does."""
        place = call.place
        for permit in self.permits:
            if permit.allows(call, at, place):
                return permit
        return None

    def allows(self, call: Call, at: datetime) -> bool:
        """Return whether a permit allows a call."""
        return self.find_permit(call, at) is not None

    def covers(self, other: "Scope") -> bool:
        """Return whether this scope allows every call that the other one allows, as often and as long."""
        return not any(self.find_excess(other))

    def find_excess(self, other: "Scope", *, unsaid: bool = False) -> Iterator[Permit]:
        """Yield the permits of another scope that this one does not cover.

        It never misses a permit that allows a call which this scope does not allow. In a few cases, described in
        docs/spec/grant.md, section 3, it yields a permit that allows no such call.
        """
        return (permit for permit in other.permits if self._covering(permit, unsaid=unsaid) is None)

    def narrow(self, asked: "Scope") -> "Scope":
        """Return the scope that was asked for, within the limits and ends of this scope.

        Limits and ends that the asked permits do not have are taken from here. The caller has checked with
        `find_excess` that everything is covered. A permit that is not covered is left out.
        """
        narrowed = []
        for permit in asked.permits:
            for held in self._covering(permit, unsaid=True) or ():
                permit = permit.within(held)  # noqa: PLW2901 - the same permit, once more narrowed
            if self._covering(permit, unsaid=False) is not None:
                narrowed.append(permit)
        return Scope(tuple(narrowed))

    def meet(self, other: "Scope") -> "Scope":
        """Return the intersection of two scopes. Raises `InvalidValueError` if it has far too many permits."""
        pairs = ((mine, theirs) for mine in self.permits for theirs in other.permits)
        return Scope(_without_covered(both for mine, theirs in pairs if (both := mine.meet(theirs)) is not None))

    def _covering(self, permit: Permit, *, unsaid: bool) -> tuple[Permit, ...] | None:
        """Return permits of this scope that together cover the given one; None if they do not."""
        for mine in self.permits:
            if mine.covers(permit, unsaid=unsaid):
                return (mine,)
        if not permit.pattern.more or not self.permits:
            return None
        # `a/**` is also covered by `a/*` and `a/*/**` together. So it is split by length, and each length needs one
        # permit of ours. All lengths above that of our longest pattern are alike.
        longest = max(len(mine.pattern.segments) for mine in self.permits)
        found = []
        for pattern in permit.pattern.by_length(longest):
            part = permit.of(pattern)
            enough = next((mine for mine in self.permits if mine.covers(part, unsaid=unsaid)), None)
            if enough is None:
                return None
            found.append(enough)
        return tuple(found)


NOTHING: Final = Scope()


def _without_covered(permits: Iterable[Permit]) -> tuple[Permit, ...]:
    kept: list[Permit] = []
    for permit in permits:
        if not any(other.covers(permit) for other in kept):
            kept = [other for other in kept if not permit.covers(other)]
            kept.append(permit)
            # Wide permits tend to come first, so few of these would still be covered. Comparing all pairs of all
            # permits that two scopes can produce would take minutes.
            if len(kept) > 2 * MOST_PERMITS:
                raise InvalidValueError("permits", f"are far more than the {MOST_PERMITS} that are held at once")
    return tuple(kept)
