"""The bodies of receipts about sessions."""

from datetime import datetime
from typing import ClassVar

from batonpass.errors import InvalidValueError
from batonpass.model.base.checked_value import CheckedValue, Ordinal
from batonpass.model.base.ids import (
    ContentId,
    HandoffId,
    PrincipalId,
    RunId,
    SessionId,
)
from batonpass.model.base.kinds import Carried, ChildHead, Kind
from batonpass.model.base.label import Source


class SessionSaved(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody marked this point of a session, with everything that a resume at this point would inherit."""

    kind: ClassVar = Kind.SESSION_SAVED
    run: RunId
    saves: SessionId
    kept: tuple[Carried, ...] = ()  # items, and reports that contain such items
    revisit: tuple[ContentId, ...] = ()  # decisions whose conditions do not hold, or the reports that contain them
    dropped: int = 0  # how many things are not inherited
    in_flight: tuple[HandoffId, ...] = ()  # handoffs that are not over


class SessionResumed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A root continues where others stopped: the items that it inherited, and those to be decided again."""

    kind: ClassVar = Kind.SESSION_RESUMED
    run: RunId
    roots: tuple[ChildHead, ...]  # the roots and their heads: a root that wrote more since is read again
    resumes: SessionId | None = None  # None: it continues a series or a root, and no session
    kept: tuple[Carried, ...] = ()  # as those roots recorded it
    revisit: tuple[ContentId, ...] = ()
    dropped: int = 0
    in_flight: tuple[HandoffId, ...] = ()  # handoffs of those roots, or of earlier ones, that are not over
    bytes: int = 0  # size of everything inherited
    oldest: datetime | None = None  # when the oldest inherited thing was first recorded
    taint: tuple[Source, ...] = ()  # sources that had reached the runs which recorded it

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.roots:
            raise InvalidValueError("roots", "names no root that it comes from")


class SessionPruned(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A person took items out of the remains of a root for its successors. In its own tree they stay."""

    kind: ClassVar = Kind.SESSION_PRUNED
    root: RunId
    by: PrincipalId
    count: Ordinal  # how many things
