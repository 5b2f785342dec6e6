"""Holds and approvals: the held call or handoff, and who approved exactly that.

An approval answers one hold, and the hold of a call has the key of that call. So a call was approved only by those who
approved the hold with its own key, whatever else they approved in the same handoff.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import NotFoundError
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import CallId, Digest, PrincipalId, RunId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import (
    HandoffApproved,
    HandoffBacked,
    HandoffDenied,
    HandoffHeld,
    HandoffInitiated,
    Kind,
    ToolApproved,
    ToolBacked,
    ToolHeld,
    ToolRefused,
    ToolRequested,
)
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.ruling import Decided, Hold, hold_of_attempt, hold_of_call, hold_of_offer, is_approval
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallRecord
from batonpass.records.text import Text, read_contents, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import digest


class Approval(Struct, frozen=True, kw_only=True):
    """One person's ruling on one hold."""

    receipt: Receipt
    body: Decided
    hold: Digest  # digest of the receipt that it answers
    reason: Text | None = None

    @property
    def by(self) -> PrincipalId:
        """Return who ruled."""
        return self.body.by

    @property
    def at(self) -> datetime:
        """Return when."""
        return self.receipt.at

    @property
    def is_for(self) -> bool:
        """Return whether they approved."""
        return is_approval(self.body)

    @property
    def is_partial(self) -> bool:
        """Return whether further approvals are needed."""
        return isinstance(self.body, HandoffBacked | ToolBacked)

    @property
    def is_proven(self) -> bool:
        """Return whether an approver's key signed it. The verifier checks the signature."""
        return self.body.proven

    @property
    def shown(self) -> Digest | None:
        """Return the digest of the sheet that they were shown; None if there was none."""
        return self.body.shown

    @property
    def looked(self) -> timedelta | None:
        """Return how long they looked: as the relay measured it, else as claimed; None if unknown."""
        known = self.body.looked_ms if self.body.measured_ms is None else self.body.measured_ms
        return None if known is None else timedelta(milliseconds=known)

    @property
    def is_measured(self) -> bool:
        """Return whether the relay measured how long they looked."""
        return self.body.measured_ms is not None


class HoldRecord(Struct, frozen=True, kw_only=True):
    """A hold, and all rulings on it."""

    hold: Hold
    receipt: Receipt  # of the hold
    approvals: tuple[Approval, ...] = ()

    @property
    def key(self) -> Digest | None:
        """Return the key of the held call; None for a handoff that was held at its offer."""
        return self.hold.key

    @property
    def is_open(self) -> bool:
        """Return whether it is still waiting."""
        return not self.approvals or self.approvals[-1].is_partial

    @property
    def is_let(self) -> bool:
        """Return whether it was approved."""
        return bool(self.approvals) and self.approvals[-1].is_for and not self.is_open


# They neither end nor answer a hold, and a handoff that is often retried has many of them.
_OF_ATTEMPTS: Final = (Kind.HANDOFF_RETRIED, Kind.HANDOFF_REPLACED, Kind.HANDOFF_LAPSED)


class Leave(StrEnum):
    """Whether a call needed an approval, and got it."""

    GIVEN = "given"
    NOT_NEEDED = "not needed"
    MISSING = "missing"  # a rule asks for one, but was not enforced
    WAITING = "waiting"
    REFUSED = "refused"


class CallLeave(Struct, frozen=True, kw_only=True):
    """Whether this call was approved, and by whom. Approvals of other calls do not count."""

    leave: Leave
    hold: HoldRecord | None = None
    rules: tuple[str, ...] = ()  # the rules that ask for an approval which nobody gave

    @property
    def approvals(self) -> tuple[Approval, ...]:
        """Return the rulings."""
        return () if self.hold is None else self.hold.approvals


def find_handoff_holds(view: LedgerView, handoff: Handoff) -> Iterator[HoldRecord]:
    """Yield each hold of a handoff in order, at its offer or before a call."""
    offer = view.get_receipt_at(StreamId(handoff.parent), handoff.seq)
    waiting: HoldRecord | None = None  # rulings that follow are about it
    for stored in chain([offer], view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), but=_OF_ATTEMPTS))):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, HandoffInitiated | HandoffHeld):
            if waiting is not None:
                yield waiting
            found = hold_at(view, handoff, stored)
            waiting = None if found is None else HoldRecord(hold=found, receipt=receipt)
        elif waiting is not None and isinstance(receipt.body, HandoffBacked | HandoffApproved | HandoffDenied):
            approval = _approval(view, waiting.hold, receipt, receipt.body)
            waiting = replace(waiting, approvals=(*waiting.approvals, approval))
    if waiting is not None:
        yield waiting


def find_call_hold(view: LedgerView, call: CallId) -> HoldRecord | None:
    """Return the hold of a call whose run stayed open; None if it was not held, or its handoff was held instead."""
    try:
        hold, receipt = get_held_call(view, call)
    except NotFoundError:
        return None
    backed = find_backed(view, call) if hold.approvals > 1 else ()
    last = find_decision(view, call)
    decided = [*backed, *(() if last is None else (last,))]
    approvals = tuple(_approval(view, hold, decided_by, body) for decided_by, body in decided)
    return HoldRecord(hold=hold, receipt=receipt, approvals=approvals)


def find_leave(view: LedgerView, call: CallRecord) -> CallLeave:
    """Return the approval of a call: the rulings on the hold with the same key."""
    if (hold := _find_hold(view, call)) is not None:
        if hold.is_open:
            return CallLeave(leave=Leave.WAITING, hold=hold)
        return CallLeave(leave=Leave.GIVEN if hold.is_let else Leave.REFUSED, hold=hold)
    asking = tuple(rule for what, rule in call.would if what == "would_hold")
    return CallLeave(leave=Leave.MISSING if asking else Leave.NOT_NEEDED, rules=asking)


def find_hold(view: LedgerView, handoff: Handoff) -> Hold | None:
    """Return the hold of a handoff; None if it is not held."""
    if handoff.state is not State.HELD:
        return None
    held = [*view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_HELD))]
    stored = held[-1] if held else view.get_receipt_at(StreamId(handoff.parent), handoff.seq)
    return hold_at(view, handoff, stored)


def hold_at(view: LedgerView, handoff: Handoff, stored: StoredReceipt) -> Hold | None:
    """Return the hold that a receipt of a handoff starts; None if it starts none."""
    body = read_receipt(stored).body
    principal = view.get_run(handoff.parent).principal
    match body:
        case HandoffInitiated() if body.state is State.HELD:
            return hold_of_offer(body, digest(stored.payload), principal=principal)
        case HandoffHeld() if body.awaits is None:
            call = None if body.call is None else _held_receipt(view, body.ended.run, body.call)
            return hold_of_attempt(
                body,
                digest(stored.payload),
                to=handoff.to,
                offer=handoff.initiated,
                key=call.body.key if call is not None and isinstance(call.body, ToolHeld) else None,
                principal=principal,
            )
        case _:
            return None


def get_held_call(view: LedgerView, call: CallId) -> tuple[Hold, Receipt]:
    """Return the hold of a held call, and its receipt, where the run stays open while the call waits.

    Raises `NotFoundError`, also if the attempt was suspended: then the handoff is held instead.
    """
    found = next(view.find_held_calls(call), None)
    if found is None:
        raise NotFoundError("held call", call)
    stored = view.get_receipt(found.receipt)
    receipt = read_receipt(stored)
    if not isinstance(receipt.body, ToolHeld):
        raise NotFoundError("held call", call)
    run = view.get_run(found.run)
    return hold_of_call(receipt.body, digest(stored.payload), agent=run.agent, principal=run.principal), receipt


def find_decision(view: LedgerView, call: CallId) -> tuple[Receipt, ToolApproved | ToolRefused] | None:
    """Return the ruling on a held call, and its receipt; None if there is none yet."""
    for decided in view.find_decided_calls(call):
        receipt = read_receipt(view.get_receipt(decided.receipt))
        if isinstance(receipt.body, ToolApproved | ToolRefused):
            return receipt, receipt.body
    return None


def find_undecided(view: LedgerView, receipt: Receipt) -> ToolHeld | None:
    """Return the held call of a run that goes on, if this is its receipt and nobody ruled on it yet; else None."""
    held = receipt.body
    if not isinstance(held, ToolHeld) or not (held.stays or receipt.root == held.run):
        return None
    return held if find_decision(view, held.call) is None else None


def find_backed(view: LedgerView, call: CallId) -> Iterator[tuple[Receipt, ToolBacked]]:
    """Yield the partial approvals of a held call that needs several."""
    for stored in view.find_receipts(ReceiptQuery(kind=Kind.TOOL_BACKED)):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, ToolBacked) and receipt.body.call == call:
            yield receipt, receipt.body


def find_backers(view: LedgerView, hold: Hold) -> Iterator[Decided]:
    """Yield the partial approvals of a hold that needs several."""
    if hold.approvals == 1:
        return
    if hold.handoff is None:
        yield from () if hold.call is None else (body for _, body in find_backed(view, hold.call))
        return
    for record in find_handoff_holds(view, view.get_handoff(hold.handoff)):
        # A handoff may be held many times; a ruling on one hold says nothing about the next.
        if record.hold.receipt == hold.receipt:
            yield from (approval.body for approval in record.approvals if approval.is_partial)


def find_held_receipt(view: LedgerView, hold: Hold) -> Receipt | None:
    """Return the receipt of the held call; None if the hold is not about a call."""
    return None if hold.run is None or hold.call is None else _held_receipt(view, hold.run, hold.call)


def _held_receipt(view: LedgerView, run: RunId, call: CallId) -> Receipt | None:
    query = ReceiptQuery(stream=StreamId(run), kind=Kind.TOOL_HELD)
    receipts = (read_receipt(stored) for stored in view.find_receipts(query))
    return next((each for each in receipts if isinstance(each.body, ToolHeld) and each.body.call == call), None)


def _find_hold(view: LedgerView, call: CallRecord) -> HoldRecord | None:
    """Return the last hold of this call before it was made; its own hold if it was not made."""
    run = view.get_run(call.run)
    if isinstance(call.asked, ToolHeld):
        own = find_call_hold(view, call.id)
        if own is not None or run.handoff is None:
            return own
        holds = find_handoff_holds(view, view.get_handoff(run.handoff))
        return next((record for record in holds if record.hold.call == call.id), None)
    if call.key is None:
        return None
    if (held := _last_held(view, call)) is not None:
        seq, last = held
        return None if _is_used_up(view, run.id, call, since=seq) else find_call_hold(view, last)
    return None if run.handoff is None else _last_hold(view, view.get_handoff(run.handoff), run, call)


def _last_hold(view: LedgerView, handoff: Handoff, run: Run, call: CallRecord) -> HoldRecord | None:
    """Return the last hold with the same key in an earlier attempt, unless another call used its approval."""
    before = [
        record
        for record in find_handoff_holds(view, handoff)
        if record.hold.key == call.key and _attempt_of(record) < run.attempt
    ]
    if not before:
        return None
    between = range(_attempt_of(before[-1]) + 1, run.attempt)
    others = (one for one in view.find_attempts(handoff) if one.attempt in between) if between else ()
    return None if any(_is_used_up(view, one.id, call) for one in others) else before[-1]


def _is_used_up(view: LedgerView, run: RunId, call: CallRecord, *, since: int = 0) -> bool:
    """Return whether the approval was used already: it covers a single call, unless the call is idempotent."""
    if call.idempotent:
        return False
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run), kind=Kind.TOOL_REQUESTED)):
        body = read_receipt(stored).body
        is_before = run != call.run or since < stored.seq < call.receipt.seq
        if is_before and isinstance(body, ToolRequested) and body.key == call.key:
            return True
    return False


def _last_held(view: LedgerView, call: CallRecord) -> tuple[int, CallId] | None:
    """Return the last hold with the same key, earlier in the same run."""
    found: tuple[int, CallId] | None = None
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(call.run), kind=Kind.TOOL_HELD)):
        if stored.seq > call.receipt.seq:
            break
        body = read_receipt(stored).body
        found = (stored.seq, body.call) if isinstance(body, ToolHeld) and body.key == call.key else found
    return found


def _attempt_of(record: HoldRecord) -> int:
    body = record.receipt.body
    return body.attempt if isinstance(body, HandoffHeld) else 0


def _approval(view: LedgerView, hold: Hold, receipt: Receipt, body: Decided) -> Approval:
    words = None if REASON not in receipt.content else read_contents(view, {REASON: receipt.content[REASON]})[REASON]
    return Approval(receipt=receipt, body=body, hold=hold.receipt, reason=words)
