"""A review of one tree and of one day in a ledger of a million receipts."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from batonpass import Relay
from batonpass.model.base.ids import RunId
from batonpass.review.review import review_roots
from bench.effort import Effort
from bench.ledgers import count_receipts, fill_with_handoffs, scribe_of
from bench.measure import Act, Samples, cpu_of, time_act
from bench.rich_trees import grow
from bench.table import Figure, Row, Unit, at_most, p99, within

_RECEIPTS_OF_A_HANDOFF: Final = 3
_TREES_OF_A_DAY: Final = 50  # 18,800 receipts: more than a fifty-fifth of a million, which is one day of eight weeks
_TIMES: Final = {1: 100, _TREES_OF_A_DAY: 5}
_GOALS: Final = {1: 0.2, _TREES_OF_A_DAY: 2.0}
_GROWTH: Final = 1.5


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure reviews of the same trees in a small ledger and in a large one."""
    rows: list[Row] = []
    small: dict[int, Figure] = {}
    for receipts in (effort.grown[0] * 10, effort.grown[-1]):
        place = scratch / str(receipts)
        place.mkdir(exist_ok=True)
        with Relay.open(f"sqlite:///{place / 'ledger.db'}", home=place / "home") as relay:
            scribe = scribe_of(relay, place / "home")
            fill_with_handoffs(scribe, receipts // _RECEIPTS_OF_A_HANDOFF)
            roots = grow(relay, _TREES_OF_A_DAY)
            written = count_receipts(scribe)
            for trees, goal in _GOALS.items():
                act = reviews(relay, roots, trees)
                samples = Samples(tuple(time_act(act, _TIMES[trees])))
                what = f"review {'one tree' if trees == 1 else f'{trees} trees'} of 376 receipts, {written:,} receipts"
                rows.append(Row(what=f"{what}, p99", ours=p99(samples), against="", theirs=None, goal=within(goal)))
                cost = Figure(cpu_of(act, _TIMES[trees]), Unit.SECONDS)
                first = small.setdefault(trees, cost)
                if cost is not first:
                    growth = at_most(_GROWTH)
                    rows.append(
                        Row(what=f"{what}, CPU", ours=cost, against="a small ledger", theirs=first, goal=growth)
                    )
    return rows


def reviews(relay: Relay, roots: Sequence[RunId], trees: int) -> Act:
    """Return the act that is measured: somebody reviews some trees."""
    chance = Random(7)

    def act() -> None:
        with relay.store.view() as view:
            review_roots(view, sorted(chance.sample(roots, min(trees, len(roots)))), datetime.now(UTC))

    return act
