"""Now: open needs, running and waiting handoffs, workers, and how the last day went."""

from datetime import datetime, timedelta
from itertools import islice
from statistics import median
from typing import Final

from msgspec import Struct

from batonpass.accounts.overview.open_needs import find_needs
from batonpass.model.base.ids import time_of
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.run import Handoff
from batonpass.records.lineage import read_task
from batonpass.server.page.request import PageRequest, Shown
from batonpass.store.port import LedgerView

MOST_SHOWN: Final = 30
_OF_STATE: Final = 8
_HOURS: Final = 24
_MOST_CHARTED: Final = 400
_RUNNING: Final = (State.RUNNING,)
_WAITING: Final = (State.READY, State.CLAIMED, State.OFFERED)
_FAILED: Final = (State.FAILED, State.REFUTED)


class LastDay(Struct, frozen=True, kw_only=True):
    """The last day by the hour, the oldest hour first."""

    handoffs: tuple[int, ...]
    failed: tuple[int, ...]
    waits: tuple[int, ...]  # milliseconds until somebody took a task, in the middle of each hour
    waited: timedelta | None  # the same over the whole day
    waited_most: timedelta | None
    is_cut: bool  # there were more than are counted

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was handed off."""
        return not any(self.handoffs)


class HandoffRow(Struct, frozen=True, kw_only=True):
    """A handoff in a short list."""

    handoff: Handoff
    task: str
    at: datetime


def show_now(asked: PageRequest) -> Shown:
    """Return the needs, the latest handoffs by state, the workers and the last day."""
    now = asked.now
    with asked.looking() as view:
        needs = find_needs(view)
        return {
            "needs": needs[:MOST_SHOWN],
            "more": max(0, len(needs) - MOST_SHOWN),
            "lists": [
                (name, states[0].value, *_some(view, states))
                for name, states in (("Running", _RUNNING), ("Waiting", _WAITING), ("Failed", _FAILED))
            ],
            "leases": [_lease(view, lease) for lease in islice(view.find_leases(), _OF_STATE)],
            "day": _last_day(view, now),
            "hours": [f"{(now - timedelta(hours=_HOURS - 1 - hour)):%Y-%m-%dT%H:00:00Z}" for hour in range(_HOURS)],
            "is_new": next(iter(view.find_runs(roots=True, limit=1)), None) is None,
        }


def _some(view: LedgerView, states: tuple[State, ...]) -> tuple[list[HandoffRow], bool]:
    found = [*view.find_handoffs(states=states, limit=_OF_STATE + 1)]
    return [line_of(view, one) for one in found[:_OF_STATE]], len(found) > _OF_STATE


def line_of(view: LedgerView, handoff: Handoff) -> HandoffRow:
    """Return a handoff for a list."""
    task = read_task(view, handoff)
    return HandoffRow(
        handoff=handoff, task="" if task is None else task.words or str(task.found), at=time_of(handoff.id)
    )


def _lease(view: LedgerView, lease: Lease) -> tuple[Lease, HandoffRow]:
    return lease, line_of(view, view.get_handoff(lease.handoff))


def _last_day(view: LedgerView, now: datetime) -> LastDay:
    since = now - timedelta(hours=_HOURS)
    counts, failed = [0] * _HOURS, [0] * _HOURS
    waits: list[float] = []
    by_hour: list[list[float]] = [[] for _ in range(_HOURS)]
    seen = 0
    for handoff in view.find_handoffs(limit=_MOST_CHARTED):
        at = time_of(handoff.id)
        if at < since:
            break
        seen += 1
        hour = min(_HOURS - 1, max(0, int((at - since).total_seconds() // 3600)))
        counts[hour] += 1
        failed[hour] += handoff.state in _FAILED
        if handoff.attempt == 1 and handoff.run is not None and len(waits) < _MOST_CHARTED // 4:
            waits.append(max(0.0, (view.get_run(handoff.run).started_at - at).total_seconds()))
            by_hour[hour].append(waits[-1])
    return LastDay(
        handoffs=tuple(counts),
        failed=tuple(failed),
        waits=tuple(max(1, round(median(one) * 1000)) if one else 0 for one in by_hour),
        waited=timedelta(seconds=median(waits)) if waits else None,
        waited_most=timedelta(seconds=sorted(waits)[int(len(waits) * 0.95)]) if waits else None,
        is_cut=seen == _MOST_CHARTED,
    )
