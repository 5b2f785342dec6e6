"""The state of a session: items that the next root inherits, must decide again, or must work out anew."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from batonpass.model.base.ids import BATONPASS, AgentId, CallId, ContentId, HandoffId, PrincipalId, RunId, SessionId
from batonpass.model.base.kinds import Carried
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.contradiction import Contradiction
from batonpass.model.baton.items import Decision, ItemValue, OpenQuestion
from batonpass.model.ledger.run import Run

REVISIT: Final = "revisit: "
CHECK: Final = "check: "

ASKING: Final = BATONPASS  # no person or agent asks the questions that reopened decisions and open checks become

# Beyond one of these, what is inherited is more than anybody reads again: somebody should look through it.
MOST_ITEMS: Final = 50
MOST_BYTES: Final = 32 * 1024
OLDEST: Final = timedelta(days=90)


class Fate(StrEnum):
    """The reason why something is not inherited."""

    HYPOTHESIS = "hypothesis"
    REASONING = "reasoning"
    EXTERNAL = "external"
    UNVERIFIED = "unverified"
    PRUNED = "pruned"
    EXPIRED = "expired"
    REPLACED = "replaced"
    RELAXED = "relaxed"
    ANSWERED = "answered"
    ERASED = "erased"
    REFUTED = "refuted"


WHY: Final[Mapping[Fate, str]] = MappingProxyType(
    {
        Fate.HYPOTHESIS: "a hypothesis: work it out from how things are now",
        Fate.REASONING: "reasoning: it decays, and cannot be trusted across sessions",
        Fate.EXTERNAL: "from outside: fetch it anew",
        Fate.UNVERIFIED: "nobody verified it",
        Fate.PRUNED: "a person took it out",
        Fate.EXPIRED: "a result of a call that is stale: make the call again",
        Fate.REPLACED: "said anew since",
        Fate.RELAXED: "somebody entitled to it has relaxed it",
        Fate.ANSWERED: "it was decided since",
        Fate.ERASED: "its words were erased",
        Fate.REFUTED: "the result that it belongs to was refuted, or made from one that was",
    },
)


class Stop(Struct, frozen=True):
    """A root at which a session stopped. If the root wrote more later, only receipts after `after` are new."""

    root: RunId
    after: int = 0  # sequence number of the last receipt that was read; 0: none


class Said(Struct, frozen=True, kw_only=True):
    """An item value, its author and its time, and the recorded item that contains it."""

    value: ItemValue
    by: PrincipalId
    at: datetime  # when it was first recorded, however often it was inherited since
    source: Carried | None = None  # the item, or the report that contains it; None if it is in neither


class Kept(Struct, frozen=True, kw_only=True):
    """Something that is inherited, and its conditions that nobody can check."""

    said: Said
    unchecked: tuple[str, ...] = ()

    @property
    def value(self) -> ItemValue:
        """Return the inherited value."""
        return self.said.value


class Revisit(Struct, frozen=True, kw_only=True):
    """A decision that is open again: its conditions no longer hold, or nobody can tell, or its result was refuted."""

    decision: Decision
    said: Said
    reasons: tuple[str, ...]

    @property
    def question(self) -> OpenQuestion:
        """Return the question that is inherited in place of the decision, so that nobody acts on it unknowingly."""
        why = f" (it was decided because: {self.decision.why})" if self.decision.why else ""
        return OpenQuestion(f"{revisit_mark(self.decision.what)} {'; '.join(self.reasons)}{why}")


class OpenCheck(Struct, frozen=True, kw_only=True):
    """Work that was delivered and that nobody but its producer has verified: it stays to be checked."""

    what: str  # the task, or the work as it was recorded
    by: PrincipalId  # who delivered it
    at: datetime
    handoff: HandoffId | None = None  # None: no handoff, but work that a root recorded
    untouched: tuple[str, ...] = ()  # targets that should have changed, and did not
    unrecorded: tuple[str, ...] = ()  # files that are said to be made, without a recorded effect
    outputs: tuple[str, ...] = ()  # the outputs that are claimed
    fallen: tuple[str, ...] = ()  # why its inputs no longer stand
    source: Carried | None = None

    @property
    def question(self) -> OpenQuestion:
        """Return the question that is inherited, with the targets to look at."""
        about = f" (by {self.by}, {self.handoff})" if self.handoff is not None else f" (by {self.by})"
        lists = {
            "made from what no longer stands": self.fallen,
            "untouched": self.untouched,
            "without a recorded effect": self.unrecorded,
            "output": self.outputs,
        }
        told = [f"{name}: {', '.join(found)}" for name, found in lists.items() if found]
        return OpenQuestion(
            f"{CHECK}{json.dumps(self.what, ensure_ascii=False)}{about}: nobody has verified it"
            + "".join(f"; {one}" for one in told)
        )


class Dropped(Struct, frozen=True, kw_only=True):
    """Something that is not inherited, and why."""

    what: str
    why: Fate
    item: ContentId | None = None
    source: str | None = None  # for content from outside: where to fetch it again


class InFlight(Struct, frozen=True, kw_only=True):
    """A handoff that is not over. A successor that does not know of it would do the work twice."""

    handoff: HandoffId
    to: AgentId
    task: str
    state: State
    root: RunId
    offered_at: datetime


class CachedResult(Struct, frozen=True, kw_only=True):
    """The result of a call, which is returned until then in place of a new call."""

    tool: str
    call: CallId
    run: RunId
    made_at: datetime
    until: datetime


class SessionState(Struct, frozen=True, kw_only=True):
    """Everything that one or more roots leave to their successor."""

    session: SessionId | None = None
    roots: tuple[RunId, ...] = ()  # where it was inherited from; empty: nothing is inherited
    at: datetime | None = None  # when the conditions were evaluated
    kept: tuple[Kept, ...] = ()
    revisit: tuple[Revisit, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    caches: tuple[CachedResult, ...] = ()
    checks: tuple[OpenCheck, ...] = ()  # work that nobody has verified
    contradictions: tuple[Contradiction, ...] = ()  # among inherited items, the newest side first
    bytes: int = 0  # size of everything inherited, as it is recorded

    def __repr__(self) -> str:
        parts = f"kept: {len(self.kept)}, to decide again: {len(self.revisit)}, to check: {len(self.checks)}"
        return f"<SessionState of {self.session or 'no session'}, {parts}, in flight: {len(self.in_flight)}>"

    @property
    def items(self) -> int:
        """Return how many things are inherited, decisions to revisit and open checks included."""
        return len(self.kept) + len(self.revisit) + len(self.checks)

    @property
    def oldest(self) -> datetime | None:
        """Return when the oldest inherited thing was first recorded; None if nothing is inherited."""
        said = [*(one.said.at for one in self.kept), *(one.said.at for one in self.revisit)]
        return min((*said, *(one.at for one in self.checks)), default=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return reasons to look through the inherited items and prune them; none while they are few and young."""
        found = (
            (self.items > MOST_ITEMS, f"{self.items} items come along, more than {MOST_ITEMS}"),
            (self.bytes > MOST_BYTES, f"{self.bytes:,} bytes come along, more than {MOST_BYTES:,}"),
            (self.age > OLDEST, f"the oldest item is {self.age.days} days old, more than {OLDEST.days}"),
        )
        return tuple(words for too_much, words in found if too_much)

    @property
    def age(self) -> timedelta:
        """Return the age of the oldest inherited thing when the conditions were evaluated."""
        if self.at is None or self.oldest is None:
            return timedelta(0)
        # If a clock was ahead when it was recorded, the age would be negative.
        return max(self.at - self.oldest, timedelta(0))


NO_SESSION: Final = SessionState()


def session_of(run: Run) -> SessionId:
    """Return a run's session: the one that its caller named, else the session of its own tree."""
    return run.session or SessionId(f"session_{run.root.partition('_')[2]}")


def root_of(session: SessionId) -> RunId:
    """Return the root run whose own tree would be this session."""
    return RunId(f"run_{session.partition('_')[2]}")


def revisit_mark(what: str) -> str:
    """Return how the question about a decision begins. It is different for every decision."""
    return f"{REVISIT}{json.dumps(what, ensure_ascii=False)}:"
