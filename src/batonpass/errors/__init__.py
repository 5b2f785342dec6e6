"""Every error that Batonpass raises on purpose.

    BatonpassError
    ├── InvalidValueError          value.invalid
    │   ├── UnknownFieldError      value.unknown_field
    │   └── PolicyFileError        policy.invalid
    ├── MissingExtraError          extra.missing
    ├── IllegalTransitionError     lifecycle.illegal
    ├── LookupFailedError
    │   ├── NotFoundError          id.not_found
    │   │   └── ShortIdError       id.too_short
    │   └── AmbiguousIdError       id.ambiguous
    ├── ContentTooLargeError       content.too_large
    ├── ContentErasedError         content.erased
    ├── KeyFailedError
    │   ├── KeyRefusedError        key.refused
    │   └── KeyMissingError        key.missing
    ├── HandoffError
    │   ├── PolicyRefusedError
    │   │   ├── HandoffDepthExceededError  handoff.too_deep
    │   │   ├── AgentNotAllowedError   handoff.not_allowed
    │   │   ├── HandoffLoopError       handoff.loop
    │   │   ├── IncompleteBatonError   handoff.incomplete
    │   │   ├── HandoffRefusedError    handoff.refused
    │   │   └── UnverifiedError        handoff.unverified
    │   ├── InputsChangedError     handoff.inputs_changed
    │   ├── KeyReusedError         handoff.key_reused
    │   ├── NotEntitledError       handoff.not_entitled
    │   ├── HandoffAskedError      handoff.asked
    │   ├── HandoffDeclinedError   handoff.declined
    │   ├── HandoffEndedError      handoff.ended
    │   ├── HandoffHeldError       handoff.held
    │   ├── NotApproverError       handoff.not_approver
    │   ├── OutOfScopeError        handoff.out_of_scope
    │   ├── FourEyesError          handoff.four_eyes
    │   ├── UnprovenError          handoff.unproven
    │   ├── HoldChangedError       handoff.hold_changed
    │   ├── NotPersonError         handoff.not_person
    │   └── RunnerError            handoff.runner
    ├── CallError
    │   ├── CallInDoubtError       call.in_doubt
    │   ├── CredentialError        call.credential
    │   ├── CallHeldError          call.held
    │   ├── CallSuspendedError     call.suspended
    │   ├── CallDeniedError        call.denied
    │   ├── CallDecidedError       call.decided
    │   ├── ConstraintViolatedError  call.constraint
    │   ├── CallProtectedError     call.protected
    │   ├── GuardFailedError       call.guard_failed
    │   └── CallReplayError        call.replay
    ├── CallOutcomeError
    │   ├── CommandTimeoutError    call.timeout
    │   └── OutsideGrantError      call.outside_grant
    ├── GrantError
    │   ├── GrantExceededError     grant.exceeded
    │   ├── GrantMissingError      grant.missing
    │   ├── GrantDeniedError       grant.denied
    │   ├── GrantMalformedError    grant.malformed
    │   ├── GrantTooLargeError     grant.too_large
    │   ├── GrantVersionError      grant.version
    │   ├── GrantIntegrityError    grant.integrity
    │   ├── GrantRootError         grant.root
    │   ├── GrantChainError        grant.chain
    │   ├── GrantDepthError        grant.depth
    │   ├── GrantContextError      grant.context
    │   ├── GrantPolicyError       grant.policy
    │   ├── GrantPossessionError   grant.possession
    │   ├── GrantExpiredError      grant.expired
    │   ├── GrantNotYetValidError  grant.not_yet_valid
    │   ├── GrantBackdatedError    grant.backdated
    │   ├── GrantRevokedError      grant.revoked
    │   ├── StaleRevocationsError  grant.stale_revocations
    │   └── GrantReplayedError     grant.replayed
    ├── LedgerError
    │   ├── StaleHeadError         ledger.stale_head
    │   ├── PremiseError           ledger.premise
    │   ├── FencedError            ledger.fenced
    │   ├── StreamClosedError      ledger.stream_closed
    │   ├── RewoundError           ledger.rewound
    │   ├── DuplicateReceiptError  ledger.duplicate
    │   ├── LedgerExistsError      ledger.exists
    │   ├── OfferedAlreadyError    ledger.offered
    │   ├── LeaseLostError         ledger.lease_lost
    │   ├── BudgetExhaustedError   ledger.budget_exhausted
    │   ├── UnknownApproverError   ledger.unknown_approver
    │   └── UnknownRelayError      ledger.unknown_relay
    ├── StoreError
    │   ├── StoreBusyError         store.busy
    │   ├── StoreUnavailableError  store.unavailable
    │   │   └── NoLedgerError      store.no_ledger
    │   ├── StoreRefusedError      store.refused
    │   ├── StoreReadOnlyError     store.read_only
    │   ├── StoreFullError         store.full
    │   ├── NotALedgerError        store.not_a_ledger
    │   ├── SchemaError            store.schema
    │   ├── StoreAlteredError      store.altered
    │   ├── NewerSchemaError       store.newer_schema
    │   ├── ForkedError            store.forked
    │   ├── StoreShutError         store.shut
    │   └── OutcomeUnknownError    store.outcome_unknown
    └── VerificationError          verify.* (one code for each thing that can be wrong)

The code is stable and belongs to machines; the sentence is for people and ends with what to do about it.
Exit codes and HTTP statuses are the doors' business and are not written here.
"""

from batonpass.errors.base import (
    AmbiguousIdError,
    BatonpassError,
    ContentErasedError,
    ContentTooLargeError,
    IllegalTransitionError,
    InvalidValueError,
    KeyFailedError,
    KeyMissingError,
    KeyRefusedError,
    LookupFailedError,
    MissingExtraError,
    NotFoundError,
    PolicyFileError,
    ShortIdError,
    UnknownFieldError,
)
from batonpass.errors.call_outcome import CallOutcomeError, CommandTimeoutError, OutsideGrantError
from batonpass.errors.grant import (
    GrantBackdatedError,
    GrantChainError,
    GrantContextError,
    GrantDeniedError,
    GrantDepthError,
    GrantError,
    GrantExceededError,
    GrantExpiredError,
    GrantIntegrityError,
    GrantMalformedError,
    GrantMissingError,
    GrantNotYetValidError,
    GrantPolicyError,
    GrantPossessionError,
    GrantReplayedError,
    GrantRevokedError,
    GrantRootError,
    GrantTooLargeError,
    GrantVersionError,
    StaleRevocationsError,
)
from batonpass.errors.handoff import (
    AgentNotAllowedError,
    CallDecidedError,
    CallDeniedError,
    CallError,
    CallHeldError,
    CallInDoubtError,
    CallProtectedError,
    CallReplayError,
    CallSuspendedError,
    ConstraintViolatedError,
    CredentialError,
    FourEyesError,
    GuardFailedError,
    HandoffAskedError,
    HandoffDeclinedError,
    HandoffDepthExceededError,
    HandoffEndedError,
    HandoffError,
    HandoffHeldError,
    HandoffLoopError,
    HandoffRefusedError,
    HoldChangedError,
    IncompleteBatonError,
    InputsChangedError,
    KeyReusedError,
    NotApproverError,
    NotEntitledError,
    NotPersonError,
    OutOfScopeError,
    PolicyRefusedError,
    ReusedResultWarning,
    RunnerError,
    UnprovenError,
    UnverifiedError,
)
from batonpass.errors.ledger import (
    BudgetExhaustedError,
    DuplicateReceiptError,
    FencedError,
    ForkedError,
    LeaseLostError,
    LedgerError,
    LedgerExistsError,
    NewerSchemaError,
    NoLedgerError,
    NotALedgerError,
    OfferedAlreadyError,
    OutcomeUnknownError,
    PremiseError,
    RewoundError,
    SchemaError,
    StaleHeadError,
    StoreAlteredError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreRefusedError,
    StoreShutError,
    StoreUnavailableError,
    StreamClosedError,
    UnknownApproverError,
    UnknownRelayError,
)
from batonpass.errors.verification import (
    CertificateError,
    ChainError,
    ContentMismatchError,
    DerivedStateError,
    EditedError,
    MissingError,
    NewerVersionError,
    OverLimitError,
    PositionError,
    RevokedKeyError,
    SchemaAlteredError,
    SealError,
    SignatureError,
    TermsError,
    UncountedError,
    UngrantedError,
    UnknownKeyError,
    UnlinkedError,
    VerificationError,
    WidenedError,
)

__all__ = [
    "AgentNotAllowedError",
    "AmbiguousIdError",
    "BatonpassError",
    "BudgetExhaustedError",
    "CallDecidedError",
    "CallDeniedError",
    "CallError",
    "CallHeldError",
    "CallInDoubtError",
    "CallOutcomeError",
    "CallProtectedError",
    "CallReplayError",
    "CallSuspendedError",
    "CertificateError",
    "ChainError",
    "CommandTimeoutError",
    "ConstraintViolatedError",
    "ContentErasedError",
    "ContentMismatchError",
    "ContentTooLargeError",
    "CredentialError",
    "DerivedStateError",
    "DuplicateReceiptError",
    "EditedError",
    "FencedError",
    "ForkedError",
    "FourEyesError",
    "GrantBackdatedError",
    "GrantChainError",
    "GrantContextError",
    "GrantDeniedError",
    "GrantDepthError",
    "GrantError",
    "GrantExceededError",
    "GrantExpiredError",
    "GrantIntegrityError",
    "GrantMalformedError",
    "GrantMissingError",
    "GrantNotYetValidError",
    "GrantPolicyError",
    "GrantPossessionError",
    "GrantReplayedError",
    "GrantRevokedError",
    "GrantRootError",
    "GrantTooLargeError",
    "GrantVersionError",
    "GuardFailedError",
    "HandoffAskedError",
    "HandoffDeclinedError",
    "HandoffDepthExceededError",
    "HandoffEndedError",
    "HandoffError",
    "HandoffHeldError",
    "HandoffLoopError",
    "HandoffRefusedError",
    "HoldChangedError",
    "IllegalTransitionError",
    "IncompleteBatonError",
    "InputsChangedError",
    "InvalidValueError",
    "KeyFailedError",
    "KeyMissingError",
    "KeyRefusedError",
    "KeyReusedError",
    "LeaseLostError",
    "LedgerError",
    "LedgerExistsError",
    "LookupFailedError",
    "MissingError",
    "MissingExtraError",
    "NewerSchemaError",
    "NewerVersionError",
    "NoLedgerError",
    "NotALedgerError",
    "NotApproverError",
    "NotEntitledError",
    "NotFoundError",
    "NotPersonError",
    "OfferedAlreadyError",
    "OutOfScopeError",
    "OutcomeUnknownError",
    "OutsideGrantError",
    "OverLimitError",
    "PolicyFileError",
    "PolicyRefusedError",
    "PositionError",
    "PremiseError",
    "ReusedResultWarning",
    "RevokedKeyError",
    "RewoundError",
    "RunnerError",
    "SchemaAlteredError",
    "SchemaError",
    "SealError",
    "ShortIdError",
    "SignatureError",
    "StaleHeadError",
    "StaleRevocationsError",
    "StoreAlteredError",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreRefusedError",
    "StoreShutError",
    "StoreUnavailableError",
    "StreamClosedError",
    "TermsError",
    "UncountedError",
    "UngrantedError",
    "UnknownApproverError",
    "UnknownFieldError",
    "UnknownKeyError",
    "UnknownRelayError",
    "UnlinkedError",
    "UnprovenError",
    "UnverifiedError",
    "VerificationError",
    "WidenedError",
]
