"""Follows a ledger and sends spans and metrics to a collector: by position, at least once, from where it stopped."""

import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from batonpass.errors import StoreError
from batonpass.errors.egress import CollectorError
from batonpass.ledger.progress_file import ProgressFile
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery
from batonpass.telemetry.metric_rollup import TELEMETRY_FOLDER, MetricRollup
from batonpass.telemetry.span_record import SpanRecord
from batonpass.telemetry.span_source import SpanSource

POLL: Final = timedelta(seconds=1)
_AT_ONCE: Final = 500  # receipts
_LONGEST_PAUSE: Final = 60.0


class SpanCollector(Protocol):
    """A receiver of spans and metrics."""

    def send_spans(self, spans: list[SpanRecord]) -> None:
        """Take spans, or raise `CollectorError`."""
        ...

    def send_metrics(self, rollup: MetricRollup) -> None:
        """Take metrics, or raise `CollectorError`."""
        ...


class SentSoFar(Struct, kw_only=True):
    """The position up to which a ledger was sent, and its totals at that position."""

    rollup: MetricRollup | None = None


_KEPT: Final = msgspec.json.Decoder(SentSoFar)


class TelemetryFollower:
    """Sends each receipt's spans at least once, in order, and the sums after them.

    The position is kept after the collector took everything. So after a crash in between the same spans are sent again,
    with the same ids. Each `name` has its own position.
    """

    def __init__(
        self, store: LedgerStore, home: Path, collector: SpanCollector, *, name: str = "otlp", words: bool = False
    ) -> None:
        self._store = store
        self._kept = ProgressFile(home / TELEMETRY_FOLDER, name, _KEPT)
        self._collector = collector
        self._words = words

    def send_all(self) -> int:
        """Send the spans of new receipts; return their number. Nothing happens if another process is sending.

        Raises `CollectorError` if the collector did not take them. They are sent again the next time.
        """
        self._store.sequence()
        with self._kept.turn() as ours:
            sent = 0
            while ours:
                taken, more = self._send_some()
                sent += taken
                if not more:
                    break
            return sent

    def _send_some(self) -> tuple[int, bool]:
        with self._store.view() as view:
            rollup = self._begin(view)
            found = list(islice(view.find_receipts(ReceiptQuery(first=rollup.position + 1)), _AT_ONCE))
            source, spans = SpanSource(view, words=self._words), []
            for stored in found:
                ended = list(source.spans(stored))
                rollup.add(stored, read_receipt(stored).at, ended)
                spans += ended
        if found:
            self._collector.send_spans(spans)
            self._collector.send_metrics(rollup)
            self._kept.write(SentSoFar(rollup=rollup))
        return len(spans), len(found) == _AT_ONCE

    def _begin(self, view: LedgerView) -> MetricRollup:
        ledger = view.info().id
        kept = self._kept.read().rollup
        return kept if kept is not None and kept.ledger == ledger else MetricRollup(ledger=ledger)

    def run_until(self, stop: threading.Event, *, told: Callable[[int, CollectorError | None], None]) -> None:
        """Send until `stop` is set. A collector that takes nothing is asked again, less and less often."""
        pause = POLL.total_seconds()
        while not stop.is_set():
            try:
                if sent := self.send_all():
                    told(sent, None)
                pause = POLL.total_seconds()
            except CollectorError as error:
                told(0, error)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except StoreError:
                pass  # the receipts wait where they are
            stop.wait(pause)
