"""Scopes: sets of permits, and which of two holds more."""

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
    """What may be done: everything that one of the permits allows, and nothing else. Without permits, nothing."""

    permits: tuple[Permit, ...] = ()

    def __post_init__(self) -> None:
        unique = {require_instance("permits", permit, Permit).text: permit for permit in self.permits}
        if len(unique) > MOST_PERMITS:
            raise InvalidValueError("permits", f"are {len(unique):,}; at most {MOST_PERMITS} are held at once")
        force_setattr(self, "permits", tuple(unique[text] for text in sorted(unique)))

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the permits as texts, in their one order."""
        return tuple(permit.text for permit in self.permits)

    def __bool__(self) -> bool:
        return bool(self.permits)

    def __str__(self) -> str:
        return " | ".join(self.lines) or "nothing"

    def find_permits(self, call: Call, at: datetime) -> Iterator[Permit]:
        """Yield the permits that allow a call, in their order."""
        place = call.place
        return (permit for permit in self.permits if permit.allows(call, at, place))

    def find_permit(self, call: Call, at: datetime) -> Permit | None:
        """Return the first permit that allows a call, if any does."""
        place = call.place
        for permit in self.permits:
            if permit.allows(call, at, place):
                return permit
        return None

    def allows(self, call: Call, at: datetime) -> bool:
        """Return whether some permit allows a call."""
        return self.find_permit(call, at) is not None

    def covers(self, other: "Scope") -> bool:
        """Return whether every call that the other scope allows is allowed by this one, as often and as long."""
        return not any(self.find_excess(other))

    def find_excess(self, other: "Scope", *, unsaid: bool = False) -> Iterator[Permit]:
        """Yield the permits of another scope that this one does not cover.

        Never passes over one that allows a call which this scope does not. Of those that it yields, all but a few
        allow such a call; the few are described in docs/spec/grant.md, section 3.
        """
        return (permit for permit in other.permits if self._covering(permit, unsaid=unsaid) is None)

    def narrow(self, asked: "Scope") -> "Scope":
        """Return what was asked for, lasting no longer and for no more calls than this scope lets it.

        What the asked permits leave unsaid, how often and until when, is taken from here. The caller has made sure
        with `find_excess` that all of it is covered; a permit that is not covered is left out.
        """
        narrowed = []
        for permit in asked.permits:
            for held in self._covering(permit, unsaid=True) or ():
                permit = permit.within(held)  # noqa: PLW2901 - the same permit, once more narrowed
            if self._covering(permit, unsaid=False) is not None:
                narrowed.append(permit)
        return Scope(tuple(narrowed))

    def meet(self, other: "Scope") -> "Scope":
        """Return the scope of what both allow, exactly. Raises `InvalidValueError` if it has far too many permits."""
        pairs = ((mine, theirs) for mine in self.permits for theirs in other.permits)
        return Scope(_without_covered(both for mine, theirs in pairs if (both := mine.meet(theirs)) is not None))

    def _covering(self, permit: Permit, *, unsaid: bool) -> tuple[Permit, ...] | None:
        """Return permits that together cover one; None if they do not."""
        for mine in self.permits:
            if mine.covers(permit, unsaid=unsaid):
                return (mine,)
        if not permit.pattern.more or not self.permits:
            return None
        # `a/**` is also covered by `a/*` and `a/*/**`: length by length, one of ours has to be enough. Longer than
        # our longest pattern, all lengths are alike.
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
            # Wide permits stand before narrow ones, so few of these would still be covered. Comparing each with each
            # of as many as two scopes can make would take minutes.
            if len(kept) > 2 * MOST_PERMITS:
                raise InvalidValueError("permits", f"are far more than the {MOST_PERMITS} that are held at once")
    return tuple(kept)
