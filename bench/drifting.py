"""Drift of six weeks in a ledger of a million receipts, once roll-ups are kept, and what keeping them costs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Final

from batonpass.drift.drift import DaySpan, DriftQuestion, find_drift
from batonpass.drift.evidence import find_evidence
from batonpass.drift.rollup import keep_up, read_weeks
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import a_scribe
from batonpass.testing.clock import FrozenClock
from bench.effort import Effort
from bench.ledgers import closing_store, count_receipts, fill_with_handoffs
from bench.measure import Act, Samples, cpu_of, time_act
from bench.table import Figure, Row, Unit, at_most, p99, within

_RECEIPTS_OF_A_HANDOFF: Final = 3
_DAYS: Final = 42
AGENTS: Final = ("editor", "analyst", "drafter", "checker", "collector", "planner", "reviewer", "tester")
_REPORTS: Final = 20
_GOAL: Final = 1.0
_GROWTH: Final = 1.5


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure reports in a small ledger and in a large one; of the large one also the first roll-up."""
    rows: list[Row] = []
    small: Figure | None = None
    for receipts in (effort.grown[0] * 10, effort.grown[-1]):
        place = scratch / str(receipts)
        place.mkdir(exist_ok=True)
        with closing_store(f"sqlite:///{place / 'ledger.db'}") as store:
            written = six_weeks(store, receipts // _RECEIPTS_OF_A_HANDOFF)
            began = perf_counter()
            keep_up(store)
            took = perf_counter() - began
            samples = Samples(tuple(time_act(reports(store), _REPORTS)))
            for what, figure, goal in (
                (f"drift of six weeks, {written:,} receipts, p99", p99(samples), within(_GOAL)),
                (f"roll up {written:,} receipts for the first time", p99(Samples((took,))), None),
            ):
                rows.append(Row(what=what, ours=figure, against="", theirs=None, goal=goal))
            cost = Figure(cpu_of(reports(store), _REPORTS), Unit.SECONDS)
            if small is not None:
                what = f"drift of six weeks, {written:,} receipts, CPU"
                rows.append(Row(what=what, ours=cost, against="a small ledger", theirs=small, goal=at_most(_GROWTH)))
            small = small or cost
    return rows


def six_weeks(store: LedgerStore, handoffs: int) -> int:
    """Fill a ledger with handoffs of the last six weeks, by eight agents; return how many receipts it has."""
    clock = FrozenClock(datetime.now(UTC) - timedelta(days=_DAYS))
    scribe = a_scribe(store, clock=clock)
    for _ in range(_DAYS):
        clock.tick(timedelta(days=1))
        fill_with_handoffs(scribe, handoffs // _DAYS, agents=AGENTS, leads=min(10, max(1, handoffs // _DAYS // 100)))
    return count_receipts(scribe)


def reports(store: LedgerStore) -> Act:
    """Return the act that is measured: somebody asks what changed in six weeks."""
    today = datetime.now(UTC).date()
    span = DaySpan(first=today - timedelta(days=_DAYS - 1), last=today)

    def act() -> None:
        weeks = read_weeks(store, span)
        report = find_drift(weeks.days, DriftQuestion(span=span))
        with store.view() as view:
            find_evidence(view, report, weeks)

    return act
