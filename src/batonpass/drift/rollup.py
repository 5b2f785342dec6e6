"""Roll-ups, kept from receipts by position: each closed handoff once, and the sums of each day.

A reader brings them up to date first. Nothing of this happens while something is recorded. If several processes do
it at once, one of them writes, and the others see the result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Final

from batonpass.drift import counts
from batonpass.drift.closed_handoff import (
    ClosedHandoff,
    closes,
    decode_outcome,
    encode_outcome,
    handoff_of,
    read_closed,
)
from batonpass.drift.counts import Counts
from batonpass.drift.drift import DayCounts, DaySpan
from batonpass.errors import StoreReadOnlyError
from batonpass.model.base.ids import AgentId, ContentId, HandoffId
from batonpass.model.bodies.body import ContentErased
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RolledQuery, RollupMark
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery

VERSION: Final = 2  # of the computation: another one makes all roll-ups anew
_AT_ONCE: Final = 5_000  # receipts in one step; a step is one commit
_TOGETHER: Final = 200  # handoffs whose contents are read at once

Day = tuple[AgentId, str, str, str]


def keep_up(store: LedgerStore, told: Callable[[int, int], object] | None = None) -> RollupMark:
    """Bring the roll-ups up to date with the receipts, and return how far they go.

    `told` is called after each step with the position that was reached and the last one.
    """
    while store.sequence():
        pass
    while True:
        with store.view() as view:
            mark = view.rolled()
            last = view.last_position()
            if mark.version == VERSION and mark.position >= last:
                return mark
            after = mark if mark.version == VERSION else RollupMark(version=VERSION)
            upto = RollupMark(version=VERSION, position=min(last, after.position + _AT_ONCE))
            handoffs, days = _step(view, after, upto)
        store.roll(mark, upto, handoffs, days)  # if another process was first, the next round begins at its mark
        if told is not None:
            told(upto.position, last)


def _step(view: LedgerView, after: RollupMark, upto: RollupMark) -> tuple[list[RolledHandoff], list[RolledDay]]:
    """Return the change that the receipts between two marks make."""
    handoffs: dict[HandoffId, None] = {}
    erased: list[ContentId] = []
    for stored in view.find_receipts(ReceiptQuery(first=after.position + 1, last=upto.position)):
        if closes(stored):
            found = handoff_of(stored)
            if found is not None:
                handoffs[found] = None
        elif stored.kind == ContentErased.kind:
            body = read_receipt(stored).body
            erased += body.contents if isinstance(body, ContentErased) else ()
    fresh = view.rolled().version == VERSION
    if erased and fresh:
        # Words that were erased are nowhere else either: what read them is made again without them.
        handoffs |= dict.fromkeys(rolled.handoff for rolled in view.find_rolled_with(erased))
    before = {rolled.handoff: rolled for rolled in view.find_rolled_handoffs([*handoffs])} if fresh else {}
    changed: dict[Day, Counts] = {}
    rolled = []
    for closed in _in_parts(view, handoffs, upto.position):
        kept = _rolled(closed)
        if (old := before.get(kept.handoff)) is not None:
            counts.add(_changed(view, changed, old, fresh=fresh), decode_outcome(old.body)[0], -1)
        counts.add(_changed(view, changed, kept, fresh=fresh), closed.counts)
        rolled.append(kept)
    days = [
        RolledDay(agent=agent, task_kind=kind, config=config, day=day, body=counts.encode(held))
        for (agent, kind, config, day), held in changed.items()
    ]
    return rolled, days


def _changed(view: LedgerView, changed: dict[Day, Counts], rolled: RolledHandoff, *, fresh: bool) -> Counts:
    """Return the sum of the day to which a handoff belongs, as far as this step has come with it."""
    key = (rolled.agent, rolled.task_kind, rolled.config, rolled.day)
    if key not in changed:
        empty = RolledDay(agent=key[0], task_kind=key[1], config=key[2], day=key[3], body=b"")
        changed[key] = counts.decode(view.get_rolled_day(empty).body) if fresh else {}
    return changed[key]


def _in_parts(view: LedgerView, handoffs: Iterable[HandoffId], upto: int) -> Iterator[ClosedHandoff]:
    remaining = iter(handoffs)
    while part := [*islice(remaining, _TOGETHER)]:
        yield from read_closed(view, part, upto)


def _rolled(closed: ClosedHandoff) -> RolledHandoff:
    return RolledHandoff(
        handoff=closed.handoff,
        agent=closed.agent,
        task_kind=closed.task_kind,
        config=closed.config,
        closed_at=closed.closed_at,
        contents=closed.contents,
        body=encode_outcome(closed),
    )


@dataclass(frozen=True, slots=True)
class RolledWeeks:
    """The sums of some days, and the closed handoffs behind them: as they are kept, or computed from the receipts."""

    days: list[DayCounts]
    computed: Mapping[HandoffId, RolledHandoff] | None = None  # None: those that are kept

    def find(self, view: LedgerView, query: RolledQuery) -> Iterator[RolledHandoff]:
        """Yield closed handoffs as `LedgerView.find_rolled` does."""
        if self.computed is None:
            return view.find_rolled(query)
        found = [one for one in self.computed.values() if query.selects(one)]
        ordered = sorted(found, key=lambda one: (one.closed_at, one.handoff), reverse=not query.oldest_first)
        return islice(ordered, query.limit)


def read_weeks(store: LedgerStore, span: DaySpan, *, full: bool = False) -> RolledWeeks:
    """Return the sums of some days, up to date. With `full` they are computed from the receipts, and none are read.

    A ledger that cannot be written has no roll-ups of its own: they are computed too.
    """
    try:
        if not full:
            keep_up(store)
    except StoreReadOnlyError:
        full = True
    with store.view() as view:
        if not full:
            kept = view.find_rolled_days(span.first.isoformat(), span.last.isoformat())
            return RolledWeeks([DayCounts.of(day) for day in kept])
        handoffs, days = compute_all(view)
    found = [
        DayCounts(agent=agent, task_kind=kind, config=config, day=at, counts=held)
        for (agent, kind, config, day), held in sorted(days.items())
        if span.first <= (at := date.fromisoformat(day)) <= span.last
    ]
    return RolledWeeks(found, handoffs)


def compute_all(view: LedgerView) -> tuple[Mapping[HandoffId, RolledHandoff], Mapping[Day, Counts]]:
    """Return all roll-ups, computed from the receipts alone: the same as those that are kept."""
    upto = view.last_position()
    handoffs: dict[HandoffId, None] = {}
    for stored in view.find_receipts(ReceiptQuery(last=upto)):
        if closes(stored) and (found := handoff_of(stored)) is not None:
            handoffs[found] = None
    rolled: dict[HandoffId, RolledHandoff] = {}
    days: dict[Day, Counts] = {}
    for closed in _in_parts(view, handoffs, upto):
        kept = rolled[closed.handoff] = _rolled(closed)
        counts.add(days.setdefault((kept.agent, kept.task_kind, kept.config, kept.day), {}), closed.counts)
    return rolled, days
