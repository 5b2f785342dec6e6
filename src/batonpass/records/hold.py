"""Holds and approvals: what waited for somebody, and exactly who let exactly that go on.

An approval answers one hold, and a hold of a call is known by the key of that call. So a call was approved by those
who let the hold with its own key go on, and by nobody else, whatever else they approved in the same handoff.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain
from typing import Final

from msgspec import Struct, field

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
    """What one person decided about one hold."""

    receipt: Receipt
    body: Decided
    hold: Digest  # the receipt of what it answers
    reason: Text | None = None

    @property
    def by(self) -> PrincipalId:
        """Return who decided."""
        return self.body.by

    @property
    def at(self) -> datetime:
        """Return when."""
        return self.receipt.at

    @property
    def is_for(self) -> bool:
        """Return whether they were for letting it go on."""
        return is_approval(self.body)

    @property
    def is_partial(self) -> bool:
        """Return whether it takes somebody else as well."""
        return isinstance(self.body, HandoffBacked | ToolBacked)

    @property
    def is_proven(self) -> bool:
        """Return whether an approver's key signed it; whether that signature is good is for the verifier to say."""
        return self.body.proven

    @property
    def shown(self) -> Digest | None:
        """Return the digest of what was on the screen; None if nothing was shown."""
        return self.body.shown

    @property
    def looked(self) -> timedelta | None:
        """Return how long they looked: as the relay measured it, else as it was claimed; None if nobody says."""
        known = self.body.looked_ms if self.body.measured_ms is None else self.body.measured_ms
        return None if known is None else timedelta(milliseconds=known)

    @property
    def is_measured(self) -> bool:
        """Return whether the relay measured how long they looked."""
        return self.body.measured_ms is not None


class HoldRecord(Struct, frozen=True, kw_only=True):
    """Something that waited, and all that was decided about it."""

    hold: Hold
    receipt: Receipt  # which says that it waits
    approvals: tuple[Approval, ...] = ()

    @property
    def key(self) -> Digest | None:
        """Return the key of the call that waited; None of a handoff that waited at its offer."""
        return self.hold.key

    @property
    def is_open(self) -> bool:
        """Return whether it still waits."""
        return not self.approvals or self.approvals[-1].is_partial

    @property
    def is_let(self) -> bool:
        """Return whether it was let go on."""
        return bool(self.approvals) and self.approvals[-1].is_for and not self.is_open


# They end no hold and answer none, and a handoff that is tried again and again has one for each attempt.
_OF_ATTEMPTS: Final = (Kind.HANDOFF_RETRIED, Kind.HANDOFF_REPLACED, Kind.HANDOFF_LAPSED)


class Leave(StrEnum):
    """Whether somebody had to approve a call, and did."""

    GIVEN = "given"
    NOT_NEEDED = "not needed"
    MISSING = "missing"  # a rule asks for it, and nobody enforced that
    WAITING = "waiting"
    REFUSED = "refused"


class CallLeave(Struct, frozen=True, kw_only=True):
    """By whose leave a call was made, or was not: of this call and of no other."""

    leave: Leave
    hold: HoldRecord | None = None
    rules: tuple[str, ...] = ()  # which ask for an approval that nobody gave

    @property
    def approvals(self) -> tuple[Approval, ...]:
        """Return what people decided."""
        return () if self.hold is None else self.hold.approvals


class _Waiting(Struct):
    """A hold on its way through a stream: what is decided from here on is about it."""

    hold: Hold
    receipt: Receipt
    approvals: list[Approval] = field(default_factory=list)

    def done(self) -> HoldRecord:
        return HoldRecord(hold=self.hold, receipt=self.receipt, approvals=tuple(self.approvals))


def find_handoff_holds(view: LedgerView, handoff: Handoff) -> Iterator[HoldRecord]:
    """Yield each time that a handoff waited, at its offer or before a call of an attempt, the first first."""
    offer = view.get_receipt_at(StreamId(handoff.parent), handoff.seq)
    waiting: _Waiting | None = None
    for stored in chain([offer], view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), but=_OF_ATTEMPTS))):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, HandoffInitiated | HandoffHeld):
            if waiting is not None:
                yield waiting.done()
            found = hold_at(view, handoff, stored)
            waiting = None if found is None else _Waiting(found, receipt)
        elif waiting is not None and isinstance(receipt.body, HandoffBacked | HandoffApproved | HandoffDenied):
            waiting.approvals.append(_approval(view, waiting.hold, receipt, receipt.body))
    if waiting is not None:
        yield waiting.done()


def find_call_hold(view: LedgerView, call: CallId) -> HoldRecord | None:
    """Return how a call of a run that went on waited; None if it did not, or its handoff waited for it."""
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
    """Return by whose leave a call was made: by those who let the hold with its very key go on."""
    if (hold := _find_hold(view, call)) is not None:
        if hold.is_open:
            return CallLeave(leave=Leave.WAITING, hold=hold)
        return CallLeave(leave=Leave.GIVEN if hold.is_let else Leave.REFUSED, hold=hold)
    asking = tuple(rule for what, rule in call.would if what == "would_hold")
    return CallLeave(leave=Leave.MISSING if asking else Leave.NOT_NEEDED, rules=asking)


def find_hold(view: LedgerView, handoff: Handoff) -> Hold | None:
    """Return what a held handoff waits for; None if it is not held."""
    if handoff.state is not State.HELD:
        return None
    held = [*view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_HELD))]
    stored = held[-1] if held else view.get_receipt_at(StreamId(handoff.parent), handoff.seq)
    return hold_at(view, handoff, stored)


def hold_at(view: LedgerView, handoff: Handoff, stored: StoredReceipt) -> Hold | None:
    """Return what a handoff waited for by this receipt; None if it did not."""
    body = read_receipt(stored).body
    principal = view.get_run(handoff.parent).principal
    match body:
        case HandoffInitiated() if body.state is State.HELD:
            return hold_of_offer(body, digest(stored.payload), principal=principal)
        case HandoffHeld():
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
    """Return what a held call waits for, or waited, and the receipt of it: of a root, or of an attempt that stays open.

    Raises `NotFoundError`; also for a call whose attempt is suspended, since its handoff waits for it.
    """
    found = next((held for held in view.find_held_calls() if held.call == call), None)
    if found is None:
        raise NotFoundError("held call", call)
    stored = view.get_receipt(found.receipt)
    receipt = read_receipt(stored)
    if not isinstance(receipt.body, ToolHeld):
        raise NotFoundError("held call", call)
    run = view.get_run(found.run)
    return hold_of_call(receipt.body, digest(stored.payload), agent=run.agent, principal=run.principal), receipt


def find_decision(view: LedgerView, call: CallId) -> tuple[Receipt, ToolApproved | ToolRefused] | None:
    """Return what somebody decided about a held call, and the receipt of it; None if nobody has."""
    for decided in view.find_decided_calls(call):
        receipt = read_receipt(view.get_receipt(decided.receipt))
        if isinstance(receipt.body, ToolApproved | ToolRefused):
            return receipt, receipt.body
    return None


def find_backed(view: LedgerView, call: CallId) -> Iterator[tuple[Receipt, ToolBacked]]:
    """Yield who is for letting a held call be made, where it takes more than one."""
    for stored in view.find_receipts(ReceiptQuery(kind=Kind.TOOL_BACKED)):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, ToolBacked) and receipt.body.call == call:
            yield receipt, receipt.body


def find_backers(view: LedgerView, hold: Hold) -> Iterator[Decided]:
    """Yield who is for letting this hold go on, so far, where it takes more than one."""
    if hold.approvals == 1:
        return
    if hold.handoff is None:
        yield from () if hold.call is None else (body for _, body in find_backed(view, hold.call))
        return
    for record in find_handoff_holds(view, view.get_handoff(hold.handoff)):
        # A handoff may be held many times, and what was said about one hold is not about the next.
        if record.hold.receipt == hold.receipt:
            yield from (approval.body for approval in record.approvals if approval.is_partial)


def find_held_receipt(view: LedgerView, hold: Hold) -> Receipt | None:
    """Return the receipt of the call that a hold is about; None if it is about none."""
    return None if hold.run is None or hold.call is None else _held_receipt(view, hold.run, hold.call)


def _held_receipt(view: LedgerView, run: RunId, call: CallId) -> Receipt | None:
    query = ReceiptQuery(stream=StreamId(run), kind=Kind.TOOL_HELD)
    receipts = (read_receipt(stored) for stored in view.find_receipts(query))
    return next((each for each in receipts if isinstance(each.body, ToolHeld) and each.body.call == call), None)


def _find_hold(view: LedgerView, call: CallRecord) -> HoldRecord | None:
    """Return the last hold of this very call before it was made; of one that was only held, its own."""
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
        return None if _is_used_up(view, run.id, call, since=held.seq) else find_call_hold(view, held.call)
    return None if run.handoff is None else _last_hold(view, view.get_handoff(run.handoff), run, call)


def _last_hold(view: LedgerView, handoff: Handoff, run: Run, call: CallRecord) -> HoldRecord | None:
    """Return the last hold with the key of a call in an earlier attempt, unless another call used its approval up."""
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
    """Return whether an approval was used before this call: it lets one call be made, unless twice has one effect."""
    if call.idempotent:
        return False
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run), kind=Kind.TOOL_REQUESTED)):
        body = read_receipt(stored).body
        is_before = run != call.run or since < stored.seq < call.receipt.seq
        if is_before and isinstance(body, ToolRequested) and body.key == call.key:
            return True
    return False


class _Held(Struct, frozen=True):
    seq: int
    call: CallId


def _last_held(view: LedgerView, call: CallRecord) -> _Held | None:
    """Return the last hold with the key of a call, in its own run and before it."""
    found: _Held | None = None
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(call.run), kind=Kind.TOOL_HELD)):
        if stored.seq > call.receipt.seq:
            break
        body = read_receipt(stored).body
        found = _Held(stored.seq, body.call) if isinstance(body, ToolHeld) and body.key == call.key else found
    return found


def _attempt_of(record: HoldRecord) -> int:
    body = record.receipt.body
    return body.attempt if isinstance(body, HandoffHeld) else 0


def _approval(view: LedgerView, hold: Hold, receipt: Receipt, body: Decided) -> Approval:
    words = None if REASON not in receipt.content else read_contents(view, {REASON: receipt.content[REASON]})[REASON]
    return Approval(receipt=receipt, body=body, hold=hold.receipt, reason=words)
