"""What receipts in a handoff's own stream say: what somebody else than its runs did to it."""

from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from batonpass.model.base.checks import require_code, require_digest, require_instance, require_integer, require_member
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    HANDOFF,
    RUN,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    RunId,
    require_agent,
    require_id,
    require_ids,
    require_principal,
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
    require_carried,
    require_fates,
    require_hold,
)
from batonpass.model.base.label import Source, require_source, require_sources


class HandoffHeld(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt stopped before a call that somebody has to approve; its run is over, the handoff waits."""

    kind: ClassVar = Kind.HANDOFF_HELD
    handoff: HandoffId
    attempt: int
    ended: ChildHead
    reason: str
    call: CallId | None = None  # which call it is
    gate: Gate | None = None  # who has to let it be made
    until: datetime | None = None  # when it is denied, if nobody has by then
    proven: bool = False  # it takes a decision that an approver's key signed
    approvals: int = 1  # so many people have to let it go on, none of whom asked for it if they are several

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_integer("attempt", self.attempt, least=1)
        require_instance("ended", self.ended, ChildHead)
        require_code("reason", self.reason)
        require_instance("proven", self.proven, bool)
        require_integer("approvals", self.approvals, least=1)
        if self.call is not None:
            require_id("call", self.call, CALL)
        require_hold(self.gate, self.until)


class _ByWhom(Struct, frozen=True, kw_only=True, omit_defaults=True):
    handoff: HandoffId
    by: PrincipalId

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_principal("by", self.by)


class HandoffAsked(_ByWhom, frozen=True, kw_only=True):
    """The receiver cannot reliably go on and asks one closed question."""

    kind: ClassVar = Kind.HANDOFF_ASKED
    error: ErrorType
    check: str  # the check that failed
    question: Digest  # of the question's words, keyed with the tree's secret: the same question is asked once

    def __post_init__(self) -> None:
        super().__post_init__()
        require_member("error", self.error, ErrorType)
        require_code("check", self.check)
        require_digest("question", self.question)


class HandoffAnswered(_ByWhom, frozen=True, kw_only=True):
    """The question has an answer: this is the next revision of the baton."""

    kind: ClassVar = Kind.HANDOFF_ANSWERED
    revision: int
    taint: tuple[Source, ...] = ()  # what whoever answers knew from outside, and nobody endorsed

    def __post_init__(self) -> None:
        super().__post_init__()
        require_sources("taint", self.taint)
        require_integer("revision", self.revision, least=1)


class HandoffDeclined(_ByWhom, frozen=True, kw_only=True):
    """The receiver did not take the handoff, and says why."""

    kind: ClassVar = Kind.HANDOFF_DECLINED
    code: str

    def __post_init__(self) -> None:
        super().__post_init__()
        require_code("code", self.code)


class HandoffLapsed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker's lease ran out: its attempt is over, the handoff is not."""

    kind: ClassVar = Kind.HANDOFF_LAPSED
    handoff: HandoffId
    attempt: int
    ended: ChildHead  # the dead run, and where it stood

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_integer("attempt", self.attempt, least=1)
        require_instance("ended", self.ended, ChildHead)


class HandoffExpired(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The deadline passed; a run that worked on it is over."""

    kind: ClassVar = Kind.HANDOFF_EXPIRED
    handoff: HandoffId
    ended: ChildHead | None = None

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        if self.ended is not None:
            require_instance("ended", self.ended, ChildHead)


class HandoffCancelled(_ByWhom, frozen=True, kw_only=True):
    """Somebody withdrew a handoff; a run that worked on it is over."""

    kind: ClassVar = Kind.HANDOFF_CANCELLED
    ended: ChildHead | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ended is not None:
            require_instance("ended", self.ended, ChildHead)


class HandoffRetried(_ByWhom, frozen=True, kw_only=True):
    """The handoff waits for its next attempt, with the same baton."""

    kind: ClassVar = Kind.HANDOFF_RETRIED


class HandoffRevised(_ByWhom, frozen=True, kw_only=True):
    """Results that a handoff was offered with no longer stand: this is the next revision of the baton, without them."""

    kind: ClassVar = Kind.HANDOFF_REVISED
    revision: int
    drops: tuple[ContentId, ...] = ()  # items that travel no more
    carries: tuple[Carried, ...] = ()  # what was delivered in their place
    fates: tuple[CarriedFate, ...] = ()  # of items that still travel, as nothing was delivered in their place
    taint: tuple[Source, ...] = ()  # what of the new items came from outside, and nobody endorsed

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("revision", self.revision, least=1)
        require_ids("drops", self.drops, CONTENT)
        require_carried("carries", self.carries)
        require_fates(self.fates)
        require_sources("taint", self.taint)


class HandoffReplaced(_ByWhom, frozen=True, kw_only=True):
    """The handoff waits for its next attempt, by another agent, with the same baton."""

    kind: ClassVar = Kind.HANDOFF_REPLACED
    to: AgentId

    def __post_init__(self) -> None:
        super().__post_init__()
        require_agent("to", self.to)


class HandoffSettled(_ByWhom, frozen=True, kw_only=True):
    """Somebody decided what becomes of a call in doubt."""

    kind: ClassVar = Kind.HANDOFF_SETTLED
    call: CallId
    settlement: Settlement

    def __post_init__(self) -> None:
        super().__post_init__()
        require_id("call", self.call, CALL)
        require_member("settlement", self.settlement, Settlement)


class HandoffEndorsed(_ByWhom, frozen=True, kw_only=True):
    """Somebody says that content from outside may be treated as theirs, by every attempt at a handoff from now on."""

    kind: ClassVar = Kind.HANDOFF_ENDORSED
    source: Source

    def __post_init__(self) -> None:
        super().__post_init__()
        require_source("source", self.source)


class HandoffLate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt that was over learned what became of a call that it had requested: evidence, and no result."""

    kind: ClassVar = Kind.HANDOFF_LATE
    handoff: HandoffId
    run: RunId
    call: CallId
    completed: bool

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_instance("completed", self.completed, bool)


class _Verification(_ByWhom, frozen=True, kw_only=True):
    attempt: int
    method: Method
    by_producer: bool  # whoever made it also says that it is right
    exit_code: int | None = None
    output: Digest | None = None  # sha256 of all that the command wrote

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("attempt", self.attempt, least=1)
        require_member("method", self.method, Method)
        require_instance("by_producer", self.by_producer, bool)
        if self.exit_code is not None:
            require_integer("exit_code", self.exit_code)
        if self.output is not None:
            require_digest("output", self.output)


class VerificationPassed(_Verification, frozen=True, kw_only=True):
    """A result was checked, and holds."""

    kind: ClassVar = Kind.VERIFICATION_PASSED


class VerificationFailed(_Verification, frozen=True, kw_only=True):
    """A result was checked, and does not hold."""

    kind: ClassVar = Kind.VERIFICATION_FAILED


class VerificationRepeated(_Verification, frozen=True, kw_only=True):
    """A result that had its verdict was checked again; the verdict stays, and what was found now stands beside it."""

    kind: ClassVar = Kind.VERIFICATION_REPEATED
    passed: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        require_instance("passed", self.passed, bool)


class VerificationWaived(_ByWhom, frozen=True, kw_only=True):
    """Whoever asked for a result accepts it unverified, for a reason that is recorded."""

    kind: ClassVar = Kind.VERIFICATION_WAIVED
    attempt: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("attempt", self.attempt, least=1)
