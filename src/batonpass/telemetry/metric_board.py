"""The metrics of a ledger as a server shows them: kept up to date beside the requests, never by one of them."""

import threading
import time
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from batonpass.errors import StoreError
from batonpass.ledger.progress_file import ProgressFile
from batonpass.model.base.ids import LedgerId
from batonpass.model.base.lifecycle import State
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.telemetry.metric_rollup import TELEMETRY_FOLDER, MetricRollup
from batonpass.telemetry.metric_text import metric_text
from batonpass.telemetry.span_source import SpanSource
from batonpass.telemetry.work_memory import WorkMemory

LOOK_EVERY: Final = timedelta(seconds=2)
_FILE: Final = "metrics"
_KEPT: Final = msgspec.json.Decoder(MetricRollup)
_AT_ONCE: Final = 500  # receipts, between two times that the sums are kept
_MOST: Final = 1000
_UNFINISHED: Final = (State.HELD, State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING)


class MetricBoard:
    """Adds up receipts by position, and tells the sums. With a home, the sums outlive the process."""

    def __init__(self, store: LedgerStore, home: Path | None = None) -> None:
        self._store = store
        self._kept = None if home is None else ProgressFile(home / TELEMETRY_FOLDER, _FILE, _KEPT)
        self._rollup: MetricRollup | None = None
        self._memory = WorkMemory()
        self._text = metric_text(MetricRollup(), waiting={}, last=0)
        self._refreshing = threading.Lock()

    def text(self) -> str:
        """Return the metrics as they were at the last look. It reads nothing."""
        return self._text

    def refresh(self) -> None:
        """Add the receipts since the last look. Raises `StoreError` if the ledger cannot be read."""
        with self._refreshing:
            if not self._store.founded():
                return
            while self._catch_up():
                pass

    def _catch_up(self) -> bool:
        """Add a few of the receipts that are missing. Return whether there may be more."""
        self._store.sequence()
        with self._store.view() as view:
            ledger = view.info().id
        if self._rollup is None or self._rollup.ledger != ledger:
            self._rollup, self._memory = self._begin(ledger), WorkMemory()
        return self._add_some(self._rollup)

    def _begin(self, ledger: LedgerId) -> MetricRollup:
        kept = MetricRollup() if self._kept is None else self._kept.read()
        return kept if kept.ledger == ledger else MetricRollup(ledger=ledger)

    def run_until(self, stop: threading.Event) -> None:
        """Refresh until `stop` is set. A ledger that cannot be reached is tried again.

        The first look at a large ledger takes minutes. It rests as long as it works, so that requests have a turn.
        """
        while not stop.is_set():
            began, more = time.monotonic(), False
            with suppress(StoreError), self._refreshing:  # the receipts wait where they are
                more = self._store.founded() and self._catch_up()
            stop.wait(time.monotonic() - began if more else LOOK_EVERY.total_seconds())

    def _add_some(self, rollup: MetricRollup) -> bool:
        """Add a few receipts, tell the sums and keep them. Return whether there may be more."""
        with self._store.view() as view:
            source, count = SpanSource(view, memory=self._memory), 0
            for stored in islice(view.find_receipts(ReceiptQuery(first=rollup.position + 1)), _AT_ONCE):
                receipt = read_receipt(stored)
                rollup.add(stored, receipt.at, source.spans_at(receipt, stored.position or 0))
                count += 1
            waiting = {
                str(state): sum(1 for _ in view.find_handoffs(states=(state,), limit=_MOST)) for state in _UNFINISHED
            }
            self._text = metric_text(rollup, waiting=waiting, last=view.last_position())
        if count and self._kept is not None:
            with self._kept.turn() as ours:
                if ours:
                    self._kept.write(rollup)
        return count == _AT_ONCE
