"""What waited for somebody and what was decided about it: step 8 of verification, and the signatures of step 7."""

from dataclasses import dataclass, field
from typing import TypeAlias

from batonpass.errors import RevokedKeyError, UnknownKeyError, UnlinkedError
from batonpass.model.bodies import (
    HandoffApproved,
    HandoffDenied,
    HandoffHeld,
    HandoffInitiated,
    ToolApproved,
    ToolHeld,
    ToolRefused,
)
from batonpass.model.ids import CallId, Digest, HandoffId, LedgerId
from batonpass.model.key import KeyRole, KeyStatus
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Receipt
from batonpass.model.ruling import Decided, Hold, hold_of_attempt, hold_of_call, hold_of_offer, is_approval, ruling_of
from batonpass.store.fold import Derived
from batonpass.wire.rulings import encode_ruling

# What was signed, and the signatures over it: public key, signature.
Signed: TypeAlias = tuple[bytes, tuple[tuple[bytes, bytes], ...]]

DECISIONS = (HandoffApproved, HandoffDenied, ToolApproved, ToolRefused)


@dataclass(slots=True)
class Holds:
    """Everything that waits or waited: handoffs by their latest hold, calls one by one."""

    handoffs: dict[HandoffId, Hold] = field(default_factory=dict)
    calls: dict[CallId, ToolHeld] = field(default_factory=dict)
    of_roots: dict[CallId, Hold] = field(default_factory=dict)

    def remember(self, receipt: Receipt, digest: Digest, derived: Derived) -> None:
        """Take in what a receipt says that waits."""
        match receipt.body:
            case HandoffInitiated() as body if body.state is State.HELD:
                self.handoffs[body.handoff] = hold_of_offer(body, digest)
            case HandoffHeld() as body:
                held = None if body.call is None else self.calls.get(body.call)
                known = derived.handoffs[body.handoff]
                self.handoffs[body.handoff] = hold_of_attempt(
                    body, digest, to=known.to, offer=known.initiated, key=None if held is None else held.key
                )
            case ToolHeld() as body:
                self.calls[body.call] = body
                if receipt.root == body.run:
                    agent = derived.runs[body.run].agent
                    self.of_roots[body.call] = hold_of_call(body, digest, agent=agent)
            case _:
                return

    def require_held(self, body: HandoffHeld) -> None:
        """Refuse an attempt that is said to wait for a call which its run did not hold."""
        held = None if body.call is None else self.calls.get(body.call)
        if body.call is not None and (held is None or held.run != body.ended.run):
            raise UnlinkedError(f"{body.call} is no call that the attempt held", field="call")

    def get(self, body: Decided) -> Hold:
        """Return what a decision is about."""
        if isinstance(body, ToolApproved | ToolRefused):
            hold = self.of_roots.get(body.call)
            if hold is None or hold.run != body.run:
                raise UnlinkedError(f"{body.call} is no held call of {body.run}", field="call")
            return hold
        found = self.handoffs.get(body.handoff)
        if found is None:
            raise UnlinkedError("it decides about a handoff that was never held", field="handoff")
        return found


def require_decision(holds: Holds, derived: Derived, body: Decided, *, whole: bool) -> None:
    """Refuse a decision about nothing, one without the proof that it takes, and one by a key that is not theirs."""
    if not whole and isinstance(body, ToolApproved | ToolRefused) and body.run not in derived.runs:
        return  # in a bundle, of a tree that is not in it
    hold = holds.get(body)
    if body.proof is None:
        if hold.proven and is_approval(body):
            raise UnlinkedError("it takes an approver's key to let this go on, and none signed", field="proof")
        return
    key = derived.keys.get(body.proof.key)
    if key is None or key.role is not KeyRole.APPROVER or key.principal != body.by:
        raise UnknownKeyError(f"key {body.proof.key[:16]} is not an approver's key of {body.by}", field="proof")
    if key.status is not KeyStatus.ACTIVE:
        raise RevokedKeyError(f"key {key.id[:16]} was {key.status} before this was decided", field="proof")


def find_signed(ledger: LedgerId, holds: Holds, derived: Derived, body: Decided) -> tuple[Signed, ...]:
    """Return what an approver's key must have signed for a decision to be proven; nothing if it names none."""
    if body.proof is None or body.proof.key not in derived.keys:
        return ()
    if isinstance(body, ToolApproved | ToolRefused) and body.call not in holds.of_roots:
        return ()
    ruling = ruling_of(ledger, holds.get(body), body, body.proof.at)
    public_key = bytes.fromhex(derived.keys[body.proof.key].public_key)
    return ((encode_ruling(ruling), ((public_key, bytes.fromhex(body.proof.signature)),)),)
