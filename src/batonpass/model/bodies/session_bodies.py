"""The bodies of receipts about sessions."""

from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_integer, require_utc
from batonpass.model.base.ids import (
    CONTENT,
    RUN,
    SESSION,
    ContentId,
    HandoffId,
    PrincipalId,
    RunId,
    SessionId,
    require_id,
    require_ids,
    require_principal,
)
from batonpass.model.base.ids import HANDOFF as HANDOFF_PREFIX
from batonpass.model.base.kinds import Carried, ChildHead, Kind, require_carried, require_heads
from batonpass.model.base.label import Source, require_sources


class SessionSaved(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody marked this point of a session, with everything that a resume at this point would inherit."""

    kind: ClassVar = Kind.SESSION_SAVED
    run: RunId
    saves: SessionId
    kept: tuple[Carried, ...] = ()  # items, and reports that contain such items
    revisit: tuple[ContentId, ...] = ()  # decisions whose conditions do not hold, or the reports that contain them
    dropped: int = 0  # how many things are not inherited
    in_flight: tuple[HandoffId, ...] = ()  # handoffs that are not over

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("saves", self.saves, SESSION)
        require_carried("kept", self.kept)
        require_ids("revisit", self.revisit, CONTENT)
        require_integer("dropped", self.dropped)
        require_ids("in_flight", self.in_flight, HANDOFF_PREFIX)


class SessionResumed(Struct, frozen=True, kw_only=True, omit_defaults=True):
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
        require_id("run", self.run, RUN)
        if not self.roots:
            raise InvalidValueError("roots", "names no root that it comes from")
        require_heads("roots", self.roots)
        if self.resumes is not None:
            require_id("resumes", self.resumes, SESSION)
        require_carried("kept", self.kept)
        require_ids("revisit", self.revisit, CONTENT)
        require_integer("dropped", self.dropped)
        require_ids("in_flight", self.in_flight, HANDOFF_PREFIX)
        require_integer("bytes", self.bytes)
        if self.oldest is not None:
            require_utc("oldest", self.oldest)
        require_sources("taint", self.taint)


class SessionPruned(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person took items out of the remains of a root for its successors. In its own tree they stay."""

    kind: ClassVar = Kind.SESSION_PRUNED
    root: RunId
    by: PrincipalId
    count: int  # how many things

    def __post_init__(self) -> None:
        require_id("root", self.root, RUN)
        require_principal("by", self.by)
        require_integer("count", self.count, least=1)
