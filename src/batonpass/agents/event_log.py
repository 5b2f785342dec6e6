"""The event log: receipts as events, with a time, a type and a summary."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from batonpass.agents.agent_relay import Place, shown_place, store_of
from batonpass.aio.threads import in_thread
from batonpass.handoff.history.offers import read_words
from batonpass.model.base.checks import shorten
from batonpass.model.base.content_names import ANSWER, MESSAGE, QUESTION, REPORT, TASK
from batonpass.model.base.ids import ReceiptId, RunId, SessionId, StreamId, session_named
from batonpass.model.base.kinds import Kind
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffContextSanitized,
    HandoffFailed,
    HandoffInitiated,
    RunStarted,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import read_call
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_report
from batonpass.wire.receipt_codec import decode_receipt

_SAID: Final = (QUESTION, ANSWER, "reason", "message", "intent")


def summarise(view: LedgerView, receipt: Receipt) -> str:
    """Return a receipt in one line; erased text is shown as erased."""
    match receipt.body:
        case RunStarted() as body:
            told = f"{body.principal} asks {body.agent}: {_words(view, receipt, 'intent')}"
        case HandoffInitiated() as body:
            told = f"{_agent(view, body.run)} hands to {body.to}: {_words(view, receipt, TASK)}"
        case HandoffContextSanitized() as body:
            found = ", ".join(f"{one.rule} ×{one.count} in {one.place}" for one in body.found) or "nothing"
            told = f"found {found}; {body.action}, as {body.label}"
        case HandoffAccepted() as body:
            told = f"{body.agent} begins attempt {body.attempt}"
        case HandoffCompleted() as body:
            gaps = f" ({', '.join(body.flags)})" if body.flags else ""
            told = f"{_agent(view, body.run)} reports: {_report(view, receipt)}{gaps}"
        case HandoffFailed() as body if body.is_refusal:
            told = f"{_agent(view, body.run)} may not hand to {body.to}: {body.error}, {_words(view, receipt, MESSAGE)}"
        case HandoffFailed() as body:
            told = f"{_agent(view, body.run)} failed: {body.error}"
        case _ if (call := read_call(view, receipt)) is not None and call.receipt.id == receipt.id and call.is_made:
            told = f"{_agent(view, call.run)} calls {call.tool}"
        case body:
            by = getattr(body, "by", None)
            said = next((_words(view, receipt, name) for name in _SAID if name in receipt.content), "")
            told = " ".join(part for part in (f"by {by}" if by else "", said) if part) or str(body.kind)
    return told


def _events_of(view: LedgerView, receipt: Receipt, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the type and the summary of each event that a receipt tells of: one, or two for a refused handoff."""
    body = receipt.body
    if isinstance(body, HandoffFailed) and body.is_refusal and Kind.HANDOFF_INITIATED.startswith(prefix):
        # Somebody asked for it, and it was refused before there was an offer: one receipt says both.
        yield Kind.HANDOFF_INITIATED, f"{_agent(view, body.run)} hands to {body.to}: {_words(view, receipt, TASK)}"
    if receipt.kind.startswith(prefix):
        yield receipt.kind, summarise(view, receipt)


def _agent(view: LedgerView, run: RunId) -> str:
    return view.get_run(run).agent


def _words(view: LedgerView, receipt: Receipt, name: str) -> str:
    words = read_words(view, receipt.content.get(name))
    # The message of a failure is a traceback, and its last line says what went wrong.
    return shorten((words.splitlines() or [""])[-1] if name == MESSAGE else words)


def _report(view: LedgerView, receipt: Receipt) -> str:
    ref = receipt.content.get(REPORT)
    stored = None if ref is None else view.get_content(ref.id)
    if stored is None or stored.body is None:
        return "nothing"
    return shorten(decode_report(stored.body).result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A receipt as an event. A refused handoff is two: it was initiated, and it failed."""

    timestamp: datetime
    event_type: str
    summary: str
    receipt: ReceiptId
    stream: StreamId  # its run or handoff
    root: RunId | None


class EventLog:
    """Reads receipts as events: from a relay, a store, or the ledger of this directory."""

    def __init__(self, state_store: Place = None) -> None:
        self._place = state_store

    def __repr__(self) -> str:
        return f"<EventLog of {shown_place(self._place)}>"

    async def get_events(
        self,
        session_id: str | None = None,
        event_type_prefix: str = "",
        *,
        run: RunId | None = None,
    ) -> list[Event]:
        """Return the events of a session, of the tree of a run, or of the whole ledger, in order of time."""
        return await in_thread(lambda: self._read(session_id, event_type_prefix, run))

    def _read(self, session_id: str | None, prefix: str, run: RunId | None) -> list[Event]:
        session = None if session_id is None else session_named(session_id)
        with store_of(self._place).view() as view:
            receipts = _find(view, session, prefix.partition(".")[0] or None, run)
            events = [
                Event(
                    timestamp=receipt.at,
                    event_type=kind,
                    summary=summary,
                    receipt=receipt.id,
                    stream=receipt.stream,
                    root=receipt.root,
                )
                for receipt in receipts
                for kind, summary in _events_of(view, receipt, prefix)
            ]
        # Ids start with the time: of two in one microsecond, a parent's offer still comes before its child.
        return sorted(events, key=lambda event: (event.timestamp, event.receipt))


def _find(view: LedgerView, session: SessionId | None, family: str | None, run: RunId | None) -> Iterator[Receipt]:
    roots = [run] if run is not None else []
    if session is not None and run is None:
        # The runs of a session are also a series of the same name, which the store finds without reading everything.
        roots = [known.id for known in view.find_runs(series=session)]
    queries = [ReceiptQuery(root=view.get_run(root).root, kind=family) for root in roots] or [ReceiptQuery(kind=family)]
    for query in queries:
        for stored in view.find_receipts(query):
            receipt = decode_receipt(stored.payload)
            if session is None or receipt.session == session:
                yield receipt
