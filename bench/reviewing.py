"""A review of one tree and of one day in a ledger of a million receipts."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

from batonpass.model.base.ids import RunId
from batonpass.review.review import review_roots
from batonpass.testing.builders import Scribe
from bench.effort import Effort
from bench.ledgers import count_receipts, fill_with_handoffs, sqlite_ledger
from bench.measure import Act, Samples, time_act
from bench.table import Row, p99, within

_RECEIPTS_OF_A_HANDOFF: Final = 3
_TREES_OF_A_DAY: Final = 60  # 18,000 receipts: a fifty-fifth of a million, as one day of eight weeks
_TREES: Final = 100
_DAYS: Final = 3
_GOALS: Final = {1: 0.2, _TREES_OF_A_DAY: 2.0}


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure reviews in a small ledger and in a large one."""
    rows = []
    for receipts in (effort.grown[0] * 20, effort.grown[-1]):
        with sqlite_ledger(scratch / str(receipts)) as scribe:
            fill_with_handoffs(scribe, receipts // _RECEIPTS_OF_A_HANDOFF)
            roots = _roots(scribe)
            for trees, goal in _GOALS.items():
                samples = Samples(tuple(time_act(reviews(scribe, roots, trees), _DAYS if trees > 1 else _TREES)))
                what = "one tree of 300 receipts" if trees == 1 else f"{trees} trees of 300 receipts"
                rows.append(
                    Row(
                        what=f"review {what}, {count_receipts(scribe):,} receipts, p99",
                        ours=p99(samples),
                        against="",
                        theirs=None,
                        goal=within(goal),
                    )
                )
    return rows


def _roots(scribe: Scribe) -> list[RunId]:
    with scribe.store.view() as view:
        return [run.id for run in islice(view.find_runs(roots=True), 2_000)]


def reviews(scribe: Scribe, roots: Sequence[RunId], trees: int) -> Act:
    """Return the act that is measured: somebody reviews some trees."""
    chance = Random(7)

    def act() -> None:
        with scribe.store.view() as view:
            review_roots(view, chance.sample(roots, min(trees, len(roots))), datetime.now(UTC))

    return act
