"""The calls of earlier attempts: finished ones are kept, and those in doubt are shown to the next attempt."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.handoff.history.holds import is_opened
from batonpass.model.base.content_names import MESSAGES, RESULT
from batonpass.model.base.ids import HANDOFF, CallId, Digest, HandoffId, ReceiptId, RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import (
    CheckpointSaved,
    HandoffInitiated,
    HandoffRevised,
    Settlement,
    ToolCached,
    ToolHeld,
)
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.receipt_taint import brought_by, endorsed_by
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallRecord, Calls, Settled
from batonpass.records.hold import find_handoff_holds
from batonpass.records.stale_results import name_of
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery


class Resumption(Struct, frozen=True, kw_only=True):
    """The starting point of a new attempt: finished calls, calls in doubt, and where the last attempt stopped."""

    attempts: int = 0  # how many there were
    finished: tuple[CallRecord, ...] = ()
    outdated: tuple[
        CallRecord, ...
    ] = ()  # finished, but with inputs that the baton no longer carries: their results are not kept
    in_doubt: tuple[CallRecord, ...] = ()
    late: tuple[CallRecord, ...] = ()  # their outcome came after their attempt had ended
    children: tuple[Handoff, ...] = ()  # handed off by earlier attempts; found again by key
    settled: Mapping[CallId, Settlement] = field(default_factory=lambda: MappingProxyType({}))
    messages: ContentRef | None = None
    checkpoint: ReceiptId | None = None  # the receipt that names those messages
    held: Mapping[CallId, ToolHeld] = field(default_factory=lambda: MappingProxyType({}))  # not made, waiting
    # Held calls that somebody approved, by key: the hold, and until when the approval can be used.
    approved: Mapping[Digest, tuple[ToolHeld, datetime | None]] = field(default_factory=lambda: MappingProxyType({}))
    taint: Mapping[Source, ReceiptId] = field(default_factory=lambda: MappingProxyType({}))  # sources from outside
    endorsed: frozenset[Source] = frozenset()

    def __repr__(self) -> str:
        calls = f"calls finished: {len(self.finished)}, in doubt: {len(self.in_doubt)}, held: {len(self.held)}"
        return f"<Resumption after {self.attempts} attempts, {calls}, handoffs: {len(self.children)}>"

    @property
    def kept_for(self) -> timedelta:
        """Return how long the finished calls took together."""
        took = (call.ended_at - call.at for call in self.finished if call.ended_at is not None)
        return sum((max(part, timedelta(0)) for part in took), timedelta(0))

    @property
    def cost(self) -> int:
        """Return the cost of the finished calls, in millionths."""
        return sum(call.cost for call in self.finished)


NOTHING: Final = Resumption()

# These kinds say nothing about calls, taint, or where an attempt stopped. Every other kind is read, including kinds
# that are still to come. A handoff that is retried again and again has three of these for each attempt, and decoding
# receipts is the expensive part.
_SILENT: Final = (
    Kind.HANDOFF_ACCEPTED,
    Kind.HANDOFF_COMPLETED,
    Kind.HANDOFF_FAILED,
    Kind.HANDOFF_LAPSED,
    Kind.HANDOFF_REPLACED,
    Kind.HANDOFF_RETRIED,
)


def read_resumption(view: LedgerView, handoff: Handoff) -> Resumption:
    """Return the state that earlier attempts at a handoff left: their calls, taint and last checkpoint."""
    if handoff.attempt == 0:
        return NOTHING
    # Not run by run: most attempts of a handoff that keeps failing have left nothing, and each retry would cost more
    # than the one before.
    done = view.find_receipts(ReceiptQuery(attempts_at=handoff, but=_SILENT))
    return _read(view, map(read_receipt, done), handoff.attempt, StreamId(handoff.id))


def read_runs(view: LedgerView, runs: Iterable[Run], stream: StreamId) -> Resumption:
    """Return the same for some runs, in their order. Rulings about their calls are in `stream`."""
    attempts = tuple(runs)
    told = _told(view, attempts)
    done = (receipt for run in attempts for receipt in told.get(StreamId(run.id), ()))
    return _read(view, done, len(attempts), stream)


def _read(view: LedgerView, done: Iterable[Receipt], attempts: int, stream: StreamId) -> Resumption:
    # The next attempt does not wait for calls of these runs, so none counts as still open.
    calls = Calls()
    held: dict[CallId, ToolHeld] = {}
    messages: ContentRef | None = None
    checkpoint: ReceiptId | None = None
    taint: dict[Source, ReceiptId] = {}
    endorsed: set[Source] = set()
    parents: dict[StreamId, None] = {}
    for receipt in done:
        calls.take(receipt)
        if isinstance(receipt.body, HandoffInitiated):
            parents[receipt.stream] = None
        taint.update(dict.fromkeys(brought_by(receipt), receipt.id))
        endorsed.update(source for source in (endorsed_by(receipt),) if source is not None)
        if isinstance(receipt.body, CheckpointSaved):
            messages, checkpoint = receipt.content.get(MESSAGES), receipt.id
    revisions: list[Receipt] = []
    for receipt in _receipts(view, stream):
        calls.take(receipt)
        if isinstance(receipt.body, HandoffRevised) and receipt.body.drops:
            revisions.append(receipt)
    found = calls.all()
    finished = [_with_result(view, call) for call in found.values() if call.is_finished]
    outdated = {call.id for call in finished if _is_outdated(view, call, revisions)}
    for call in found.values():
        if isinstance(call.asked, ToolHeld):
            held[call.id] = call.asked
        elif call.is_made and not call.idempotent:
            # An approval is used up by the call that it allowed, whatever became of that call.
            held = {known: body for known, body in held.items() if body.key != call.key}
    let = dict(_approved(view, stream))
    return Resumption(
        attempts=attempts,
        finished=tuple(call for call in finished if call.id not in outdated),
        outdated=tuple(call for call in finished if call.id in outdated),
        in_doubt=tuple(
            call
            for call in found.values()
            if call.outcome is None and call.settlement is not Settlement.REPEAT and not call.reads
        ),
        late=tuple(call for call in found.values() if call.late is not None),
        children=tuple(child for run in parents for child in view.find_handoffs(parent=RunId(run))),
        settled=MappingProxyType({call.id: call.settlement for call in found.values() if call.settlement is not None}),
        messages=messages,
        checkpoint=checkpoint,
        held=MappingProxyType(held),
        approved=MappingProxyType({body.key: (body, let[call]) for call, body in held.items() if call in let}),
        taint=MappingProxyType(taint),
        endorsed=frozenset(endorsed),
    )


def _is_outdated(view: LedgerView, call: CallRecord, revisions: Sequence[Receipt]) -> bool:
    """Return whether a call was made before its handoff got other inputs, and may have used the old ones.

    Any call that reads may have read them. Another call used them if its arguments name one of them.
    """
    dropped = [item for receipt in revisions if call.at < receipt.at for item in getattr(receipt.body, "drops", ())]
    if not dropped or call.reads:
        return bool(dropped)
    arguments = None if call.arguments is None else view.get_content(call.arguments.id).body
    names = filter(None, (name_of(view, item) for item in dropped))
    # Arguments are stored as JSON, so the name is searched as JSON spells it.
    return arguments is not None and any(json.dumps(name)[1:-1].encode() in arguments for name in names)


def _approved(view: LedgerView, stream: StreamId) -> Iterator[tuple[CallId, datetime | None]]:
    """Yield the calls for which an attempt was suspended and that somebody approved, and until when that counts."""
    if not stream.startswith(HANDOFF):
        return
    for record in find_handoff_holds(view, view.get_handoff(HandoffId(stream))):
        said = [approval.body for approval in record.approvals if approval.is_for]
        # The state in the store is not enough: the recorded approvals, with their keys, must suffice too.
        if record.is_let and record.hold.call is not None and is_opened(view, record.hold, said):
            yield record.hold.call, said[-1].expires


def read_settlement(store: LedgerStore, stream: StreamId, call: CallId) -> Settlement | None:
    """Return how somebody settled a call in doubt; None if nobody has."""
    with store.view() as view:
        settled = (receipt.body for receipt in _receipts(view, stream))
        said = [body for body in settled if isinstance(body, Settled) and body.call == call]
    return said[-1].settlement if said else None


def _receipts(view: LedgerView, stream: StreamId) -> Iterator[Receipt]:
    return map(read_receipt, view.find_receipts(ReceiptQuery(stream=stream, but=_SILENT)))


def _told(view: LedgerView, runs: Sequence[Run]) -> dict[StreamId, list[Receipt]]:
    """Return the receipts of some runs in one query: most attempts of a handoff that keeps failing have none."""
    told: dict[StreamId, list[Receipt]] = {}
    streams = tuple(StreamId(run.id) for run in runs)
    for receipt in map(read_receipt, view.find_receipts(ReceiptQuery(streams=streams, but=_SILENT))):
        told.setdefault(receipt.stream, []).append(receipt)
    return told


def _with_result(view: LedgerView, call: CallRecord) -> CallRecord:
    """Return a cached call with the result that it was given, so that the next attempt gets the same result."""
    if not isinstance(call.asked, ToolCached):
        return call
    return replace(call, given=read_receipt(view.get_receipt(call.asked.result)).content.get(RESULT))
