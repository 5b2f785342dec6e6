"""The spans that end with a receipt.

A run is `invoke_agent`, a call `execute_tool`, and a handoff `execute_tool transfer_to_…` with its attempts below it.
Each is made when the receipt that ends it comes by, from that receipt and earlier ones alone. So two programs that read
the same ledger send the same spans, and one that begins again at an earlier position repeats itself exactly.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from batonpass.model.base.content_names import ARGUMENTS, INTENT, MESSAGE, REPORT, RESULT, TASK
from batonpass.model.base.ids import HANDOFF, CallId, HandoffId, RunId, StreamId
from batonpass.model.base.kinds import Outcome
from batonpass.model.base.trace import SpanId, TraceParent, span_id, span_of, trace_of
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCancelled,
    HandoffCompleted,
    HandoffDeclined,
    HandoffDenied,
    HandoffExpired,
    HandoffFailed,
    HandoffHeld,
    HandoffInitiated,
    HandoffLapsed,
    HandoffParked,
    HandoffReplaced,
    RunClosed,
    RunStarted,
    ToolCached,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
    UnknownBody,
)
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.telemetry.conventions import (
    AGENT,
    AGENT_ID,
    AGENT_NAME,
    CALLER_NAME,
    CALLER_TYPE,
    CONVERSATION,
    ERROR_TYPE,
    EXECUTE_TOOL,
    FUNCTION,
    IN_DOUBT,
    INVOKE_AGENT,
    NODE,
    NODE_PARENT,
    OPERATION,
    OURS,
    RETURN_TO_CALLER,
    SESSION,
    TOOL_ARGUMENTS,
    TOOL_CALL_ID,
    TOOL_NAME,
    TOOL_RESULT,
    TOOL_TYPE,
    TRANSFER_MODE,
    TRANSFER_TARGET,
    TRANSFER_TARGET_TYPE,
    TRANSFER_TO,
)
from batonpass.telemetry.span_record import Fact, SpanEvent, SpanLink, SpanPlace, SpanRecord
from batonpass.telemetry.trace_place import TracePlaces, caller_of
from batonpass.telemetry.transfer_record import TransferRecord, is_acceptance, read_transfers, transfer_at_acceptance
from batonpass.telemetry.work_memory import MOST_EVENTS, SpanWork, WorkMemory

_LONGEST_WORDS: Final = 8192
# No other content is ever sent: among them are secrets that key the digests of a tree.
_WORDS: Final[Mapping[str, str]] = {
    INTENT: f"{OURS}intent",
    TASK: f"{OURS}task",
    REPORT: f"{OURS}report",
    MESSAGE: f"{OURS}message",
    ARGUMENTS: TOOL_ARGUMENTS,
    RESULT: TOOL_RESULT,
}
_CALLS: Final = "tool."
_SUSPENDED: Final = "suspended"
_ASKED: Final = (ToolRequested, ToolDenied, ToolHeld, ToolCached)


class SpanSource:
    """Makes the spans that end with receipts, from one view of a ledger.

    A memory may outlive the view, if the next source goes on where this one stopped.
    """

    def __init__(self, view: LedgerView, *, words: bool = False, memory: WorkMemory | None = None) -> None:
        self._view = view
        self._words = words
        self._memory = WorkMemory() if memory is None else memory
        self._places = TracePlaces(view, self._memory.begun)
        self._transfers = lru_cache(64)(self._read_transfers)

    def spans(self, stored: StoredReceipt) -> Iterator[SpanRecord]:
        """Yield the spans that end with a receipt. Receipts come by position."""
        return self.spans_at(read_receipt(stored), stored.position or 0)

    def spans_at(self, receipt: Receipt, position: int) -> Iterator[SpanRecord]:
        """Yield the spans that end with a receipt that is read already."""
        self._memory.note_transfer(receipt)
        if receipt.kind.startswith(_CALLS):
            yield from self._of_call(receipt)
        elif not isinstance(receipt.body, UnknownBody | HandoffInitiated | HandoffAccepted):
            yield from self._of_work(receipt, position)
        self._memory.note_work(receipt)

    def _of_call(self, receipt: Receipt) -> Iterator[SpanRecord]:
        body = receipt.body
        match body:
            case ToolCompleted() | ToolFailed():
                if (asked := self._request(body.call, receipt)) is not None:
                    yield self._call(asked, receipt)
            case ToolDenied() | ToolHeld() | ToolCached():
                yield self._call(receipt, receipt)

    def _of_work(self, receipt: Receipt, at: int) -> Iterator[SpanRecord]:
        body = receipt.body
        match body:
            case HandoffFailed() if body.is_refusal:
                yield self._refused(receipt, body)
                return
            case RunClosed() | HandoffCompleted() | HandoffFailed():
                yield from self._run(body.run, receipt, receipt.seq)
            case HandoffLapsed() | HandoffHeld() | HandoffExpired() | HandoffCancelled():
                if body.ended is not None:
                    yield from self._run(body.ended.run, receipt, body.ended.seq)
        handoff = body.handoff if isinstance(body, HandoffCompleted | HandoffFailed) else receipt.stream
        if handoff.startswith(f"{HANDOFF}_"):
            yield from self._ended(HandoffId(handoff), receipt, at)

    def _request(self, call: CallId, ended: Receipt) -> Receipt | None:
        known = self._memory.requests.pop(call, None)
        seq = ended.seq
        # Nothing is remembered across a restart. A request is usually the receipt just before its outcome.
        while known is None and seq > 1:
            seq -= 1
            found = read_receipt(self._view.get_receipt_at(ended.stream, seq))
            if isinstance(found.body, ToolRequested) and found.body.call == call:
                known = found
        return known

    def _call(self, asked: Receipt, ended: Receipt, *, error: str | None = None) -> SpanRecord:
        body, outcome = asked.body, ended.body
        assert isinstance(body, _ASKED)  # noqa: S101 - only such a receipt gets here
        run = self._places.place(body.run)
        error = error or _call_error(outcome)
        facts: dict[str, Fact] = {
            OPERATION: EXECUTE_TOOL,
            TOOL_NAME: body.tool,
            TOOL_TYPE: FUNCTION,
            TOOL_CALL_ID: body.call,
            **self._agent_facts(body.run),
            **_tree_facts(asked),
            NODE: body.call,
            NODE_PARENT: body.run,
            f"{OURS}run": body.run,
            f"{OURS}call": body.call,
            f"{OURS}outcome": "in-doubt" if error == IN_DOUBT else outcome.kind.partition(".")[2],
            **_said(body, "reads", "reversible", "idempotent", "tiers", "flags", "rule", "gate"),
            **_said(outcome, "exit_code", "cost", "took_us"),
            **self._receipt_facts(asked, ended),
        }
        if changed := len(getattr(outcome, "changes", ())):
            facts[f"{OURS}changed_files"] = changed
        return SpanRecord(
            place=SpanPlace(run.trace, span_id(asked.id)),
            parent=run.span,
            name=f"{EXECUTE_TOOL} {body.tool}",
            began=asked.at,
            ended=max(asked.at, ended.at),
            facts=_with_error(facts, error),
            error=error,
        )

    def _run(self, run: RunId, ended: Receipt, last: int) -> Iterator[SpanRecord]:
        """Yield the span of a run that is over, after those of its calls that never had an outcome."""
        begun, place = self._places.first(run), self._places.place(run)
        worked = self._work(run, ended, last)
        for asked in worked.open.values():
            yield self._call(asked, ended, error=IN_DOUBT)
        body = begun.body
        assert isinstance(body, RunStarted | HandoffAccepted)  # noqa: S101 - a stream of a run begins with one
        links: list[SpanLink] = []
        parent, above = (
            self._attempt_parent(begun, body, links)
            if isinstance(body, HandoffAccepted)
            else self._root_parent(body, links)
        )
        error = _run_error(ended.body)
        facts: dict[str, Fact] = {
            OPERATION: INVOKE_AGENT,
            AGENT_ID: body.agent,
            AGENT_NAME: body.agent,
            **_tree_facts(begun),
            **above,
            NODE: run,
            f"{OURS}run": run,
            f"{OURS}principal": body.principal,
            f"{OURS}outcome": _run_outcome(ended.body),
            f"{OURS}calls": worked.calls,
            f"{OURS}tokens": worked.tokens,
            f"{OURS}cost": worked.cost,
            **_said(ended.body, "flags"),
            **self._receipt_facts(begun, ended),
        }
        yield SpanRecord(
            place=place,
            parent=parent,
            name=f"{INVOKE_AGENT} {body.agent}",
            began=begun.at,
            ended=max(begun.at, ended.at),
            facts=_with_error(facts, error),
            events=tuple(map(_event, worked.said)),
            dropped_events=worked.unsaid,
            links=tuple(links),
            error=error,
        )
        self._memory.forget_work(run)

    def _root_parent(self, body: RunStarted, links: list[SpanLink]) -> tuple[SpanId | None, dict[str, Fact]]:
        if body.continues is not None:
            links.append(SpanLink(place=self._places.place(body.continues), facts={f"{OURS}link": "continues"}))
        caller = caller_of(self._places.first(body.run))
        return (None if caller is None else span_of(caller)), {}

    def _attempt_parent(
        self, begun: Receipt, body: HandoffAccepted, links: list[SpanLink]
    ) -> tuple[SpanId, dict[str, Fact]]:
        transfer = self._memory.entered.get(body.run)
        if transfer is None:
            transfer = transfer_at_acceptance(self._transfers(body.handoff, self._position(begun)), begun)
        if body.attempt > 1:
            for earlier in self._view.find_attempts(self._view.get_handoff(body.handoff)):
                if earlier.attempt == body.attempt - 1:
                    place = self._places.place(earlier.id)
                    links.append(SpanLink(place=place, facts={f"{OURS}link": "previous-attempt"}))
        return span_id(transfer.began.id), {
            NODE_PARENT: body.parent,
            CALLER_TYPE: AGENT,
            CALLER_NAME: self._agent_of(body.parent),
            f"{OURS}handoff": body.handoff,
            f"{OURS}attempt": body.attempt,
        }

    def _work(self, run: RunId, ended: Receipt, last: int) -> SpanWork:
        """Return the work of a run before it ended."""
        if (seen := self._memory.find_work(run, ended, last)) is not None:
            return seen
        work = SpanWork()
        for stored in self._view.find_receipts(ReceiptQuery(stream=StreamId(run))):
            if stored.seq > last:
                break
            receipt = read_receipt(stored)
            if receipt.id != ended.id:
                work.add(receipt)
        return work

    def _transfers_of(self, handoff: HandoffId, until: int) -> list[TransferRecord]:
        return self._memory.transfers.get(handoff) or self._transfers(handoff, until)

    def _read_transfers(self, handoff: HandoffId, until: int) -> list[TransferRecord]:
        return read_transfers(self._view, handoff, until=until)

    def _ended(self, handoff: HandoffId, receipt: Receipt, at: int) -> Iterator[SpanRecord]:
        """Yield the span of a transfer that ends here; of one that has ended before, the news about it."""
        last = self._transfers_of(handoff, at)[-1]
        if last.ended is not None and last.ended.id == receipt.id:
            yield self._transfer(last, receipt)
        elif any(one.id == receipt.id for one in last.after):
            yield self._remark(last, receipt)

    def _transfer(self, transfer: TransferRecord, ended: Receipt) -> SpanRecord:
        offer, earlier = transfer.began, transfer.before
        to = None
        while earlier is not None:
            if to is None and isinstance(offer.body, HandoffReplaced):
                to = offer.body.to
            offer, earlier = earlier.began, earlier.before
        body = offer.body
        assert isinstance(body, HandoffInitiated)  # noqa: S101 - the first transfer begins with the offer
        if isinstance(transfer.began.body, HandoffReplaced):
            to = transfer.began.body.to
        to = to or body.to
        run = self._places.place(body.run)
        links: list[SpanLink] = []
        parent = run.span
        if transfer.before is not None:
            place = SpanPlace(run.trace, span_id(transfer.before.began.id))
            links.append(SpanLink(place=place, facts={f"{OURS}link": "tried-before"}))
        elif body.trace is not None:
            parent = self._called_from(body.trace, run, links)
        error = _transfer_error(ended.body)
        events = [_event(one) for one in transfer.events if not is_acceptance(one)]
        facts: dict[str, Fact] = {
            OPERATION: EXECUTE_TOOL,
            TOOL_NAME: f"{TRANSFER_TO}{to}",
            TOOL_TYPE: FUNCTION,
            TOOL_CALL_ID: body.handoff,
            **self._agent_facts(body.run),
            TRANSFER_MODE: RETURN_TO_CALLER,
            TRANSFER_TARGET: to,
            TRANSFER_TARGET_TYPE: AGENT,
            **_tree_facts(offer),
            NODE: body.handoff,
            NODE_PARENT: body.run,
            f"{OURS}run": body.run,
            f"{OURS}handoff": body.handoff,
            f"{OURS}relation": body.relation,
            f"{OURS}carrier": body.carrier,
            f"{OURS}outcome": ended.kind.partition(".")[2],
            **_said(body, "flags", "missing", "rule"),
            **_said(ended.body, "attempt"),
            **self._receipt_facts(transfer.began, ended),
        }
        return SpanRecord(
            place=SpanPlace(run.trace, span_id(transfer.began.id)),
            parent=parent,
            name=f"{EXECUTE_TOOL} {TRANSFER_TO}{to}",
            began=transfer.began.at,
            ended=max(transfer.began.at, ended.at),
            facts=_with_error(facts, error),
            events=tuple(events[:MOST_EVENTS]),
            dropped_events=max(0, len(events) - MOST_EVENTS),
            links=tuple(links),
            error=error,
        )

    def _called_from(self, caller: TraceParent, run: SpanPlace, links: list[SpanLink]) -> SpanId:
        """Return the span above an offer: the caller's if it is in the tree's own trace; another trace is linked to."""
        if trace_of(caller) == run.trace:
            return span_of(caller)
        links.append(SpanLink(place=SpanPlace(trace_of(caller), span_of(caller)), facts={f"{OURS}link": "caller"}))
        return run.span

    def _remark(self, transfer: TransferRecord, receipt: Receipt) -> SpanRecord:
        """Return a span without length: a transfer that is over was sent, and nothing can be added to it."""
        handoff = HandoffId(receipt.stream)
        run = self._places.place(self._view.get_handoff(handoff).parent)
        facts: dict[str, Fact] = {
            **_tree_facts(receipt),
            f"{OURS}handoff": handoff,
            **_said(receipt.body, "attempt", "method", "by", "by_producer", "exit_code", "call", "settlement"),
            **self._receipt_facts(receipt, receipt),
        }
        return SpanRecord(
            place=SpanPlace(run.trace, span_id(receipt.id)),
            parent=span_id(transfer.began.id),
            name=receipt.kind,
            began=receipt.at,
            ended=receipt.at,
            facts=facts,
        )

    def _refused(self, receipt: Receipt, body: HandoffFailed) -> SpanRecord:
        run = self._places.place(body.run)
        facts: dict[str, Fact] = {
            OPERATION: EXECUTE_TOOL,
            TOOL_NAME: f"{TRANSFER_TO}{body.to}",
            TOOL_TYPE: FUNCTION,
            TOOL_CALL_ID: body.handoff,
            **self._agent_facts(body.run),
            TRANSFER_MODE: RETURN_TO_CALLER,
            TRANSFER_TARGET: body.to or "",
            TRANSFER_TARGET_TYPE: AGENT,
            **_tree_facts(receipt),
            NODE: body.handoff,
            NODE_PARENT: body.run,
            f"{OURS}run": body.run,
            f"{OURS}handoff": body.handoff,
            f"{OURS}outcome": "refused",
            **self._receipt_facts(receipt, receipt),
        }
        return SpanRecord(
            place=SpanPlace(run.trace, span_id(receipt.id)),
            parent=run.span,
            name=f"{EXECUTE_TOOL} {TRANSFER_TO}{body.to}",
            began=receipt.at,
            ended=receipt.at,
            facts=_with_error(facts, body.error),
            error=body.error,
        )

    def _agent_of(self, run: RunId) -> str:
        body = self._places.first(run).body
        return body.agent if isinstance(body, RunStarted | HandoffAccepted) else ""

    def _agent_facts(self, run: RunId) -> dict[str, Fact]:
        agent = self._agent_of(run)
        return {AGENT_ID: agent, AGENT_NAME: agent}

    def _receipt_facts(self, began: Receipt, ended: Receipt) -> dict[str, Fact]:
        """Return the receipts behind a span, the digests of its texts, and the texts if they were asked for."""
        facts: dict[str, Fact] = {f"{OURS}receipt.began": began.id, f"{OURS}receipt.ended": ended.id}
        for receipt in (began,) if began.id == ended.id else (began, ended):
            for name in _WORDS.keys() & receipt.content.keys():
                facts[f"{OURS}digest.{name}"] = receipt.content[name].digest
            if self._words:
                for name, text in read_texts(self._view, receipt).items():
                    if name in _WORDS and text.words is not None:
                        facts[_WORDS[name]] = text.words[:_LONGEST_WORDS]
        return facts

    def _position(self, receipt: Receipt) -> int:
        return self._view.get_receipt(receipt.id).position or 0


def _tree_facts(receipt: Receipt) -> dict[str, Fact]:
    root = receipt.root or ""
    session = receipt.session or root
    return {SESSION: session, CONVERSATION: session, f"{OURS}root": root, f"{OURS}mode": receipt.mode}


def _said(body: object, *names: str) -> dict[str, Fact]:
    """Return some fields of a body, as far as they say something."""
    facts: dict[str, Fact] = {}
    for name in names:
        value = getattr(body, name, None)
        if value is None or value in (False, ()):
            continue
        facts[f"{OURS}{name}"] = tuple(map(str, value)) if isinstance(value, tuple) else value
    return facts


def _event(receipt: Receipt) -> SpanEvent:
    said = _said(receipt.body, "by", "rule", "reason", "error", "code", "attempt", "tokens", "cost", "flags", "check")
    return SpanEvent(name=receipt.kind, at=receipt.at, facts={f"{OURS}receipt": receipt.id, **said})


def _with_error(facts: dict[str, Fact], error: str | None) -> dict[str, Fact]:
    return facts if error is None else {**facts, ERROR_TYPE: error}


def _call_error(body: object) -> str | None:
    if isinstance(body, ToolFailed):
        return body.error
    return f"denied.{body.rule}" if isinstance(body, ToolDenied) else None


def _run_outcome(body: object) -> str:
    match body:
        case RunClosed():
            return body.outcome
        case HandoffHeld():
            return _SUSPENDED
        case _:
            kind: str = getattr(body, "kind", "")
            return kind.partition(".")[2]


def _run_error(body: object) -> str | None:
    match body:
        case HandoffFailed():
            return body.error or "failed"
        case RunClosed() if body.outcome is Outcome.FAILED:
            return "failed"
        case HandoffLapsed() | HandoffExpired() | HandoffCancelled():
            return body.kind.partition(".")[2]
        case _:
            return None


def _transfer_error(body: object) -> str | None:
    match body:
        case HandoffFailed() | HandoffParked():
            return body.error or "failed"
        case HandoffDeclined():
            return body.code
        case HandoffDenied() | HandoffExpired() | HandoffCancelled():
            return body.kind.partition(".")[2]
        case _:
            return None
