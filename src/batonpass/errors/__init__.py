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
    │   │   ├── UnknownAgentError      handoff.unknown_agent
    │   │   ├── HandoffLoopError       handoff.loop
    │   │   ├── IncompleteBatonError   handoff.incomplete
    │   │   ├── HandoffRefusedError    handoff.refused
    │   │   ├── TaskInFlightError      handoff.in_flight
    │   │   └── UnverifiedError        handoff.unverified
    │   ├── IncompleteReportError  handoff.report_incomplete
    │   ├── InputsChangedError     handoff.inputs_changed
    │   ├── TurnsExhaustedError    handoff.turns_exhausted
    │   ├── CrewFailedError        handoff.crew_failed
    │   ├── KeyReusedError         handoff.key_reused
    │   ├── NotEntitledError       handoff.not_entitled
    │   ├── HandoffAskedError      handoff.asked
    │   ├── HandoffDeclinedError   handoff.declined
    │   ├── HandoffEndedError      handoff.ended
    │   ├── AttemptsExhaustedError handoff.attempts_exhausted
    │   ├── HandoffHeldError       handoff.held
    │   ├── HandoffSuspendedError  handoff.suspended
    │   ├── NothingToDecideError   handoff.nothing_to_decide
    │   ├── NotApproverError       handoff.not_approver
    │   ├── OutOfScopeError        handoff.out_of_scope
    │   ├── FourEyesError          handoff.four_eyes
    │   ├── UnprovenError          handoff.unproven
    │   ├── ApprovalExpiredError   handoff.approval_expired
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
    │   ├── DeadlinePassedError    call.deadline
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
    │   │   ├── NoLedgerError      store.no_ledger
    │   │   └── ServerUnreachableError  remote.unreachable
    │   ├── ForeignLedgerError     store.foreign
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
    ├── AccessError
    │   ├── UnknownTokenError      access.unknown_token
    │   ├── RoleRefusedError       access.role
    │   ├── OutOfReachError        access.out_of_reach
    │   ├── RunProofError          access.run_proof
    │   ├── AnotherPrincipalError  access.principal
    │   ├── SessionEndedError      access.session
    │   ├── LoginRefusedError      access.login
    │   ├── WrongFormError         access.form
    │   ├── LockedOutError         access.locked_out
    │   ├── WrongHostError         access.host
    │   ├── WrongOriginError       access.origin
    │   ├── SignatureMissingError  access.signature_missing
    │   ├── SignatureWrongError    access.signature_wrong
    │   └── TooManyRequestsError   access.too_many
    ├── RequestError
    │   ├── NoSuchRouteError       http.no_route
    │   ├── WrongMethodError       http.method
    │   ├── MediaTypeError         http.media_type
    │   ├── RequestTooLargeError   http.too_large
    │   ├── RepeatedKeyError       http.key_reused
    │   └── InternalFaultError     http.internal
    ├── EgressError
    │   ├── EgressRefusedError     egress.refused
    │   ├── EgressRedirectedError  egress.redirected
    │   ├── EgressTooLargeError    egress.too_large
    │   ├── EgressFailedError      egress.failed
    │   └── CollectorError         telemetry.untaken
    ├── RemoteError
    │   ├── RemoteAnswerError      remote.answer
    │   ├── SigningRefusedError    remote.signing_refused
    │   └── NotOverHttpError       remote.not_possible
    ├── RemoteAgentError
    │   ├── RemoteCardError        elsewhere.card
    │   ├── RemoteRefusedError     elsewhere.refused
    │   ├── RemoteFailedError      elsewhere.failed
    │   ├── RemoteAskedError       elsewhere.asked
    │   └── RemoteWithdrawnError   elsewhere.withdrawn
    ├── ServerNotStartedError      server.not_started
    └── VerificationError          verify.* (one code for each kind of damage)

The code is stable and is for programs. The sentence is for people: it ends with what to do next.
Exit codes and HTTP statuses belong to the doors and are not listed here.
"""

# ruff: noqa: F403 - each of these modules holds errors and nothing else, and every one of them is public
from batonpass.errors.access import *
from batonpass.errors.base import *
from batonpass.errors.call import *
from batonpass.errors.egress import *
from batonpass.errors.grant import *
from batonpass.errors.handoff import *
from batonpass.errors.ledger import *
from batonpass.errors.remote import *
from batonpass.errors.remote_agent import *
from batonpass.errors.verification import *

__all__ = [name for name in dir() if name.endswith("Error")]
