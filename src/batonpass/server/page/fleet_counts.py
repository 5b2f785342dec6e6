"""The roll-ups of the fleet's handoffs, which drift and recall read. They are kept up to date while nobody waits.

A page that asks for them for the first time in a large ledger would wait for minutes. So a thread brings them up to
date, and the page shows the counts so far, with the position up to which they go.
"""

import threading
from typing import Final

from msgspec import Struct

from batonpass.drift.drift import DayCounts, DriftQuestion, DriftReport, find_drift
from batonpass.drift.rollup import VERSION, keep_up
from batonpass.errors import BatonpassError
from batonpass.server.control_plane import ControlPlane
from batonpass.store.port import LedgerView

_AT_ONCE: Final = 600  # receipts that are added up while somebody waits
_KEPT: Final = 8  # reports


class CountState(Struct, frozen=True, kw_only=True):
    """How far the counts go."""

    position: int
    last: int
    problem: str | None = None  # why they cannot go further

    @property
    def is_current(self) -> bool:
        """Return whether everything is counted."""
        return self.position >= self.last


class FleetCounts:
    """Keeps the roll-ups of one server up to date. Safe to use from many threads."""

    def __init__(self, plane: ControlPlane) -> None:
        self._store = plane.relay.store
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._problem: str | None = None
        self._reports: dict[tuple[int, DriftQuestion], DriftReport] = {}

    def bring_up(self) -> CountState:
        """Return how far the counts go: all of it, if only little was missing; else a thread goes on with it."""
        state = self._state()
        if state.is_current or state.problem is not None:
            return state
        if state.last - state.position <= _AT_ONCE:
            self._keep_up()
            return self._state()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._keep_up, name="fleet-counts", daemon=True)
                self._thread.start()
        return state

    def report(self, view: LedgerView, question: DriftQuestion) -> DriftReport:
        """Return the drift of the days that are asked about, as far as it is counted."""
        key = (view.rolled().position, question)
        if (known := self._reports.get(key)) is not None:
            return known
        days = view.find_rolled_days(question.span.first.isoformat(), question.span.last.isoformat())
        found = find_drift(map(DayCounts.of, days), question)
        with self._lock:
            self._reports[key] = found
            while len(self._reports) > _KEPT:
                del self._reports[next(iter(self._reports))]
        return found

    def _state(self) -> CountState:
        with self._store.view() as view:
            mark = view.rolled()
            last = view.last_position()
        return CountState(position=mark.position if mark.version == VERSION else 0, last=last, problem=self._problem)

    def _keep_up(self) -> None:
        try:
            keep_up(self._store)
        except BatonpassError as error:  # a ledger that cannot be written keeps no counts
            self._problem = str(error)
