"""The event log: receipts as events, with a time, a type and a summary in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from batonpass.agents.places import Place, store_of
from batonpass.agents.summaries import summarise
from batonpass.aio.threads import in_thread
from batonpass.model.ids import ReceiptId, RunId, SessionId, StreamId, session_named
from batonpass.model.receipt import Receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.codec import decode_receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that was recorded."""

    timestamp: datetime
    event_type: str
    summary: str
    receipt: ReceiptId
    stream: StreamId  # the run or the handoff that it is about
    root: RunId | None


class EventLog:
    """Reads what was recorded as events: from a relay, a store, or the ledger of this directory."""

    def __init__(self, state_store: Place = None) -> None:
        self._place = state_store

    async def get_events(
        self,
        session_id: str | None = None,
        event_type_prefix: str = "",
        *,
        run: RunId | None = None,
    ) -> list[Event]:
        """Return the events of a session, or of the tree of a run, or all, in the order in which they happened."""
        return await in_thread(lambda: self._read(session_id, event_type_prefix, run))

    def _read(self, session_id: str | None, prefix: str, run: RunId | None) -> list[Event]:
        session = None if session_id is None else session_named(session_id)
        with store_of(self._place).view() as view:
            receipts = _find(view, session, prefix.partition(".")[0] or None, run)
            events = [
                Event(
                    timestamp=receipt.at,
                    event_type=receipt.kind,
                    summary=summarise(view, receipt),
                    receipt=receipt.id,
                    stream=receipt.stream,
                    root=receipt.root,
                )
                for receipt in receipts
                if receipt.kind.startswith(prefix)
            ]
        # Ids begin with the time: of two in one microsecond, a parent's offer still comes before what hangs from it.
        return sorted(events, key=lambda event: (event.timestamp, event.receipt))


def _find(view: LedgerView, session: SessionId | None, family: str | None, run: RunId | None) -> Iterator[Receipt]:
    roots = [run] if run is not None else []
    if session is not None and run is None:
        # Runs of native agents are a series by the name of their session: found without reading everything.
        roots = [known.id for known in view.find_runs(series=session)]
    queries = [ReceiptQuery(root=view.get_run(root).root, kind=family) for root in roots] or [ReceiptQuery(kind=family)]
    for query in queries:
        for stored in view.find_receipts(query):
            receipt = decode_receipt(stored.payload)
            if session is None or receipt.session == session:
                yield receipt
