"""What earlier attempts at a handoff did: finished calls are kept, calls in doubt are put before whoever goes on."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from batonpass.handoff.transfer.holds import find_backers, hold_at, is_opened
from batonpass.model.bodies import (
    CheckpointSaved,
    HandoffApproved,
    HandoffHeld,
    HandoffLate,
    HandoffSettled,
    RunSettled,
    Settlement,
    ToolCached,
    ToolCompleted,
    ToolFailed,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.content import ContentRef
from batonpass.model.ids import CallId, Digest, ReceiptId, RunId, StreamId
from batonpass.model.label import Source
from batonpass.model.receipt import Receipt, StoredReceipt
from batonpass.model.run import Handoff, Run
from batonpass.model.taint import brought_by, endorsed_by
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery
from batonpass.wire.codec import decode_receipt

RESULT: Final = "result"
ARGUMENTS: Final = "arguments"
MESSAGES: Final = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call of an earlier attempt."""

    id: CallId
    run: RunId
    tool: str
    key: Digest | None
    target: Digest | None
    reads: bool
    idempotent: bool
    arguments: ContentRef | None
    requested_at: datetime
    ended_at: datetime | None = None
    completed: bool = False
    result: ContentRef | None = None
    cost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """All that a new attempt starts from: what was finished, what is in doubt, and where the last one stopped."""

    attempts: tuple[Run, ...] = ()
    finished: tuple[PastCall, ...] = ()
    in_doubt: tuple[PastCall, ...] = ()
    late: tuple[PastCall, ...] = ()  # their outcome came after their attempt was over
    children: tuple[Handoff, ...] = ()  # handed off by earlier attempts; taken up again by key
    settled: Mapping[CallId, Settlement] = field(default_factory=lambda: MappingProxyType({}))
    messages: ContentRef | None = None
    held: Mapping[CallId, ToolHeld] = field(default_factory=lambda: MappingProxyType({}))  # not made, and waiting
    approved: frozenset[Digest] = frozenset()  # the keys of those that somebody let be made
    taint: Mapping[Source, ReceiptId] = field(default_factory=lambda: MappingProxyType({}))  # what came from outside
    endorsed: frozenset[Source] = frozenset()

    @property
    def kept_for(self) -> timedelta:
        """Return how long the finished calls took, all together."""
        took = (call.ended_at - call.requested_at for call in self.finished if call.ended_at is not None)
        return sum((max(part, timedelta(0)) for part in took), timedelta(0))

    @property
    def cost(self) -> int:
        """Return what the finished calls cost, in millionths."""
        return sum(call.cost for call in self.finished)


NOTHING: Final = Resumption()


def read_resumption(view: LedgerView, handoff: Handoff) -> Resumption:
    """Return what earlier attempts at a handoff did."""
    if handoff.attempt == 0:
        return NOTHING
    # Not the one that begins just now.
    attempts = (run for run in view.find_attempts(handoff) if run.attempt <= handoff.attempt)
    return read_runs(view, attempts, StreamId(handoff.id))


def read_runs(view: LedgerView, runs: Iterable[Run], stream: StreamId) -> Resumption:
    """Return what some runs did, in their order; decisions about their calls stand in `stream`."""
    attempts = tuple(runs)
    calls: dict[CallId, PastCall] = {}
    held: dict[CallId, ToolHeld] = {}
    messages: ContentRef | None = None
    taint: dict[Source, ReceiptId] = {}
    endorsed: set[Source] = set()
    for run in attempts:
        for receipt in _receipts(view, StreamId(run.id)):
            _take(calls, receipt)
            taint.update(dict.fromkeys(brought_by(receipt), receipt.id))
            endorsed.update(source for source in (endorsed_by(receipt),) if source is not None)
            if isinstance(receipt.body, ToolCached):
                calls[receipt.body.call] = _cached(view, receipt, receipt.body)
            if isinstance(receipt.body, CheckpointSaved):
                messages = receipt.content.get(MESSAGES)
            elif isinstance(receipt.body, ToolHeld):
                held[receipt.body.call] = receipt.body
            elif isinstance(receipt.body, ToolRequested) and not receipt.body.idempotent:
                # An approval is used up by the call that it let be made, whatever became of that call.
                held = {call: body for call, body in held.items() if body.key != receipt.body.key}
    late, settled = _decisions(view, stream, calls)
    let = set(_approved(view, stream))
    return Resumption(
        attempts=attempts,
        finished=tuple(call for call in calls.values() if call.completed),
        in_doubt=tuple(
            call
            for call in calls.values()
            if call.ended_at is None and settled.get(call.id) is not Settlement.REPEAT and not call.reads
        ),
        late=late,
        children=tuple(child for run in attempts for child in view.find_handoffs(parent=run.id)),
        settled=MappingProxyType(settled),
        messages=messages,
        held=MappingProxyType(held),
        approved=frozenset(body.key for call, body in held.items() if call in let),
        taint=MappingProxyType(taint),
        endorsed=frozenset(endorsed),
    )


def _approved(view: LedgerView, stream: StreamId) -> Iterator[CallId]:
    """Yield the calls for which attempts at a handoff were suspended and that somebody let be made."""
    waiting: StoredReceipt | None = None
    for stored in view.find_receipts(ReceiptQuery(stream=stream)):
        body = decode_receipt(stored.payload).body
        if isinstance(body, HandoffHeld):
            waiting = stored
        elif isinstance(body, HandoffApproved) and waiting is not None:
            hold = hold_at(view, view.get_handoff(body.handoff), waiting)
            # A store may say that it goes on; whoever had to let it, and with which keys, has to say so too.
            if hold is not None and hold.call is not None and is_opened(view, hold, (*find_backers(view, hold), body)):
                yield hold.call


def read_settlement(store: LedgerStore, stream: StreamId, call: CallId) -> Settlement | None:
    """Return what somebody decided about a call in doubt by now; None if nobody has."""
    with store.view() as view:
        return _decisions(view, stream, {})[1].get(call)


def _decisions(
    view: LedgerView,
    stream: StreamId,
    calls: Mapping[CallId, PastCall],
) -> tuple[tuple[PastCall, ...], dict[CallId, Settlement]]:
    late: list[PastCall] = []
    settled: dict[CallId, Settlement] = {}
    for receipt in _receipts(view, stream):
        match receipt.body:
            case HandoffSettled() | RunSettled() as body:
                settled[body.call] = body.settlement
            case HandoffLate() as body if body.call in calls:
                late.append(calls[body.call])
            case _:
                continue
    return tuple(late), settled


def _receipts(view: LedgerView, stream: StreamId) -> Iterator[Receipt]:
    return (decode_receipt(stored.payload) for stored in view.find_receipts(ReceiptQuery(stream=stream)))


def _cached(view: LedgerView, receipt: Receipt, body: ToolCached) -> PastCall:
    """Return a call that was not made because an earlier one's result was fresh: the next attempt gets the same."""
    return PastCall(
        id=body.call,
        run=body.run,
        tool=body.tool,
        key=body.key,
        target=None,
        reads=True,
        idempotent=False,
        arguments=receipt.content.get(ARGUMENTS),
        requested_at=receipt.at,
        ended_at=receipt.at,
        completed=True,
        result=decode_receipt(view.get_receipt(body.result).payload).content.get(RESULT),
    )


def _take(calls: dict[CallId, PastCall], receipt: Receipt) -> None:
    match receipt.body:
        case ToolRequested() as body:
            calls[body.call] = PastCall(
                id=body.call,
                run=body.run,
                tool=body.tool,
                key=body.key,
                target=body.target,
                reads=body.reads,
                idempotent=body.idempotent,
                arguments=receipt.content.get(ARGUMENTS),
                requested_at=receipt.at,
            )
        case ToolCompleted() as body if body.call in calls:
            calls[body.call] = replace(
                calls[body.call],
                ended_at=receipt.at,
                completed=True,
                result=receipt.content.get(RESULT),
                cost=body.cost,
            )
        case ToolFailed() as body if body.call in calls:
            calls[body.call] = replace(calls[body.call], ended_at=receipt.at)
        case _:
            return
