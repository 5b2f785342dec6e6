"""What waits for somebody, read back from receipts, and whether what was decided about it is proven."""

from collections.abc import Iterator

from batonpass.errors import NotFoundError, UnprovenError
from batonpass.model.bodies import (
    HandoffApproved,
    HandoffHeld,
    HandoffInitiated,
    Kind,
    ToolApproved,
    ToolHeld,
    ToolRefused,
)
from batonpass.model.ids import CallId, StreamId
from batonpass.model.key import Key, KeyRole
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Receipt, StoredReceipt
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
    match body:
        case HandoffInitiated() if body.state is State.HELD:
            return hold_of_offer(body, digest(stored.payload))
        case HandoffHeld():
            call = _find_call(view, body)
            key = None if call is None else call.key
            return hold_of_attempt(body, digest(stored.payload), to=handoff.to, offer=handoff.initiated, key=key)
        case _:
            return None


def get_held_call(view: LedgerView, call: CallId) -> tuple[Hold, Receipt]:
    """Return what a root's held call waits for, or waited, and the receipt of it. Raises `NotFoundError`."""
    found = next((held for held in view.find_held_calls() if held.call == call), None)
    if found is None:
        raise NotFoundError("held call", call)
    stored = view.get_receipt(found.receipt)
    receipt = decode_receipt(stored.payload)
    if not isinstance(receipt.body, ToolHeld):
        raise NotFoundError("held call", call)
    return hold_of_call(receipt.body, digest(stored.payload), agent=view.get_run(found.run).agent), receipt


def find_decision(view: LedgerView, call: CallId) -> tuple[Receipt, ToolApproved | ToolRefused] | None:
    """Return what somebody decided about a root's held call, and the receipt of it; None if nobody has."""
    for decided in view.find_decided_calls(call):
        receipt = decode_receipt(view.get_receipt(decided.receipt).payload)
        if isinstance(receipt.body, ToolApproved | ToolRefused):
            return receipt, receipt.body
    return None


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
    """Refuse to begin what was held at its offer and takes a proof, if nobody's key signed that it goes on.

    Raises `UnprovenError`.
    """
    if not offer.proven:
        return
    hold = hold_of_offer(offer, handoff.initiated)
    query = ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_APPROVED)
    bodies = (decode_receipt(stored.payload).body for stored in view.find_receipts(query))
    first = next((body for body in bodies if isinstance(body, HandoffApproved)), None)
    if first is None or not is_proven(view, hold, first):
        raise UnprovenError(handoff.id, "anybody" if first is None else first.by)


def approvers_of(view: LedgerView, principal: str) -> Iterator[Key]:
    """Yield the keys that are or were somebody's to approve with."""
    return (key for key in view.find_keys() if key.role is KeyRole.APPROVER and key.principal == principal)


def _find_call(view: LedgerView, held: HandoffHeld) -> ToolHeld | None:
    query = ReceiptQuery(stream=StreamId(held.ended.run), kind=Kind.TOOL_HELD)
    bodies = (decode_receipt(stored.payload).body for stored in view.find_receipts(query))
    return next((body for body in bodies if isinstance(body, ToolHeld) and body.call == held.call), None)
