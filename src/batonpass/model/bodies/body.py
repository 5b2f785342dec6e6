"""All bodies of receipts in one union, one class for each kind.

A body has only ids, enums, codes, integers, times and digests. Every word that a person or a model wrote is content.
The receipt names it by digest, and so it can be erased.
"""

from typing import TypeAlias

from msgspec import Struct

from batonpass.model.base.checks import require_code
from batonpass.model.base.kinds import (
    AccessRole,
    Carried,
    ChildHead,
    ErrorType,
    Gate,
    Kind,
    Method,
    Outcome,
    Part,
    Relation,
    Sanitising,
    ScanFound,
    Settlement,
    WaitUntil,
)
from batonpass.model.bodies.decision_bodies import (
    HandoffApproved,
    HandoffBacked,
    HandoffDenied,
    PasskeyAnswer,
    RulingProof,
    ToolApproved,
    ToolBacked,
    ToolRefused,
)
from batonpass.model.bodies.effect import Effect, EffectKind
from batonpass.model.bodies.handoff_acts import (
    HandoffAnswered,
    HandoffAsked,
    HandoffCancelled,
    HandoffDeclined,
    HandoffEndorsed,
    HandoffExpired,
    HandoffHeld,
    HandoffLapsed,
    HandoffLate,
    HandoffParked,
    HandoffReplaced,
    HandoffResumed,
    HandoffRetried,
    HandoffRevised,
    HandoffSettled,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.bodies.handoff_bodies import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffContextSanitized,
    HandoffFailed,
    HandoffInitiated,
)
from batonpass.model.bodies.relay_bodies import (
    AlarmAcknowledged,
    AlarmCleared,
    AlarmRaised,
    ApproverEnrolled,
    ApproverRevoked,
    ContentErased,
    FileEndorsed,
    FindingAcknowledged,
    GrantRevoked,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    TokenAdded,
    TokenRevoked,
    WebhookChanged,
)
from batonpass.model.bodies.run_bodies import (
    CheckpointSaved,
    RunAcknowledged,
    RunClosed,
    RunEndorsed,
    RunGap,
    RunRecorded,
    RunRekeyed,
    RunRelaxed,
    RunSettled,
    RunSpent,
    RunStarted,
    RunSuspended,
    RunTainted,
)
from batonpass.model.bodies.session_bodies import SessionPruned, SessionResumed, SessionSaved
from batonpass.model.bodies.tool_bodies import (
    Changed,
    ToolCached,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.grants.charge import Charge

__all__ = [
    "AccessRole",
    "AlarmAcknowledged",
    "AlarmCleared",
    "AlarmRaised",
    "ApproverEnrolled",
    "ApproverRevoked",
    "Body",
    "Carried",
    "Changed",
    "Charge",
    "CheckpointSaved",
    "ChildHead",
    "ContentErased",
    "Effect",
    "EffectKind",
    "ErrorType",
    "FileEndorsed",
    "FindingAcknowledged",
    "Gate",
    "GrantRevoked",
    "HandoffAccepted",
    "HandoffAnswered",
    "HandoffApproved",
    "HandoffAsked",
    "HandoffBacked",
    "HandoffCancelled",
    "HandoffCompleted",
    "HandoffContextSanitized",
    "HandoffDeclined",
    "HandoffDenied",
    "HandoffEndorsed",
    "HandoffExpired",
    "HandoffFailed",
    "HandoffHeld",
    "HandoffInitiated",
    "HandoffLapsed",
    "HandoffLate",
    "HandoffParked",
    "HandoffReplaced",
    "HandoffResumed",
    "HandoffRetried",
    "HandoffRevised",
    "HandoffSettled",
    "Kind",
    "Method",
    "Outcome",
    "Part",
    "PasskeyAnswer",
    "Relation",
    "RelayEnrolled",
    "RelayRevoked",
    "RelayRotated",
    "RulingProof",
    "RunAcknowledged",
    "RunClosed",
    "RunEndorsed",
    "RunGap",
    "RunRecorded",
    "RunRekeyed",
    "RunRelaxed",
    "RunSettled",
    "RunSpent",
    "RunStarted",
    "RunSuspended",
    "RunTainted",
    "Sanitising",
    "ScanFound",
    "SessionPruned",
    "SessionResumed",
    "SessionSaved",
    "Settlement",
    "TokenAdded",
    "TokenRevoked",
    "ToolApproved",
    "ToolBacked",
    "ToolCached",
    "ToolCompleted",
    "ToolDenied",
    "ToolFailed",
    "ToolHeld",
    "ToolRefused",
    "ToolRequested",
    "UnknownBody",
    "VerificationFailed",
    "VerificationPassed",
    "VerificationRepeated",
    "VerificationWaived",
    "WaitUntil",
    "WebhookChanged",
]


class UnknownBody(Struct, frozen=True):
    """A body of a kind that this version does not know. Its bytes verify; a newer version can read its meaning."""

    kind: str

    def __post_init__(self) -> None:
        require_code("kind", self.kind)


Body: TypeAlias = (
    RunStarted
    | RunRekeyed
    | RunRecorded
    | RunRelaxed
    | RunSettled
    | RunAcknowledged
    | RunTainted
    | RunEndorsed
    | RunGap
    | RunSpent
    | RunSuspended
    | RunClosed
    | CheckpointSaved
    | HandoffInitiated
    | HandoffContextSanitized
    | HandoffAccepted
    | HandoffCompleted
    | HandoffFailed
    | HandoffHeld
    | HandoffResumed
    | HandoffParked
    | HandoffBacked
    | HandoffApproved
    | HandoffDenied
    | HandoffAsked
    | HandoffAnswered
    | HandoffDeclined
    | HandoffLapsed
    | HandoffExpired
    | HandoffCancelled
    | HandoffRetried
    | HandoffRevised
    | HandoffReplaced
    | HandoffSettled
    | HandoffEndorsed
    | HandoffLate
    | VerificationPassed
    | VerificationFailed
    | VerificationRepeated
    | VerificationWaived
    | ToolRequested
    | ToolCompleted
    | ToolFailed
    | ToolDenied
    | ToolCached
    | SessionSaved
    | SessionResumed
    | SessionPruned
    | ToolHeld
    | ToolBacked
    | ToolApproved
    | ToolRefused
    | RelayEnrolled
    | RelayRotated
    | RelayRevoked
    | ApproverEnrolled
    | ApproverRevoked
    | ContentErased
    | FileEndorsed
    | FindingAcknowledged
    | AlarmRaised
    | AlarmAcknowledged
    | AlarmCleared
    | GrantRevoked
    | TokenAdded
    | TokenRevoked
    | WebhookChanged
    | UnknownBody
)
