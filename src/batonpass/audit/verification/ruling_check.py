"""Holds and rulings: step 8 of verification, and their signatures in step 7."""

from typing import TypeAlias

from msgspec import Struct, field

from batonpass.errors import RevokedKeyError, SignatureError, UnknownKeyError, UnlinkedError
from batonpass.guard.policy.gates import may_let_go_on
from batonpass.model.base.ids import CallId, Digest, HandoffId, LedgerId, PrincipalId
from batonpass.model.base.lifecycle import State
from batonpass.model.base.passkey import find_passkey, public_bytes
from batonpass.model.bodies.body import (
    Gate,
    HandoffApproved,
    HandoffBacked,
    HandoffDenied,
    HandoffHeld,
    HandoffInitiated,
    HandoffResumed,
    ToolApproved,
    ToolBacked,
    ToolHeld,
    ToolRefused,
)
from batonpass.model.ledger.key import KeyRole, KeyStatus
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.ruling import (
    CallDecided,
    Decided,
    Hold,
    hold_of_attempt,
    hold_of_call,
    hold_of_offer,
    is_approval,
    ruling_of,
)
from batonpass.signing.ruling_proof import find_objection
from batonpass.store.derived_rows import Derived
from batonpass.wire.ruling import encode_ruling

# The signed bytes, and their signatures as pairs of public key and signature.
Signed: TypeAlias = tuple[bytes, tuple[tuple[bytes, bytes], ...]]

DECISIONS = (HandoffBacked, HandoffApproved, HandoffDenied, ToolBacked, ToolApproved, ToolRefused)


class Holds(Struct):
    """All holds: of handoffs the latest one, of calls each one; and the approvals that do not suffice alone."""

    handoffs: dict[HandoffId, Hold] = field(default_factory=dict)
    waits: dict[HandoffId, HandoffId] = field(default_factory=dict)  # what a held handoff waits for; nobody approves it
    calls: dict[CallId, ToolHeld] = field(default_factory=dict)
    open_calls: dict[CallId, Hold] = field(default_factory=dict)  # of runs that go on while these calls wait
    backers: dict[Digest, set[PrincipalId]] = field(default_factory=dict)  # by the digest of the hold's receipt

    def remember(self, receipt: Receipt, digest: Digest, derived: Derived) -> None:
        """Remember the hold, or the partial approval, in a receipt."""
        match receipt.body:
            case HandoffInitiated() as body if body.state is State.HELD:
                principal = derived.runs[body.run].principal
                self.handoffs[body.handoff] = hold_of_offer(body, digest, principal=principal)
            case HandoffHeld() as body if body.awaits is not None:
                self.waits[body.handoff] = body.awaits
                self.handoffs.pop(body.handoff, None)
            case HandoffHeld() as body:
                self.waits.pop(body.handoff, None)
                held = None if body.call is None else self.calls.get(body.call)
                known = derived.handoffs[body.handoff]
                self.handoffs[body.handoff] = hold_of_attempt(
                    body,
                    digest,
                    to=known.to,
                    offer=known.initiated,
                    key=None if held is None else held.key,
                    principal=derived.runs[known.parent].principal,
                )
            case ToolHeld() as body:
                self.calls[body.call] = body
                if receipt.root == body.run or body.stays:
                    run = derived.runs[body.run]
                    self.open_calls[body.call] = hold_of_call(body, digest, agent=run.agent, principal=run.principal)
            case HandoffBacked() | ToolBacked() as body if self._knows(body):
                self.backers.setdefault(self.get(body).receipt, set()).add(body.by)
            case _:
                return

    def require_held(self, body: HandoffHeld) -> None:
        """Refuse a suspended attempt whose run did not hold that call. Raises `UnlinkedError`."""
        held = None if body.call is None else self.calls.get(body.call)
        if body.call is not None and (held is None or held.run != body.ended.run):
            raise UnlinkedError(f"{body.call} is no call that the attempt held", field="call")
        if held is not None and held.stays:
            raise UnlinkedError(f"{body.call} was to wait while its run goes on", field="call")

    def require_resumed(self, body: HandoffResumed) -> None:
        """Refuse to resume work that waits for an approval, or for another handoff. Raises `UnlinkedError`."""
        if self.waits.get(body.handoff) != body.awaits:
            raise UnlinkedError(f"it did not wait for {body.awaits}", field="awaits")

    def get(self, body: Decided) -> Hold:
        """Return the hold that a ruling is about. Raises `UnlinkedError`."""
        if isinstance(body, CallDecided):
            hold = self.open_calls.get(body.call)
            if hold is None or hold.run != body.run:
                raise UnlinkedError(f"{body.call} is no held call of {body.run}", field="call")
            return hold
        found = self.handoffs.get(body.handoff)
        if found is None:
            raise UnlinkedError("it decides about a handoff that was never held", field="handoff")
        return found

    def _knows(self, body: HandoffBacked | ToolBacked) -> bool:
        # A bundle may have rulings about trees that it does not contain.
        return body.handoff in self.handoffs if isinstance(body, HandoffBacked) else body.call in self.open_calls


def require_decision(holds: Holds, derived: Derived, body: Decided, *, whole: bool) -> None:
    """Refuse a ruling that answers no hold, by somebody who may not rule, or without the required proof.

    Raises `UnlinkedError`, `UnknownKeyError` and `RevokedKeyError`.
    """
    if not whole and isinstance(body, CallDecided) and body.run not in derived.runs:
        return  # about a tree that is not in this bundle
    hold = holds.get(body)
    # The same handoff can be held again for another reason. An approval of the first hold lets nothing else go on (ADR
    # 38).
    if body.hold is not None and body.hold != hold.receipt:
        raise UnlinkedError("it answers another hold than the one that waited then", field="hold")
    if is_approval(body):
        _require_entitled(holds, hold, body)
    if body.proof is None:
        if hold.proven and is_approval(body):
            raise UnlinkedError("it takes an approver's key to let this go on, and none signed", field="proof")
        return
    key = derived.keys.get(body.proof.key)
    if key is None or key.role is not KeyRole.APPROVER or key.principal != body.by:
        raise UnknownKeyError(f"key {body.proof.key[:16]} is not an approver's key of {body.by}", field="proof")
    if key.status is not KeyStatus.ACTIVE:
        raise RevokedKeyError(f"key {key.id[:16]} was {key.status} before this was decided", field="proof")


def _require_entitled(holds: Holds, hold: Hold, body: Decided) -> None:
    """Refuse an approval by somebody who may not approve, or a final one without the other approvals it needs."""
    if hold.gate is not Gate.NONE and not may_let_go_on(
        hold.gate, body.by, worker=hold.worker, principal=hold.principal
    ):
        raise UnlinkedError(f"{body.by} may not approve it: the gate is {hold.gate}", field="by")
    if hold.approvals == 1:
        if isinstance(body, HandoffBacked | ToolBacked):
            raise UnlinkedError("one approval is enough here, so none can be only a part of it", field="kind")
        return
    # Whoever asked for the work is no second pair of eyes.
    if body.by == hold.principal:
        raise UnlinkedError(f"it takes {hold.approvals} people who did not ask for it, and {body.by} did", field="by")
    people = {*holds.backers.get(hold.receipt, ()), body.by}
    if isinstance(body, HandoffApproved | ToolApproved) and len(people) < hold.approvals:
        raise UnlinkedError(f"it takes {hold.approvals} people to let this go on, and {len(people)} did", field="by")


def find_signed(ledger: LedgerId, holds: Holds, derived: Derived, body: Decided) -> tuple[Signed, ...]:
    """Return the bytes that an approver's key must have signed to prove a ruling; nothing if it claims no proof.

    The signature of a passkey is checked here, and nothing is returned for it: a passkey signs more than the ruling.
    Raises `SignatureError`.
    """
    if body.proof is None or body.proof.key not in derived.keys:
        return ()
    if isinstance(body, CallDecided) and body.call not in holds.open_calls:
        return ()
    ruling = ruling_of(ledger, holds.get(body), body, body.proof.at)
    payload, signature = encode_ruling(ruling), bytes.fromhex(body.proof.signature)
    public_key = derived.keys[body.proof.key].public_key
    if body.proof.passkey is None and find_passkey(public_key) is None:
        return ((payload, ((public_bytes(public_key), signature),)),)
    objection = find_objection(public_key, payload, signature, body.proof.passkey)
    if objection is not None:
        raise SignatureError(objection, field="proof")
    return ()
