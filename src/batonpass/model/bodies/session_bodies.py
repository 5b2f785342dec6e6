"""What receipts about sessions say."""

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
    RunId,
    SessionId,
    require_id,
    require_ids,
)
from batonpass.model.base.ids import HANDOFF as HANDOFF_PREFIX
from batonpass.model.base.kinds import Carried, ChildHead, Kind, require_carried, require_heads
from batonpass.model.base.label import Source, require_sources


class SessionSaved(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody marked this point of a session: what would come along if it were resumed now."""

    kind: ClassVar = Kind.SESSION_SAVED
    run: RunId
    saves: SessionId
    kept: tuple[Carried, ...] = ()  # the items, and the reports in which such items stand
    revisit: tuple[ContentId, ...] = ()  # decisions whose conditions do not hold, or in whose reports they stand
    dropped: int = 0  # how many things are to be worked out, or fetched, anew
    in_flight: tuple[HandoffId, ...] = ()  # handed off, and not over

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("saves", self.saves, SESSION)
        require_carried("kept", self.kept)
        require_ids("revisit", self.revisit, CONTENT)
        require_integer("dropped", self.dropped)
        require_ids("in_flight", self.in_flight, HANDOFF_PREFIX)


class SessionResumed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A root goes on where others stopped: what came along from them, and what has to be decided again."""

    kind: ClassVar = Kind.SESSION_RESUMED
    run: RunId
    roots: tuple[ChildHead, ...]  # from which it comes, and where each stood: one that wrote on is read again
    resumes: SessionId | None = None  # None: it is the next of a series, or continues a root, and not a session
    kept: tuple[Carried, ...] = ()  # as those roots recorded it
    revisit: tuple[ContentId, ...] = ()
    dropped: int = 0
    in_flight: tuple[HandoffId, ...] = ()  # handed off by those roots or by the ones before them, and not over
    bytes: int = 0  # how much it inherits
    oldest: datetime | None = None  # when the oldest of it was first said
    taint: tuple[Source, ...] = ()  # what of it was said by runs that knew content from outside

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
