"""What survives a session boundary, and what does not: kept, to be decided again, or to be worked out anew."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from batonpass.model.base.ids import AgentId, CallId, ContentId, HandoffId, PrincipalId, RunId, SessionId
from batonpass.model.base.kinds import Carried
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Decision, ItemValue, OpenQuestion
from batonpass.model.ledger.run import Run

REVISIT: Final = "revisit: "


class Fate(StrEnum):
    """Why something does not come along."""

    HYPOTHESIS = "hypothesis"
    REASONING = "reasoning"
    EXTERNAL = "external"
    UNVERIFIED = "unverified"
    REJECTED = "rejected"
    EXPIRED = "expired"
    REPLACED = "replaced"
    RELAXED = "relaxed"
    ANSWERED = "answered"
    ERASED = "erased"


WHY: Final[Mapping[Fate, str]] = MappingProxyType(
    {
        Fate.HYPOTHESIS: "a hypothesis: work it out from how things are now",
        Fate.REASONING: "reasoning: it decays, and cannot be trusted across sessions",
        Fate.EXTERNAL: "from outside: fetch it anew",
        Fate.UNVERIFIED: "nobody verified it",
        Fate.REJECTED: "rejected under last time's conditions",
        Fate.EXPIRED: "a result of a call that is stale: make the call again",
        Fate.REPLACED: "said anew since",
        Fate.RELAXED: "somebody entitled to it has relaxed it",
        Fate.ANSWERED: "it was decided since",
        Fate.ERASED: "its words were erased",
    },
)


class Stop(Struct, frozen=True):
    """A root at which a session stopped; of one that wrote on since, only what comes after this receipt is new."""

    root: RunId
    after: int = 0


class Said(Struct, frozen=True, kw_only=True):
    """Something that was said, by whom and when, and where that stands in the record."""

    value: ItemValue
    by: PrincipalId
    at: datetime  # when it was first said, however often it came along since
    source: Carried | None = None  # the item, or the report in which it stands; None if it stands in neither


class Kept(Struct, frozen=True, kw_only=True):
    """Something that comes along, and the conditions of it that nobody can check."""

    said: Said
    unchecked: tuple[str, ...] = ()

    @property
    def value(self) -> ItemValue:
        """Return what was said."""
        return self.said.value


class Revisit(Struct, frozen=True, kw_only=True):
    """A decision whose conditions do not hold any more, or of which nobody can tell: it is open again."""

    decision: Decision
    said: Said
    reasons: tuple[str, ...]

    @property
    def question(self) -> OpenQuestion:
        """Return it as what comes along: a question, so that nobody acts on the decision unknowingly."""
        why = f" (it was decided because: {self.decision.why})" if self.decision.why else ""
        return OpenQuestion(f"{revisit_mark(self.decision.what)} {'; '.join(self.reasons)}{why}")


class Dropped(Struct, frozen=True, kw_only=True):
    """Something that does not come along, and why."""

    what: str
    why: Fate
    item: ContentId | None = None
    source: str | None = None  # of what came from outside: where to fetch it


class InFlight(Struct, frozen=True, kw_only=True):
    """Something that was handed off and is not over: whoever forgets about it does it twice."""

    handoff: HandoffId
    to: AgentId
    task: str
    state: State
    root: RunId
    offered_at: datetime


class CachedResult(Struct, frozen=True, kw_only=True):
    """A result of a call that is given again until then, instead of making the call."""

    tool: str
    call: CallId
    run: RunId
    made_at: datetime
    until: datetime


class SessionState(Struct, frozen=True, kw_only=True):
    """What one or more roots leave to whoever goes on."""

    session: SessionId | None = None
    roots: tuple[RunId, ...] = ()  # from which it comes; none: nothing is inherited
    at: datetime | None = None  # when the conditions were evaluated
    kept: tuple[Kept, ...] = ()
    revisit: tuple[Revisit, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    caches: tuple[CachedResult, ...] = ()
    bytes: int = 0  # how much comes along, as it is recorded

    @property
    def items(self) -> int:
        """Return how many things come along, decisions that are open again included."""
        return len(self.kept) + len(self.revisit)

    @property
    def oldest(self) -> datetime | None:
        """Return when the oldest of them was first said; None if there are none."""
        said = [*(one.said for one in self.kept), *(one.said for one in self.revisit)]
        return min((one.at for one in said), default=None)

    @property
    def age(self) -> timedelta:
        """Return how old the oldest of them was when the conditions were evaluated."""
        if self.at is None or self.oldest is None:
            return timedelta(0)
        # A clock that was ahead when it was said makes nothing younger than new.
        return max(self.at - self.oldest, timedelta(0))


NO_SESSION: Final = SessionState()


def session_of(run: Run) -> SessionId:
    """Return the session that a run belongs to: the caller's, or, where nobody named one, that of its tree alone."""
    return run.session or SessionId(f"session_{run.root.partition('_')[2]}")


def root_of(session: SessionId) -> RunId:
    """Return the root that would be a session of its own under this id."""
    return RunId(f"run_{session.partition('_')[2]}")


def revisit_mark(what: str) -> str:
    """Return how the question begins that a decision has become; no other decision's begins so."""
    return f"{REVISIT}{json.dumps(what, ensure_ascii=False)}:"
