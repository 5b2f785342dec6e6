"""Rulings: somebody approves or denies a held handoff or call, signed with a key or only by name.

A ruling is about exactly one hold, and names its receipt. A run that makes its held call again finds the ruling here.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, TypeVar

from msgspec.structs import replace

from batonpass.errors import (
    CallDecidedError,
    CallDeniedError,
    CallSuspendedError,
    DuplicateReceiptError,
    HandoffEndedError,
    HoldChangedError,
    KeyRefusedError,
    NothingToDecideError,
    StaleHeadError,
    UnprovenError,
)
from batonpass.guard.policy.gates import GateDecision, is_for_approvers
from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.handoff.approvals.entitlement import is_enough, require_entitled
from batonpass.handoff.history.holds import (
    approvers_of,
    find_last_counter,
    has_expired,
    is_proven,
    needs_proof,
    require_opened,
)
from batonpass.handoff.runtime.desk import Desk
from batonpass.ledger.position import standing
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import CallId, Digest, HandoffId, PrincipalId, RunId
from batonpass.model.base.lifecycle import HandoffEvent, advance
from batonpass.model.bodies.body import (
    Body,
    HandoffApproved,
    HandoffBacked,
    HandoffDenied,
    ToolApproved,
    ToolBacked,
    ToolHeld,
    ToolRefused,
)
from batonpass.model.ledger.key import KeyStatus
from batonpass.model.ledger.ruling import Decided, Hold, is_approval, ruling_of
from batonpass.model.ledger.run import RunState
from batonpass.records.hold import find_backers, find_decision, find_hold, get_held_call
from batonpass.records.wait import find_wait
from batonpass.signing.approver_key import Approver
from batonpass.store.port import LedgerView

PASSKEY_WAITS: Final = timedelta(minutes=10)  # so long the answer of a passkey can be recorded
_CLOCKS_DIFFER: Final = timedelta(minutes=1)

UNPROVEN: Final = "approval.unproven"  # a flag: no key proves who approved

TIME_LIMIT: Final = "service:time-limit"  # in whose name overdue holds are denied

# We look again each time that something else happened to the handoff in between. So many times is a fault.
_TRIES: Final = 64

AnyDecision = TypeVar("AnyDecision", bound=Decided)


def decide_handoff(
    desk: Desk,
    handoff: HandoffId,
    *,
    approved: bool,
    by: str | Approver,
    reason: str | None = None,
    shown: Material | None = None,
    looked_ms: int | None = None,
) -> None:
    """Approve or deny a held handoff. An `Approver` signs the ruling; from anybody else only the name is recorded.

    If several people have to approve, the handoff waits until the last of them has. Raises `NotApproverError`,
    `OutOfScopeError`, `FourEyesError`, `UnprovenError`, `KeyRefusedError`, `HoldChangedError` if the sheet was about
    another hold, and `IllegalTransitionError` if the handoff is not held.
    """
    measured_ms = _measured(desk, shown)
    contents = () if reason is None else (desk.text(REASON, reason),)
    for _ in range(_TRIES):
        with desk.store.view() as view:
            known, last = standing(view, handoff)
            # Raises if the handoff is not held: the table of transitions decides that.
            advance(known.state, HandoffEvent.APPROVE if approved else HandoffEvent.DENY, known.carrier)
            hold = find_hold(view, known)
            if hold is None:
                wait = find_wait(view, known)
                raise (
                    HandoffEndedError(handoff, known.state)
                    if wait is None
                    else NothingToDecideError(handoff, wait.awaits)
                )
            last_one = approved and is_enough(hold, principal_of(by), tuple(find_backers(view, hold)))
            kind = HandoffApproved if last_one else HandoffBacked if approved else HandoffDenied
            said = kind(
                handoff=handoff,
                by=principal_of(by),
                hold=hold.receipt,
                shown=_digest(shown),
                looked_ms=looked_ms,
                measured_ms=measured_ms,
                expires=_expiry(desk) if last_one else None,
            )
            body = _decided(desk, view, hold, said, by=by, shown=shown)
        try:
            # Only right after the receipt that we read: the signed ruling is about this hold, and the count of earlier
            # approvals must still be true. Otherwise two approvers could each believe that one more is missing.
            desk.recording.act(handoff, _always(body), contents, after=last)
        except StaleHeadError as stale:
            if stale.stream != handoff:
                raise
            continue
        return
    raise StaleHeadError(handoff, 0)


def decide_call(
    desk: Desk,
    call: CallId,
    *,
    approved: bool,
    by: str | Approver,
    reason: str | None = None,
    shown: Material | None = None,
    looked_ms: int | None = None,
) -> None:
    """Approve or deny a held call of a run that goes on, once and for good, from any process.

    A call whose time limit has passed is denied first, whatever the ruling says. If several people have to approve, the
    call waits until the last of them has. Raises `NotFoundError`, `NotApproverError`, `OutOfScopeError`,
    `FourEyesError`, `UnprovenError`, `KeyRefusedError`, `HoldChangedError`, `HandoffEndedError` if the run is over, and
    `CallDecidedError` if somebody ruled before.
    """
    measured_ms = _measured(desk, shown)
    if by != TIME_LIMIT:
        refuse_overdue(desk, call)
    with desk.store.view() as view:
        hold, receipt = get_held_call(view, call)
        _require_undecided(view, call)
        run = view.get_run(RunId(receipt.stream))
        if run.state is not RunState.OPEN:
            raise HandoffEndedError(run.id, run.state)
        last_one = approved and is_enough(hold, principal_of(by), tuple(find_backers(view, hold)))
        kind = ToolApproved if last_one else ToolBacked if approved else ToolRefused
        said = kind(
            run=run.id,
            call=call,
            by=principal_of(by),
            hold=hold.receipt,
            shown=_digest(shown),
            looked_ms=looked_ms,
            measured_ms=measured_ms,
            expires=_expiry(desk) if last_one else None,
        )
        body = _decided(desk, view, hold, said, by=by, shown=shown)
    try:
        desk.recording.note(body, () if reason is None else (desk.text(REASON, reason),))
    except DuplicateReceiptError:
        with desk.store.view() as view:
            _require_undecided(view, call)
        raise
    if isinstance(body, ToolBacked):
        _complete(desk, hold, body)


def _complete(desk: Desk, hold: Hold, backed: ToolBacked) -> None:
    """Approve a call if enough people have backed it by now: another person may have backed it at the same moment.

    Each relay writes into its own stream, so none of them could see the other. The last writer sees both here. The
    approval repeats the ruling that this person has just made, with its signature; if both repeat theirs, one counts.
    """
    with desk.store.view() as view:
        people = {body.by for body in find_backers(view, hold)}
    if len(people) < hold.approvals:
        return
    said = {name: getattr(backed, name) for name in backed.__struct_fields__}
    with suppress(DuplicateReceiptError):
        desk.recording.note(ToolApproved(**{**said, "expires": _expiry(desk)}))


def _expiry(desk: Desk) -> datetime:
    """Return until when an approval that is given now must be used."""
    return desk.clock.now() + desk.gates.approval_lasts


def is_void(desk: Desk, held: ToolHeld, *, covers: bool) -> bool:
    """Return whether a call of a run that goes on was approved, and the approval has expired or does not cover it."""
    with desk.store.view() as view:
        found = find_decision(view, held.call)
    return found is not None and is_approval(found[1]) and (not covers or has_expired(found[1], desk.clock.now()))


def refuse_overdue(desk: Desk, call: CallId) -> None:
    """Deny a held call if nobody ruled in time; the time limit is in the receipt of the hold."""
    with desk.store.view() as view:
        held = get_held_call(view, call)[1].body
        decided = find_decision(view, call) is not None
    until = held.until if isinstance(held, ToolHeld) else None
    if decided or until is None or until > desk.clock.now():
        return
    with suppress(CallDecidedError):
        decide_call(desk, call, approved=False, by=TIME_LIMIT, reason=out_of_time(until))


def out_of_time(until: datetime) -> str:
    """Return the reason of a denial because the time limit has passed."""
    return f"the time to approve it ended at {until:%Y-%m-%d %H:%M:%S}Z"


def principal_of(by: str | Approver) -> PrincipalId:
    """Return the principal in whose name the ruling is made."""
    return by.principal if isinstance(by, Approver) else PrincipalId(by)


def _decided(
    desk: Desk, view: LedgerView, hold: Hold, said: AnyDecision, *, by: str | Approver, shown: Material | None
) -> AnyDecision:
    """Return a ruling, signed if `by` has a key. Raises if `by` may not make it, or saw the sheet of another hold."""
    if shown is not None and shown.hold != hold.receipt:
        raise HoldChangedError(hold.name)
    at = desk.clock.now()
    if is_approval(said):
        require_entitled(view, desk.gates, hold, said.by, at)
    if isinstance(by, Approver):
        return _proven(view, hold, said, by, at)
    if not is_approval(said) or not is_for_approvers(hold.gate):
        return said
    if needs_proof(view, desk.gates, hold):
        raise UnprovenError(hold.name, said.by)
    return replace(said, flags=(UNPROVEN,))


def _proven(view: LedgerView, hold: Hold, said: AnyDecision, by: Approver, at: datetime) -> AnyDecision:
    known = next((key for key in approvers_of(view, by.principal) if key.id == by.signer.key), None)
    if known is None or known.status is not KeyStatus.ACTIVE:
        status = "not enrolled" if known is None else str(known.status)
        raise KeyRefusedError(
            f"key {by.signer.key[:16]} of {by.principal} is {status} in this ledger, so it proves nothing here; "
            f"`batonpass approver add {by.principal}` enrols one"
        )
    if by.at is not None:
        _require_fresh(by.at, at)
    proven = replace(said, proof=by.prove(ruling_of(view.info().id, hold, said, by.at or at)))
    # The key may be in another process or on a device, and may answer with anything. So verify what it signed.
    if not is_proven(view, hold, proven):
        raise KeyRefusedError(f"the signature of key {known.id[:16]} is not about this ruling; nothing was recorded")
    _require_counted(view, proven)
    return proven


def _require_fresh(asked_at: datetime, now: datetime) -> None:
    """Refuse a passkey's signature from long ago, or from the future: the decision has to be made now."""
    if not -_CLOCKS_DIFFER <= now - asked_at <= PASSKEY_WAITS:
        raise KeyRefusedError(
            f"the passkey was asked at {asked_at:%Y-%m-%d %H:%M:%S}Z, and its answer counts for "
            f"{int(PASSKEY_WAITS.total_seconds()) // 60} minutes; load the page again"
        )


def _require_counted(view: LedgerView, decided: Decided) -> None:
    """Refuse an authenticator that has counted further before: somebody has a copy of it.

    Only here, and not in the verifier: two answers may be recorded in another order than they were given.
    """
    proof = decided.proof
    if proof is None or proof.passkey is None or not proof.passkey.counter:
        return  # passkeys that are on several devices do not count
    before = find_last_counter(view, proof.key)
    if proof.passkey.counter <= before:
        raise KeyRefusedError(
            f"the authenticator of {decided.by} counts {proof.passkey.counter} signatures, and it has counted {before} "
            "before: somebody may have a copy of it; nothing was recorded"
        )


def _require_undecided(view: LedgerView, call: CallId) -> None:
    found = find_decision(view, call)
    if found is not None:
        body: Decided = found[1]
        raise CallDecidedError(call, body.by, "approved" if is_approval(body) else "refused")


def _digest(shown: Material | None) -> Digest | None:
    return None if shown is None else shown.digest


def _measured(desk: Desk, shown: Material | None) -> int | None:
    """Return how many milliseconds ago this relay showed the sheet; None if it did not."""
    return None if shown is None else desk.showings.measure(shown.hold, shown.digest)


def _always(body: Body) -> Callable[[object, object], Body]:
    return lambda _, __: body


def heed(desk: Desk, held: ToolHeld, decision: GateDecision) -> CallDeniedError | None:
    """Return the error of a denied call of a run that goes on; None if it was approved.

    Raises `CallSuspendedError` while nobody has ruled, `UnprovenError` if the approval lacks a valid proof, and
    `FourEyesError` if too few people approved.
    """
    refuse_overdue(desk, held.call)
    with desk.store.view() as view:
        found = find_decision(view, held.call)
        if found is None:
            raise CallSuspendedError(held.tool, held.call, held.rule, decision.sentence, None)
        _, body = found
        hold, _ = get_held_call(view, held.call)
        if isinstance(body, ToolApproved):
            # Another process may have recorded the approval, so it is verified from its receipt at the moment of use.
            require_opened(view, hold, body)
            return None
    where = desk.gates.where(held.rule)
    return CallDeniedError(held.tool, held.rule, where, f"{body.by} denied {held.tool}")
