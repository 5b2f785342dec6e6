"""The changes that a receipt makes to the derived rows: streams, runs, handoffs, keys and contents.

Every store applies these changes, and the verifier computes the same ones from the receipts. So a derived row that
differs was tampered with.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.model.base.ids import AgentId, ContentId, Digest, HandoffId, KeyId, PublicKey, RunId
from batonpass.model.base.lifecycle import HandoffEvent
from batonpass.model.base.passkey import public_bytes
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.bodies.body import (
    AlarmAcknowledged,
    AlarmCleared,
    AlarmRaised,
    ApproverEnrolled,
    ApproverRevoked,
    ChildHead,
    ContentErased,
    FileEndorsed,
    FindingAcknowledged,
    GrantRevoked,
    HandoffAccepted,
    HandoffAnswered,
    HandoffApproved,
    HandoffAsked,
    HandoffBacked,
    HandoffCancelled,
    HandoffCompleted,
    HandoffDeclined,
    HandoffDenied,
    HandoffEndorsed,
    HandoffExpired,
    HandoffFailed,
    HandoffHeld,
    HandoffInitiated,
    HandoffLapsed,
    HandoffParked,
    HandoffReplaced,
    HandoffResumed,
    HandoffRetried,
    Outcome,
    Part,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RunClosed,
    RunEndorsed,
    RunRecorded,
    RunRekeyed,
    RunSpent,
    RunStarted,
    SessionPruned,
    TokenAdded,
    TokenRevoked,
    ToolApproved,
    ToolBacked,
    ToolCompleted,
    ToolFailed,
    ToolHeld,
    ToolRefused,
    ToolRequested,
    VerificationFailed,
    VerificationPassed,
)
from batonpass.model.bodies.decision_bodies import RecordedDecision
from batonpass.model.grants.charge import REVOKED, Charge, Unit, part_of
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.remark import Remark, RemarkKind
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, RunState, Stated


class RunEnded(Struct, frozen=True, kw_only=True):
    """An open run got its final state."""

    run: RunId
    state: RunState
    at: datetime


class HandoffMoved(Struct, frozen=True, kw_only=True):
    """An event happened to a handoff."""

    handoff: HandoffId
    event: HandoffEvent
    attempt: int | None = None  # the attempt that the event begins or ends; None for other events
    run: RunId | None = None  # set by an acceptance: the run of the attempt
    ends: RunId | None = None  # the run that the event ends, if one was running
    to: AgentId | None = None  # set by a replacement: the next agent
    anchor: Digest | None = None  # set by an acceptance: the handoff's last receipt, which the run's stream follows


class KeyChanged(Struct, frozen=True, kw_only=True):
    """The status of an enrolled key changed."""

    key: KeyId
    status: KeyStatus


class Projection(Struct, frozen=True, kw_only=True):
    """All changes that one receipt makes, besides the new head of its own stream."""

    closes: bool = False  # its own stream takes no more receipts
    bumps: bool = False  # its own stream enters the next epoch
    fences: ChildHead | None = None  # another stream, which must have exactly this head, takes no more receipts
    run_opened: Run | None = None
    run_ended: RunEnded | None = None
    handoff_opened: Handoff | None = None
    handoff_moved: HandoffMoved | None = None
    stated: tuple[Stated, ...] = ()
    key_added: Key | None = None
    key_changed: KeyChanged | None = None
    erased: tuple[ContentId, ...] = ()
    cached: Cached | None = None
    charges: tuple[Charge, ...] = ()
    call_held: HeldCall | None = None
    call_decided: DecidedCall | None = None
    remarks: tuple[Remark, ...] = ()
    proven_by: KeyId | None = None  # the approver's key that signed it; it must be active


NOTHING = Projection()

# These values repeat fields of a receipt, which were checked when it was read or signed. See `trusted`.
_run: Final = unchecked_maker(Run)
_handoff: Final = unchecked_maker(Handoff)
_stated: Final = unchecked_maker(Stated)
_cached: Final = unchecked_maker(Cached)
_held_call: Final = unchecked_maker(HeldCall)
_decided_call: Final = unchecked_maker(DecidedCall)

# All empty files have this digest, and an empty file has no words of anybody.
NO_BYTES: Final = Digest(sha256(b"").hexdigest())

_OUTCOMES = {
    Outcome.COMPLETED: RunState.COMPLETED,
    Outcome.FAILED: RunState.FAILED,
    Outcome.CANCELLED: RunState.CANCELLED,
}


@lru_cache(maxsize=4096)
def key_id(public_key: PublicKey) -> KeyId:
    """Return the id of a public key."""
    return KeyId(sha256(public_bytes(public_key)).hexdigest())


def project(receipt: Receipt, digest: Digest) -> Projection:
    """Return the changes that a receipt with this digest makes. An unknown kind changes only its own stream."""
    # The changes depend on the receipt alone, never on the rows that a store has. The verifier has only receipts, and
    # must get the same rows as every store did: only then does a difference mean tampering.
    projector = _PROJECTORS.get(type(receipt.body))
    return NOTHING if projector is None else projector(receipt, receipt.body, digest)


def _run_started(receipt: Receipt, body: RunStarted, _: Digest) -> Projection:
    intent = receipt.content.get(Part.INTENT)
    stated = (
        ()
        if intent is None
        else (
            _stated(
                item=intent.id,
                root=body.run,
                digest=intent.digest,
                by=body.principal,
                at=receipt.at,
            ),
        )
    )
    return Projection(run_opened=_run_opened(receipt, body), stated=stated)


def _run_recorded(receipt: Receipt, body: RunRecorded, _: Digest) -> Projection:
    return Projection(
        stated=tuple(
            _stated(item=item.item, root=receipt.root or body.run, digest=item.digest, by=body.by, at=receipt.at)
            for item in body.items
            if item.part is Part.INTENT
        ),
    )


def _run_rekeyed(_receipt: Receipt, _body: RunRekeyed, _: Digest) -> Projection:
    # The stream goes on in the next epoch. The holder of the old key writes in the old one, and is refused by the
    # compare-and-set of the append; no list of lost keys is needed.
    return Projection(bumps=True)


def _run_closed(receipt: Receipt, body: RunClosed, _: Digest) -> Projection:
    return Projection(closes=True, run_ended=_ended(receipt, body.run, _OUTCOMES[body.outcome]))


def _handoff_initiated(receipt: Receipt, body: HandoffInitiated, digest: Digest) -> Projection:
    return Projection(
        handoff_opened=_handoff(
            id=body.handoff,
            root=receipt.root or body.run,
            parent=body.run,
            to=body.to,
            carrier=body.carrier,
            state=body.state,
            attempt=0,
            run=None,
            initiated=digest,
            seq=receipt.seq,
            scope=body.scope,
            key=body.key,
            deadline=body.deadline,
        ),
    )


def _handoff_accepted(receipt: Receipt, body: HandoffAccepted, _: Digest) -> Projection:
    return Projection(
        # Run and handoff in one receipt, so no store can have an attempt without its handoff, or a running handoff
        # without its run.
        run_opened=_run_opened(receipt, body),
        handoff_moved=HandoffMoved(
            handoff=body.handoff,
            event=HandoffEvent.ACCEPT,
            attempt=body.attempt,
            run=body.run,
            # The receipt of the handoff that the receiver has validated. If another one came since, the store refuses
            # the acceptance.
            anchor=receipt.previous,
        ),
    )


def _handoff_completed(receipt: Receipt, body: HandoffCompleted, _: Digest) -> Projection:
    return _close_out(receipt, body, HandoffEvent.COMPLETE, RunState.COMPLETED)


def _handoff_failed(receipt: Receipt, body: HandoffFailed, _: Digest) -> Projection:
    # A refused offer makes no handoff, and the run that wanted to hand off goes on.
    return NOTHING if body.is_refusal else _close_out(receipt, body, HandoffEvent.FAIL, RunState.FAILED)


# The event of each act, and the final state of a run that was working on the handoff.
_ACTS: Final[Mapping[type, tuple[HandoffEvent, RunState | None]]] = {
    HandoffHeld: (HandoffEvent.HOLD, RunState.SUSPENDED),
    HandoffResumed: (HandoffEvent.RESUME, None),
    HandoffParked: (HandoffEvent.PARK, None),
    HandoffApproved: (HandoffEvent.APPROVE, None),
    HandoffDenied: (HandoffEvent.DENY, None),
    HandoffAsked: (HandoffEvent.ASK, None),
    HandoffAnswered: (HandoffEvent.ANSWER, None),
    HandoffDeclined: (HandoffEvent.DECLINE, None),
    HandoffLapsed: (HandoffEvent.LAPSE, RunState.LAPSED),
    HandoffExpired: (HandoffEvent.EXPIRE, RunState.EXPIRED),
    HandoffCancelled: (HandoffEvent.CANCEL, RunState.CANCELLED),
    HandoffRetried: (HandoffEvent.RETRY, None),
    HandoffReplaced: (HandoffEvent.REPLACE, None),
    VerificationPassed: (HandoffEvent.VERIFY, None),
    VerificationFailed: (HandoffEvent.REFUTE, None),
}


def _act(receipt: Receipt, body: Any, _: Digest) -> Projection:  # noqa: ANN401 - any of the bodies above
    event, state = _ACTS[type(body)]
    ended: ChildHead | None = getattr(body, "ended", None)
    return Projection(
        # `ended` names the run and its head as the writer has read them. The store refuses the act if the run has
        # written since, and closes the stream of the run in the same commit. So nothing can follow the recorded end of
        # an attempt.
        fences=ended,
        run_ended=None if ended is None or state is None else _ended(receipt, ended.run, state),
        handoff_moved=HandoffMoved(
            handoff=body.handoff,
            event=event,
            attempt=getattr(body, "attempt", None),
            ends=None if ended is None else ended.run,
            to=body.to if isinstance(body, HandoffReplaced) else None,
        ),
        proven_by=body.proof.key if isinstance(body, HandoffApproved | HandoffDenied) and body.proof else None,
    )


def _refuted(receipt: Receipt, body: VerificationFailed, digest: Digest) -> Projection:
    # The remark is found by the root run: whoever hands off in this tree has to know of it.
    root = () if receipt.root is None else (receipt.root,)
    remarks = tuple(Remark(said=RemarkKind.REFUTED, name=str(name), receipt=receipt.id) for name in root)
    return replace(_act(receipt, body, digest), remarks=remarks)


def _charged(_receipt: Receipt, body: ToolRequested | RunSpent, _: Digest) -> Projection:
    return Projection(charges=body.charges) if body.charges else NOTHING


def _tool_completed(receipt: Receipt, body: ToolCompleted, _: Digest) -> Projection:
    remarks = _left(receipt, body)
    if body.cache is None or body.fresh_until is None:
        return Projection(charges=body.charges, remarks=remarks) if body.charges or remarks else NOTHING
    kept = _cached(call=body.call, key=body.cache, receipt=receipt.id, until=body.fresh_until)
    return Projection(cached=kept, charges=body.charges, remarks=remarks)


def _tool_failed(receipt: Receipt, body: ToolFailed, _: Digest) -> Projection:
    remarks = _left(receipt, body)
    return Projection(remarks=remarks) if remarks else NOTHING


def _left(receipt: Receipt, body: ToolCompleted | ToolFailed) -> tuple[Remark, ...]:
    """Return remarks about files that a tainted run wrote, and about commits."""
    if not body.taint and not body.commits:
        return ()
    written = {changed.after for changed in body.changes} - {None, NO_BYTES} if body.taint else set()
    return (
        *(
            Remark(said=RemarkKind.TAINTED, name=str(digest), receipt=receipt.id)
            for digest in sorted(map(str, written))
        ),
        *(Remark(said=RemarkKind.COMMITTED, name=commit, receipt=receipt.id) for commit in body.commits),
    )


def _endorsed(receipt: Receipt, body: RunEndorsed | HandoffEndorsed | FileEndorsed, _: Digest) -> Projection:
    names = body.holds if isinstance(body, FileEndorsed) else (body.source,)
    return Projection(remarks=tuple(Remark(said=RemarkKind.ENDORSED, name=name, receipt=receipt.id) for name in names))


def _pruned(receipt: Receipt, body: SessionPruned, _: Digest) -> Projection:
    return Projection(remarks=(Remark(said=RemarkKind.PRUNED, name=str(body.root), receipt=receipt.id),))


def _acknowledged(receipt: Receipt, body: FindingAcknowledged, _: Digest) -> Projection:
    return Projection(remarks=(Remark(said=RemarkKind.ACKNOWLEDGED, name=str(body.root), receipt=receipt.id),))


def _alarm(receipt: Receipt, body: AlarmRaised | AlarmAcknowledged | AlarmCleared, _: Digest) -> Projection:
    return Projection(remarks=(Remark(said=RemarkKind.ALARM, name=body.agent, receipt=receipt.id),))


def _token(receipt: Receipt, body: TokenAdded | TokenRevoked, _: Digest) -> Projection:
    return Projection(remarks=(Remark(said=RemarkKind.TOKEN, name=body.token, receipt=receipt.id),))


def _ruled(receipt: Receipt, body: RecordedDecision) -> tuple[Remark, ...]:
    """Return the remark under which the rulings of one person are found."""
    return (Remark(said=RemarkKind.RULED, name=body.by, receipt=receipt.id),)


def _handoff_decided(receipt: Receipt, body: HandoffApproved | HandoffDenied, digest: Digest) -> Projection:
    return replace(_act(receipt, body, digest), remarks=_ruled(receipt, body))


def _tool_held(receipt: Receipt, body: ToolHeld, _: Digest) -> Projection:
    # Only a call that waits while its run goes on is a row of its own: one of a root, or one that `stays`. Any other
    # ends its attempt, and the `handoff.held` receipt holds the handoff.
    if receipt.root != body.run and not body.stays:
        return NOTHING
    return Projection(call_held=_held_call(call=body.call, run=body.run, receipt=receipt.id))


def _backed(receipt: Receipt, body: HandoffBacked | ToolBacked, _: Digest) -> Projection:
    # The hold stays as it is. The store only checks that the key may sign.
    # The first of two approvals: it must not look like the last to a reader of an older version, so it moves no row
    # (ADR 38).
    return Projection(proven_by=None if body.proof is None else body.proof.key, remarks=_ruled(receipt, body))


def _tool_decided(receipt: Receipt, body: ToolApproved | ToolRefused, _: Digest) -> Projection:
    approved = isinstance(body, ToolApproved)
    return Projection(
        call_decided=_decided_call(call=body.call, run=body.run, receipt=receipt.id, approved=approved),
        proven_by=None if body.proof is None else body.proof.key,
        remarks=_ruled(receipt, body),
    )


def _relay_enrolled(_receipt: Receipt, body: RelayEnrolled, _: Digest) -> Projection:
    return Projection(key_added=_relay_key(body))


def _relay_rotated(_receipt: Receipt, body: RelayRotated, _: Digest) -> Projection:
    retired = KeyChanged(key=key_id(body.old_key), status=KeyStatus.RETIRED)
    return Projection(key_added=_relay_key(body), key_changed=retired)


def _relay_revoked(_receipt: Receipt, body: RelayRevoked, _: Digest) -> Projection:
    return Projection(key_changed=KeyChanged(key=key_id(body.public_key), status=KeyStatus.REVOKED))


def _approver_enrolled(_receipt: Receipt, body: ApproverEnrolled, _: Digest) -> Projection:
    key = Key(
        id=key_id(body.public_key),
        role=KeyRole.APPROVER,
        public_key=body.public_key,
        relay=None,
        status=KeyStatus.ACTIVE,
        principal=body.principal,
    )
    return Projection(key_added=key)


def _approver_revoked(_receipt: Receipt, body: ApproverRevoked, _: Digest) -> Projection:
    return Projection(key_changed=KeyChanged(key=key_id(body.public_key), status=KeyStatus.REVOKED))


def _content_erased(_receipt: Receipt, body: ContentErased, _: Digest) -> Projection:
    return Projection(erased=body.contents)


def _grant_revoked(_receipt: Receipt, body: GrantRevoked, _: Digest) -> Projection:
    # A charge on an account of which nothing may be used. The commit of each request checks its limits anyway, so it
    # also finds a revocation, and no call slips in between (ADR 33).
    return Projection(charges=(Charge(account=part_of(body.account, REVOKED), unit=Unit.CALLS, amount=1),))


# A kind that is missing here changes only its own stream: most receipts of calls, and all kinds of newer versions.
_PROJECTORS: Final[Mapping[type, Callable[[Receipt, Any, Digest], Projection]]] = {
    RunStarted: _run_started,
    RunRekeyed: _run_rekeyed,
    RunRecorded: _run_recorded,
    RunClosed: _run_closed,
    RunSpent: _charged,
    RunEndorsed: _endorsed,
    HandoffInitiated: _handoff_initiated,
    HandoffAccepted: _handoff_accepted,
    HandoffCompleted: _handoff_completed,
    HandoffFailed: _handoff_failed,
    HandoffEndorsed: _endorsed,
    **dict.fromkeys(_ACTS, _act),
    HandoffApproved: _handoff_decided,
    HandoffDenied: _handoff_decided,
    VerificationFailed: _refuted,
    ToolRequested: _charged,
    ToolCompleted: _tool_completed,
    ToolFailed: _tool_failed,
    ToolHeld: _tool_held,
    HandoffBacked: _backed,
    ToolBacked: _backed,
    ToolApproved: _tool_decided,
    ToolRefused: _tool_decided,
    RelayEnrolled: _relay_enrolled,
    RelayRotated: _relay_rotated,
    RelayRevoked: _relay_revoked,
    ApproverEnrolled: _approver_enrolled,
    ApproverRevoked: _approver_revoked,
    ContentErased: _content_erased,
    FileEndorsed: _endorsed,
    FindingAcknowledged: _acknowledged,
    **dict.fromkeys((AlarmRaised, AlarmAcknowledged, AlarmCleared), _alarm),
    GrantRevoked: _grant_revoked,
    SessionPruned: _pruned,
    TokenAdded: _token,
    TokenRevoked: _token,
}


def _run_opened(receipt: Receipt, body: RunStarted | HandoffAccepted) -> Run:
    child = body if isinstance(body, HandoffAccepted) else None
    return _run(
        id=body.run,
        root=receipt.root or body.run,
        parent=child.parent if child else None,
        handoff=child.handoff if child else None,
        attempt=child.attempt if child else 1,
        agent=body.agent,
        principal=body.principal,
        state=RunState.OPEN,
        started_at=receipt.at,
        ended_at=None,
        series=body.series if isinstance(body, RunStarted) else None,
        session=receipt.session,
    )


def _ended(receipt: Receipt, run: RunId, state: RunState) -> RunEnded:
    return RunEnded(run=run, state=state, at=receipt.at)


def _close_out(
    receipt: Receipt,
    body: HandoffCompleted | HandoffFailed,
    event: HandoffEvent,
    state: RunState,
) -> Projection:
    return Projection(
        closes=True,
        run_ended=_ended(receipt, body.run, state),
        handoff_moved=HandoffMoved(handoff=body.handoff, event=event, attempt=body.attempt, ends=body.run),
    )


def enrols_itself(receipt: Receipt) -> bool:
    """Return whether a receipt enrols the same key that signs it. Then the root key's signature decides."""
    return isinstance(receipt.body, RelayEnrolled) and key_id(receipt.body.public_key) == receipt.relay_key


def root_key(public_key: PublicKey) -> Key:
    """Return a ledger's root key as an enrolled key."""
    return Key(
        id=key_id(public_key),
        role=KeyRole.ROOT,
        public_key=public_key,
        relay=None,
        status=KeyStatus.ACTIVE,
    )


def _relay_key(body: RelayEnrolled | RelayRotated) -> Key:
    return Key(
        id=key_id(body.public_key),
        role=KeyRole.RELAY,
        public_key=body.public_key,
        relay=body.relay,
        status=KeyStatus.ACTIVE,
    )
