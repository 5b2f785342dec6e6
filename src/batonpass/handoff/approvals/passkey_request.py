"""The request to a passkey: one ruling about one hold, made before its owner is asked to sign it.

Nothing is kept of it. The answer names when it was asked, and the relay that records it makes the same ruling again.
"""

from datetime import datetime

from msgspec import Struct

from batonpass.errors import HoldChangedError, KeyMissingError
from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.handoff.approvals.entitlement import is_enough, require_entitled
from batonpass.handoff.history.holds import approvers_of
from batonpass.handoff.runtime.desk import Desk
from batonpass.model.base.ids import HANDOFF, CallId, HandoffId, PrincipalId
from batonpass.model.base.passkey import Passkey, find_passkey
from batonpass.model.ledger.key import Key, KeyStatus
from batonpass.model.ledger.ruling import Hold, Ruling
from batonpass.records.hold import find_backers, find_hold, get_held_call
from batonpass.store.port import LedgerView
from batonpass.wire.ruling import encode_ruling


class PasskeyRequest(Struct, frozen=True, kw_only=True):
    """A ruling as its owner's passkey is to sign it."""

    key: Key
    passkey: Passkey
    ruling: bytes  # its digest is the challenge
    at: datetime


def find_own_passkey(view: LedgerView, principal: PrincipalId) -> tuple[Key, Passkey] | None:
    """Return the active key of an approver, if it is a passkey."""
    active = (key for key in approvers_of(view, principal) if key.status is KeyStatus.ACTIVE)
    found = ((key, find_passkey(key.public_key)) for key in active)
    return next(((key, passkey) for key, passkey in found if passkey is not None), None)


def request_signature(
    desk: Desk, held: str, *, approved: bool, by: PrincipalId, shown: Material, looked_ms: int | None
) -> PasskeyRequest:
    """Return the ruling that a passkey has to sign. Nobody is asked to sign a ruling that would be refused.

    Raises `KeyMissingError` if they have no passkey here, `HoldChangedError`, `NotApproverError`, `OutOfScopeError` and
    `FourEyesError`.
    """
    at = desk.clock.now()
    with desk.store.view() as view:
        own = find_own_passkey(view, by)
        if own is None:
            raise KeyMissingError(f"{by} has no passkey in this ledger; /passkey says how to get one")
        hold = _hold(view, held)
        if hold is None or hold.receipt != shown.hold:
            raise HoldChangedError(held)
        if approved:
            require_entitled(view, desk.gates, hold, by, at)
            is_enough(hold, by, tuple(find_backers(view, hold)))
        ruling = Ruling(
            ledger=view.info().id,
            hold=hold,
            approved=approved,
            by=by,
            at=at,
            shown=shown.digest,
            looked_ms=looked_ms,
        )
    return PasskeyRequest(key=own[0], passkey=own[1], ruling=encode_ruling(ruling), at=at)


def _hold(view: LedgerView, held: str) -> Hold | None:
    if held.startswith(f"{HANDOFF}_"):
        return find_hold(view, view.get_handoff(HandoffId(held)))
    return get_held_call(view, CallId(held))[0]
