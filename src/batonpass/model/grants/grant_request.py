"""A grant as callers write it: permits as text, and an end that may be a duration."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, require_texts, shorten
from batonpass.model.base.durations import moment_after, read_duration
from batonpass.model.base.value import shown_as
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.limits import UNLIMITED, Limits
from batonpass.model.grants.scope_text import read_limits, read_scope


class GrantRequest(Struct, frozen=True, kw_only=True, dict=True):
    """The permits that somebody may use, and those that they may delegate. These are two separate rights."""

    may: Sequence[str] = ()  # such as "write:src/**"
    may_delegate: Sequence[str] = ()
    limits: Limits | str | None = None  # such as "at most 5 calls": of everything done under it together
    until: datetime | timedelta | str | None = None  # a moment, or a duration from the offer or the start: "2h"
    max_depth: int | None = None  # the greatest depth of its chain; the first grant of a chain has depth 0

    def __repr__(self) -> str:
        return shown_as("Grant", self)

    def __post_init__(self) -> None:
        for name in ("may", "may_delegate"):
            force_setattr(self, name, require_texts(name, getattr(self, name)))
        if not self.may and not self.may_delegate:
            raise InvalidValueError(
                "may", "is missing: limits=, until= and max_depth= narrow a grant; a budget limits what has none"
            )
        moment = self.until.astimezone(UTC) if isinstance(self.until, datetime) and self.until.tzinfo else self.until
        limits = read_limits(self.limits) if isinstance(self.limits, str) else self.limits or UNLIMITED
        # Everything except a relative end is parsed once, here, and not again for each offer.
        self.__dict__["granted"] = Grant(
            may=read_scope(self.may),
            may_delegate=read_scope(self.may_delegate),
            limits=limits,
            until=moment if isinstance(moment, datetime) else None,
            max_depth=self.max_depth,
        )
        if isinstance(self.until, str):
            moment = read_duration("until", self.until)
        force_setattr(self, "until", moment)
        if isinstance(moment, timedelta) and moment <= timedelta(0):
            raise InvalidValueError("until", "is over already; say a moment that is still to come")
        if moment is not None and not isinstance(moment, datetime | timedelta):
            raise InvalidValueError("until", f'{shorten(moment)} is no moment, nor a duration such as "2h"')

    @property
    def lasts(self) -> timedelta | None:
        """Return its duration; None if it ends at a moment, or never."""
        return self.until if isinstance(self.until, timedelta) else None

    def at(self, now: datetime) -> Grant:
        """Return the grant if it is asked for now. Raises `InvalidValueError` if the end is beyond the calendar."""
        granted: Grant = self.__dict__["granted"]
        return granted if self.lasts is None else replace(granted, until=moment_after("until", self.lasts, now))


def grant_unless_nothing(
    may: Sequence[str], may_delegate: Sequence[str], limits: Limits | str | None = None
) -> GrantRequest | None:
    """Return a grant of these permits; None without permits. Raises `InvalidValueError` for limits alone."""
    if not may and not may_delegate and limits is None:
        return None
    return GrantRequest(may=may, may_delegate=may_delegate, limits=limits)


def grant_asked(may: Sequence[str], grant: GrantRequest | None) -> GrantRequest | None:
    """Return the grant that a caller asks for, by `may` or by `grant`. Raises `InvalidValueError` for both."""
    if grant is None:
        nothing = isinstance(may, list | tuple) and not may
        return None if nothing else GrantRequest(may=may)
    require_instance("grant", grant, GrantRequest)
    if may:
        raise InvalidValueError("may", "is given by may= and by grant=; say it in one place, such as Grant(may=[…])")
    return grant
