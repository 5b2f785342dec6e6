"""The bodies in a handoff's own stream: acts of others than its runs."""

from datetime import datetime
from typing import ClassVar

from batonpass.errors import InvalidValueError
from batonpass.model.base.checked_value import CheckedValue, Code, Ordinal
from batonpass.model.base.ids import (
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    RunId,
)
from batonpass.model.base.kinds import (
    Carried,
    CarriedFate,
    ChildHead,
    ErrorType,
    Gate,
    Kind,
    Method,
    Settlement,
    WaitUntil,
)
from batonpass.model.base.label import Source


class HandoffHeld(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt stopped, and the next one goes on from there. Its run is over, and the handoff is held.

    It stopped before a call that needs approval (`call`), or it waits for a handoff that it made (`awaits`). In the
    second case nobody has to approve this one: `handoff.resumed` follows when the wait is over.
    """

    kind: ClassVar = Kind.HANDOFF_HELD
    handoff: HandoffId
    attempt: Ordinal
    ended: ChildHead  # the head of the run that is over
    reason: Code  # the rule that holds the call; or the code of the wait
    call: CallId | None = None  # the call that is held
    awaits: HandoffId | None = None  # the handoff that it waits for
    wait_until: WaitUntil | None = None  # when that wait is over
    gate: Gate | None = None  # who must approve
    until: datetime | None = None  # denied then, if nobody has approved
    proven: bool = False  # an approval needs the signature of an approver's key
    approvals: Ordinal = 1  # how many people must approve; if more than one, none of them asked for it

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.awaits is None) is not (self.wait_until is None):
            raise InvalidValueError("awaits", "an attempt that waits for a handoff says until when")


class HandoffResumed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """The handoff that an attempt waited for is decided or has ended. The handoff waits for its next attempt."""

    kind: ClassVar = Kind.HANDOFF_RESUMED
    handoff: HandoffId
    attempt: Ordinal  # the one that waited
    awaits: HandoffId  # the handoff that it waited for


class HandoffParked(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """No further attempt is made, because of the failures of earlier ones. The handoff has failed."""

    kind: ClassVar = Kind.HANDOFF_PARKED
    handoff: HandoffId
    attempt: int  # number of the latest attempt; 0 if none has begun
    error: Code  # the code that says why


class _ByWhom(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    handoff: HandoffId
    by: PrincipalId


class HandoffAsked(_ByWhom, frozen=True, kw_only=True):
    """The receiver cannot reliably go on and asks one closed question."""

    kind: ClassVar = Kind.HANDOFF_ASKED
    error: ErrorType
    check: Code  # the check that failed
    question: Digest  # of the question's text, keyed with the tree's secret: no question is asked twice


class HandoffAnswered(_ByWhom, frozen=True, kw_only=True):
    """The question was answered, or waived. This makes the next revision of the baton."""

    kind: ClassVar = Kind.HANDOFF_ANSWERED
    revision: Ordinal  # revision number of the baton, from 1
    taint: tuple[Source, ...] = ()  # sources that had reached whoever answered, and that nobody endorsed
    waives: Code | None = None  # the check that is waived: the work goes on without an answer
    suspect: tuple[Code, ...] = ()  # `answer` and items (`PART.ID`) of an agent that look injected: only quoted


class HandoffDeclined(_ByWhom, frozen=True, kw_only=True):
    """The receiver declined the handoff, with a reason."""

    kind: ClassVar = Kind.HANDOFF_DECLINED
    code: Code


class HandoffLapsed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A worker's lease ran out. Its attempt is over, and the handoff is ready for the next one."""

    kind: ClassVar = Kind.HANDOFF_LAPSED
    handoff: HandoffId
    attempt: Ordinal
    ended: ChildHead  # the head of the dead run


class HandoffExpired(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """The deadline passed. A run that worked on the handoff is over."""

    kind: ClassVar = Kind.HANDOFF_EXPIRED
    handoff: HandoffId
    ended: ChildHead | None = None  # the head of that run; None if none was running


class HandoffCancelled(_ByWhom, frozen=True, kw_only=True):
    """Somebody withdrew the handoff. A run that worked on it is over."""

    kind: ClassVar = Kind.HANDOFF_CANCELLED
    ended: ChildHead | None = None  # the head of that run; None if none was running


class HandoffRetried(_ByWhom, frozen=True, kw_only=True):
    """The handoff waits for its next attempt, with the same baton."""

    kind: ClassVar = Kind.HANDOFF_RETRIED


class HandoffRevised(_ByWhom, frozen=True, kw_only=True):
    """A revision of the baton: items that no longer stand are dropped, others are added or replace them."""

    kind: ClassVar = Kind.HANDOFF_REVISED
    revision: Ordinal  # revision number of the baton, from 1
    drops: tuple[ContentId, ...] = ()  # items that no longer travel
    carries: tuple[Carried, ...] = ()  # items that replace them, or that came with an answer
    fates: tuple[CarriedFate, ...] = ()  # of items that still travel because nothing replaced them
    taint: tuple[Source, ...] = ()  # sources of the new items that nobody endorsed


class HandoffReplaced(_ByWhom, frozen=True, kw_only=True):
    """The handoff waits for its next attempt, by another agent, with the same baton."""

    kind: ClassVar = Kind.HANDOFF_REPLACED
    to: AgentId


class HandoffSettled(_ByWhom, frozen=True, kw_only=True):
    """Somebody settled a call in doubt."""

    kind: ClassVar = Kind.HANDOFF_SETTLED
    call: CallId
    settlement: Settlement


class HandoffEndorsed(_ByWhom, frozen=True, kw_only=True):
    """Somebody endorsed a source, for every attempt at this handoff from now on."""

    kind: ClassVar = Kind.HANDOFF_ENDORSED
    source: Source


class HandoffLate(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt that was already over learned the outcome of its call. This is evidence, and no result."""

    kind: ClassVar = Kind.HANDOFF_LATE
    handoff: HandoffId
    run: RunId
    call: CallId
    completed: bool  # whether the call returned; else it failed


class _Verification(_ByWhom, frozen=True, kw_only=True):
    attempt: Ordinal  # attempt number, from 1
    method: Method
    by_producer: bool  # whoever delivered the result also verified it
    exit_code: int | None = None
    output: Digest | None = None  # sha256 of the command's whole output


class VerificationPassed(_Verification, frozen=True, kw_only=True):
    """A result was checked, and it holds."""

    kind: ClassVar = Kind.VERIFICATION_PASSED


class VerificationFailed(_Verification, frozen=True, kw_only=True):
    """A result was checked, and it does not hold."""

    kind: ClassVar = Kind.VERIFICATION_FAILED


class VerificationRepeated(_Verification, frozen=True, kw_only=True):
    """A result with a verdict was checked again. The verdict stays; this finding is recorded beside it."""

    kind: ClassVar = Kind.VERIFICATION_REPEATED
    passed: bool


class VerificationWaived(_ByWhom, frozen=True, kw_only=True):
    """The one who asked for a result accepted it without a check, and gave a reason."""

    kind: ClassVar = Kind.VERIFICATION_WAIVED
    attempt: Ordinal
