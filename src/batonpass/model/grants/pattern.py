"""Patterns: `action:resource`, the calls that a permit is about.

A segment matches itself. `*` matches exactly one segment. `**`, which is allowed only at the end, matches one or more.
The action is exact or `*`. Upper and lower case differ. A pattern that begins with `/` matches absolute resources, any
other those in the work tree: `**` alone matches everything in the work tree and nothing outside.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import Form, require_instance, shorten
from batonpass.model.grants.resource import Resource, read_segments

ANY: Final = "*"
REST: Final = "**"
_ACTION: Final = Form(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}", "an action: letters, digits and ._@+- , at most 128")


class Pattern(Struct, frozen=True):
    """Matches calls by their action and their resource."""

    action: str
    absolute: bool
    segments: tuple[str, ...]  # each exact, or `*`
    more: bool  # `**` follows

    def __str__(self) -> str:
        whole = (*self.segments, REST) if self.more else self.segments
        return f"{self.action}:{'/' if self.absolute else ''}{'/'.join(whole)}"

    def matches(self, action: str, resource: Resource) -> bool:
        """Return whether a call with this action on this resource matches."""
        if self.action not in (action, ANY) or self.absolute is not resource.absolute:
            return False
        wanted, given = self.segments, resource.segments
        if len(wanted) >= len(given) if self.more else len(wanted) != len(given):
            return False
        # A plain loop takes half the time, and this is asked for every permit of every hop at every call.
        for mine, theirs in zip(wanted, given, strict=False):  # noqa: SIM110
            if mine not in (theirs, ANY):
                return False
        return True

    def covers(self, other: "Pattern") -> bool:
        """Return whether this pattern matches everything that the other one matches."""
        if self.action not in (other.action, ANY) or self.absolute is not other.absolute:
            return False
        return self._fits(other.segments, more=other.more)

    def _fits(self, segments: tuple[str, ...], *, more: bool) -> bool:
        wanted, given = len(self.segments), len(segments)
        if (wanted >= given + more) if self.more else (more or wanted != given):
            return False
        # A plain loop takes half the time, and this is asked for every permit of every hop at every call.
        for mine, theirs in zip(self.segments, segments, strict=False):  # noqa: SIM110
            if mine not in (theirs, ANY):
                return False
        return True

    def meet(self, other: "Pattern") -> "Pattern | None":
        """Return the pattern of everything that both match; None if that is nothing."""
        action = _both(self.action, other.action)
        longer, shorter = (self, other) if len(self.segments) >= len(other.segments) else (other, self)
        if action is None or self.absolute is not other.absolute:
            return None
        missing = len(longer.segments) - len(shorter.segments)
        # The shorter pattern gets to the length of the longer one only by its `**`, which matches at least one segment.
        if missing > 0 and not shorter.more:
            return None
        if missing == 0 and self.more is not other.more:
            return None
        padded = (*shorter.segments, *(ANY,) * missing)
        segments = tuple(map(_both, longer.segments, padded))
        if None in segments:
            return None
        return Pattern(action, self.absolute, tuple(segment or "" for segment in segments), longer.more)

    def by_length(self, longest: int) -> Iterator["Pattern"]:
        """Yield patterns that together match the same: one for each length up to longest, one for all others."""
        segments = self.segments
        while self.more and len(segments) <= longest:
            segments = (*segments, ANY)
            yield Pattern(self.action, self.absolute, segments, more=False)
        yield Pattern(self.action, self.absolute, segments, self.more)


def _both(mine: str, theirs: str) -> str | None:
    if mine in (theirs, ANY):
        return theirs
    return mine if theirs == ANY else None


def read_pattern(text: str) -> Pattern:
    """Return the pattern that a text spells. Raises `InvalidValueError`."""
    return _read(require_instance("pattern", text, str))


@lru_cache(maxsize=4096)
def _read(text: str) -> Pattern:
    action, colon, resource = text.partition(":")
    if not colon:
        raise InvalidValueError("pattern", f"{shorten(text)} has no ':'; one is like write:src/**")
    require_action(action, any_of_them=True)
    absolute, segments = read_segments("pattern", resource)
    more = bool(segments) and segments[-1] == REST
    fixed = segments[:-1] if more else segments
    if not segments:
        raise InvalidValueError("pattern", f"{shorten(text)} names nothing; everything in the work tree is {REST}")
    if any(ANY in segment and segment != ANY for segment in fixed):
        raise InvalidValueError("pattern", f"{shorten(text)}: * stands for a whole segment, and ** only at the end")
    return Pattern(action, absolute, fixed, more)


def require_action(action: str, *, any_of_them: bool = False) -> str:
    """Return action if it is valid; `*` is valid only with `any_of_them`. Raises `InvalidValueError`."""
    return action if any_of_them and action == ANY else _ACTION.require("action", action)
