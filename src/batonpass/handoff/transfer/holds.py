"""What waits for somebody, read back from receipts, and whether what was decided about it is proven."""

from collections.abc import Iterable, Iterator

from batonpass.errors import FourEyesError, NotFoundError, UnprovenError
from batonpass.guard.gates import takes_proof
from batonpass.model.bodies import (
    Gate,
    HandoffApproved,
    HandoffBacked,
    HandoffHeld,
    HandoffInitiated,
    Kind,
    ToolApproved,
    ToolBacked,
    ToolHeld,
    ToolRefused,
)
from batonpass.model.ids import CallId, RunId, StreamId
from batonpass.model.key import Key, KeyRole, KeyStatus
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Receipt, StoredReceipt
from batonpass.model.rules import Policy
from batonpass.model.ruling import Decided, Hold, hold_of_attempt, hold_of_call, hold_of_offer, ruling_of
from batonpass.model.run import Handoff
from batonpass.signing.approver import is_proof
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import digest
from batonpass.wire.codec import decode_receipt


def find_hold(view: LedgerView, handoff: Handoff) -> Hold | None:
    """Return what a held handoff waits for; None if it is not held."""
    if handoff.state is not State.HELD:
        return None
    held = [*view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_HELD))]
    stored = held[-1] if held else view.get_receipt_at(StreamId(handoff.parent), handoff.seq)
    return hold_at(view, handoff, stored)


def hold_at(view: LedgerView, handoff: Handoff, stored: StoredReceipt) -> Hold | None:
    """Return what a handoff waited for by this receipt; None if it did not."""
    body = decode_receipt(stored.payload).body
    principal = view.get_run(handoff.parent).principal
    match body:
        case HandoffInitiated() if body.state is State.HELD:
            return hold_of_offer(body, digest(stored.payload), principal=principal)
        case HandoffHeld():
            call = _find_call(view, body)
            return hold_of_attempt(
                body,
                digest(stored.payload),
                to=handoff.to,
                offer=handoff.initiated,
                key=None if call is None else call.key,
                principal=principal,
            )
        case _:
            return None


def get_held_call(view: LedgerView, call: CallId) -> tuple[Hold, Receipt]:
    """Return what a held call waits for, or waited, and the receipt of it: of a root, or of an attempt that stays open.

    Raises `NotFoundError`; also for a call whose attempt is suspended, since its handoff waits for it.
    """
    found = next((held for held in view.find_held_calls() if held.call == call), None)
    if found is None:
        raise NotFoundError("held call", call)
    stored = view.get_receipt(found.receipt)
    receipt = decode_receipt(stored.payload)
    if not isinstance(receipt.body, ToolHeld):
        raise NotFoundError("held call", call)
    run = view.get_run(found.run)
    return hold_of_call(receipt.body, digest(stored.payload), agent=run.agent, principal=run.principal), receipt


def find_decision(view: LedgerView, call: CallId) -> tuple[Receipt, ToolApproved | ToolRefused] | None:
    """Return what somebody decided about a held call, and the receipt of it; None if nobody has."""
    for decided in view.find_decided_calls(call):
        receipt = decode_receipt(view.get_receipt(decided.receipt).payload)
        if isinstance(receipt.body, ToolApproved | ToolRefused):
            return receipt, receipt.body
    return None


def find_backers(view: LedgerView, hold: Hold) -> Iterator[Decided]:
    """Yield who is for letting this hold go on, so far, where it takes more than one."""
    if hold.approvals == 1:
        return
    if hold.handoff is None:
        for stored in view.find_receipts(ReceiptQuery(kind=Kind.TOOL_BACKED)):
            body = decode_receipt(stored.payload).body
            if isinstance(body, ToolBacked) and body.call == hold.call:
                yield body
        return
    # A handoff may be held many times, and what was said about one hold is not about the next.
    is_meant = hold.receipt == hold.offer
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(hold.handoff))):
        body = decode_receipt(stored.payload).body
        if isinstance(body, HandoffHeld):
            is_meant = hold.receipt == digest(stored.payload)
        elif is_meant and isinstance(body, HandoffBacked):
            yield body


def is_opened(view: LedgerView, hold: Hold, approvals: Iterable[Decided]) -> bool:
    """Return whether these let a hold go on: as many people as it takes, each with a proof where it takes that.

    Where it takes several, whoever it is done for is none of them, and somebody with two keys is one.
    """
    people = {body.by for body in approvals if not hold.proven or is_proven(view, hold, body)}
    return len(people - {hold.principal} if hold.approvals > 1 else people) >= hold.approvals


def require_opened(view: LedgerView, hold: Hold, last: Decided) -> None:
    """Refuse what a store says was let go on, if that was not enough. Raises `UnprovenError`, `FourEyesError`."""
    if is_opened(view, hold, (*find_backers(view, hold), last)):
        return
    if hold.proven and not is_proven(view, hold, last):
        raise UnprovenError(hold.name, last.by)
    raise FourEyesError(hold.name, last.by, approvals=hold.approvals, because="fewer approved it")


def has_approver(view: LedgerView) -> bool:
    """Return whether anybody has a key to approve with, today."""
    return any(key.role is KeyRole.APPROVER and key.status is KeyStatus.ACTIVE for key in view.find_keys())


def takes_proof_today(view: LedgerView, policy: Policy, gate: Gate) -> bool:
    """Return whether what waits at a gate takes a decision that an approver's key signed, as things are today."""
    enrolled = policy.proven is None and has_approver(view)
    return takes_proof(policy, gate, enrolled=enrolled)


def needs_proof(view: LedgerView, policy: Policy, hold: Hold) -> bool:
    """Return whether an approval has to be signed: its hold says so, or the policy and the keys of today do."""
    return hold.proven or takes_proof_today(view, policy, hold.gate)


def is_proven(view: LedgerView, hold: Hold, body: Decided) -> bool:
    """Return whether an approver's key of whoever decided signed exactly this about exactly this hold.

    Whether the key was active then is a question of order, which a store answers when it takes a decision.
    """
    if body.proof is None:
        return False
    key = next((key for key in approvers_of(view, body.by) if key.id == body.proof.key), None)
    ruling = ruling_of(view.info().id, hold, body, body.proof.at)
    return key is not None and is_proof(body.proof, ruling, key.public_key)


def require_proven(view: LedgerView, handoff: Handoff, offer: HandoffInitiated) -> None:
    """Refuse to begin what was held at its offer, if fewer let it go on than it takes, or without their keys.

    Raises `UnprovenError`, `FourEyesError`.
    """
    if not offer.proven and offer.approvals == 1:
        return
    hold = hold_of_offer(offer, handoff.initiated, principal=view.get_run(handoff.parent).principal)
    query = ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_APPROVED)
    bodies = (decode_receipt(stored.payload).body for stored in view.find_receipts(query))
    first = next((body for body in bodies if isinstance(body, HandoffApproved)), None)
    if first is None:
        raise UnprovenError(handoff.id, "anybody")
    require_opened(view, hold, first)


def approvers_of(view: LedgerView, principal: str) -> Iterator[Key]:
    """Yield the keys that are or were somebody's to approve with."""
    return (key for key in view.find_keys() if key.role is KeyRole.APPROVER and key.principal == principal)


def find_held_receipt(view: LedgerView, hold: Hold) -> Receipt | None:
    """Return the receipt of the call that a hold is about; None if it is about none."""
    return None if hold.run is None or hold.call is None else _find_receipt(view, hold.run, hold.call)


def _find_call(view: LedgerView, held: HandoffHeld) -> ToolHeld | None:
    receipt = None if held.call is None else _find_receipt(view, held.ended.run, held.call)
    return receipt.body if receipt is not None and isinstance(receipt.body, ToolHeld) else None


def _find_receipt(view: LedgerView, run: RunId, call: CallId) -> Receipt | None:
    query = ReceiptQuery(stream=StreamId(run), kind=Kind.TOOL_HELD)
    receipts = (decode_receipt(stored.payload) for stored in view.find_receipts(query))
    return next((each for each in receipts if isinstance(each.body, ToolHeld) and each.body.call == call), None)
