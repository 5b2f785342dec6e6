"""Whether an append costs more in a larger ledger, and how much room a receipt takes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean

from batonpass.testing.builders import Scribe
from bench.effort import Effort
from bench.ledgers import fill, request_bytes, requests, run_bytes, sqlite_ledger, use_up_log
from bench.limits import RawFile
from bench.measure import time_in_turns
from bench.table import Figure, Row, Unit, at_most, p50


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure an append in a ledger that grows against one in a ledger that stays small, at the same moment."""
    rows: list[Row] = []
    with ExitStack() as stack:
        growing = stack.enter_context(sqlite_ledger(scratch / "growing"))
        small = stack.enter_context(sqlite_ledger(scratch / "small"))
        use_up_log(growing)
        use_up_log(small)
        raw = RawFile(scratch / "raw", request_bytes(small))
        for receipts in effort.grown:
            fill(growing, receipts - _count(growing))
            rows += _append_at(receipts, (growing, small), raw, effort)
        total, recorded = _count(growing), mean(_filled_bytes(growing))
    bytes_each = sum(path.stat().st_size for path in (scratch / "growing").glob("ledger.db*")) / total
    return [*rows, _room(total, bytes_each, recorded)]


def _append_at(receipts: int, ledgers: tuple[Scribe, Scribe], raw: RawFile, effort: Effort) -> Iterator[Row]:
    growing, small = ledgers
    contenders = {"growing": requests(growing), "small": requests(small), "raw": raw.append}
    taken = time_in_turns(contenders, turns=effort.turns // 2, acts=effort.acts)
    what = f"append at {receipts:,} receipts, p50"
    ours = p50(taken["growing"])
    yield Row(what=what, ours=ours, against="raw append+fsync", theirs=p50(taken["raw"]))
    # The first row compares two ledgers of one size: how far it is from 1 is how far the others can be trusted.
    goal = None if receipts == effort.grown[0] else at_most(1.2)
    yield Row(what=what, ours=ours, against="append at a few thousand", theirs=p50(taken["small"]), goal=goal)


def _room(receipts: int, ours: float, recorded: float) -> Row:
    return Row(
        what=f"room of a receipt among {receipts:,}",
        ours=Figure(ours, Unit.BYTES),
        against="signed bytes, signatures, salt and body",
        theirs=Figure(recorded, Unit.BYTES),
    )


def _count(scribe: Scribe) -> int:
    with scribe.store.view() as view:
        return view.counts().receipts


def _filled_bytes(scribe: Scribe) -> list[int]:
    """Return what the receipts of one of the many filled runs weigh: of the last that ended."""
    with scribe.store.view() as view:
        filled = next(run for run in view.find_runs() if run.ended_at is not None)
    return run_bytes(scribe, filled.id)
