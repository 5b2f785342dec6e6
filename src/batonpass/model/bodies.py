"""What a receipt says, one value for each kind.

Only ids, enums, codes, integers, times and digests: every word that a person or a model wrote is content, which the
receipt names by digest and which can be erased.
"""

from typing import TypeAlias

from msgspec import Struct

from batonpass.model.charge import Charge
from batonpass.model.checks import require_code
from batonpass.model.decision_bodies import (
    HandoffApproved,
    HandoffBacked,
    HandoffDenied,
    Proof,
    ToolApproved,
    ToolBacked,
    ToolRefused,
)
from batonpass.model.effect import Effect, EffectKind
from batonpass.model.handoff_acts import (
    HandoffAnswered,
    HandoffAsked,
    HandoffCancelled,
    HandoffDeclined,
    HandoffEndorsed,
    HandoffExpired,
    HandoffHeld,
    HandoffLapsed,
    HandoffLate,
    HandoffReplaced,
    HandoffRetried,
    HandoffSettled,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.handoff_bodies import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffContextSanitized,
    HandoffFailed,
    HandoffInitiated,
)
from batonpass.model.kinds import (
    Carried,
    ChildHead,
    ErrorType,
    Found,
    Gate,
    Kind,
    Method,
    Outcome,
    Part,
    Relation,
    Sanitising,
    Settlement,
)
from batonpass.model.relay_bodies import (
    ApproverEnrolled,
    ApproverRevoked,
    ContentErased,
    FileEndorsed,
    GrantRevoked,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
)
from batonpass.model.run_bodies import (
    CheckpointSaved,
    RunClosed,
    RunEndorsed,
    RunGap,
    RunRecorded,
    RunRekeyed,
    RunRelaxed,
    RunSettled,
    RunSpent,
    RunStarted,
    RunTainted,
)
from batonpass.model.session_bodies import SessionResumed, SessionSaved
from batonpass.model.tool_bodies import (
    Changed,
    ToolCached,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
)

__all__ = [
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
    "Found",
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
    "HandoffReplaced",
    "HandoffRetried",
    "HandoffSettled",
    "Kind",
    "Method",
    "Outcome",
    "Part",
    "Proof",
    "Relation",
    "RelayEnrolled",
    "RelayRevoked",
    "RelayRotated",
    "RunClosed",
    "RunEndorsed",
    "RunGap",
    "RunRecorded",
    "RunRekeyed",
    "RunRelaxed",
    "RunSettled",
    "RunSpent",
    "RunStarted",
    "RunTainted",
    "Sanitising",
    "SessionResumed",
    "SessionSaved",
    "Settlement",
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
]


class UnknownBody(Struct, frozen=True):
    """A body of a kind that this version does not know; its bytes verify, its meaning waits for a newer version."""

    kind: str

    def __post_init__(self) -> None:
        require_code("kind", self.kind)


Body: TypeAlias = (
    RunStarted
    | RunRekeyed
    | RunRecorded
    | RunRelaxed
    | RunSettled
    | RunTainted
    | RunEndorsed
    | RunGap
    | RunSpent
    | RunClosed
    | CheckpointSaved
    | HandoffInitiated
    | HandoffContextSanitized
    | HandoffAccepted
    | HandoffCompleted
    | HandoffFailed
    | HandoffHeld
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
    | GrantRevoked
    | UnknownBody
)
