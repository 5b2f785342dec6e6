"""The places of runs in traces: a tree is one trace, its caller's if there is one."""

from collections.abc import Mapping
from functools import lru_cache

from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.base.trace import TraceParent, make_traceparent, span_id, trace_id, trace_of
from batonpass.model.bodies.body import RunStarted
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView
from batonpass.telemetry.span_record import SpanPlace

_REMEMBERED = 4096


def first_receipt(view: LedgerView, run: RunId) -> Receipt:
    """Return the receipt that began a run. Raises `NotFoundError`."""
    return read_receipt(view.get_receipt_at(StreamId(run), 1))


def caller_of(started: Receipt) -> TraceParent | None:
    """Return the trace that a root was started in; None if nobody said so."""
    return started.body.trace if isinstance(started.body, RunStarted) else None


class TracePlaces:
    """Finds the places of runs. It remembers its answers: receipts never change."""

    def __init__(self, view: LedgerView, begun: Mapping[RunId, Receipt] | None = None) -> None:
        self._view = view
        self._begun = {} if begun is None else begun
        self.first = lru_cache(_REMEMBERED)(self._first)
        self.place = lru_cache(_REMEMBERED)(self._place)

    def _first(self, run: RunId) -> Receipt:
        return self._begun.get(run) or first_receipt(self._view, run)

    def _place(self, run: RunId) -> SpanPlace:
        """Return the place of a run's span."""
        begun = self.first(run)
        root = begun if begun.root in {None, run} else self.first(begun.root or run)
        caller = caller_of(root)
        return SpanPlace(trace_id(root.id) if caller is None else trace_of(caller), span_id(begun.id))


def traceparent_of(view: LedgerView, run: RunId) -> TraceParent:
    """Return the header for work that goes on below a run elsewhere. Raises `NotFoundError`."""
    place = TracePlaces(view).place(run)
    return make_traceparent(place.trace, place.span)
