"""Whether an append or a handoff costs more in a larger ledger, and how much room a receipt takes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean
from typing import Final

from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.testing.builders import Scribe
from bench import batons
from bench.effort import Effort
from bench.ledgers import (
    count_receipts,
    fill,
    fill_with_handoffs,
    receipt_bytes,
    request_bytes,
    requests,
    scribe_of,
    use_up_log,
)
from bench.limits import RawFile
from bench.measure import time_in_turns
from bench.table import Figure, Row, Unit, at_most, p50

_RECEIPTS: Final = 3  # of a handoff
_SAMPLES: Final = 40
_SAMPLED: Final = 50  # receipts in a row, of each sample


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure acts in a ledger that grows against the same in a ledger that stays small, at the same moment."""
    rows: list[Row] = []
    with ExitStack() as stack:
        relays = tuple(stack.enter_context(batons.open_relay(scratch / name)) for name in ("growing", "small"))
        growing, small = scribe_of(relays[0], scratch / "growing"), scribe_of(relays[1], scratch / "small")
        use_up_log(growing)
        use_up_log(small)
        raw = RawFile(scratch / "raw", request_bytes(small))
        for receipts in sorted({*effort.grown, *(handoffs * _RECEIPTS for handoffs in effort.handed)}):
            _fill_up(growing, receipts, effort)
            if receipts in effort.grown:
                rows += _append_at(receipts, (growing, small), raw, effort)
            if receipts // _RECEIPTS in effort.handed:
                rows += _handoff_at(receipts // _RECEIPTS, relays, effort)
        total = count_receipts(growing)
        recorded = mean(_sampled_bytes(growing, total))
    bytes_each = sum(path.stat().st_size for path in (scratch / "growing").glob("ledger.db*")) / total
    return [*rows, _room(total, bytes_each, recorded)]


def _fill_up(scribe: Scribe, receipts: int, effort: Effort) -> None:
    """Add handoffs as long as their number is asked for, then tool calls."""
    missing = receipts - count_receipts(scribe)
    if receipts <= effort.handed[-1] * _RECEIPTS:
        fill_with_handoffs(scribe, missing // _RECEIPTS)
    else:
        fill(scribe, missing)


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


def _handoff_at(handoffs: int, relays: Sequence[Relay], effort: Effort) -> Iterator[Row]:
    growing, small = relays
    contenders = {"growing": batons.hands_off(growing), "small": batons.hands_off(small)}
    taken = time_in_turns(contenders, turns=effort.turns // 2, acts=max(effort.acts // 3, 1))
    yield Row(
        what=f"handoff at {handoffs:,} handoffs, p50",
        ours=p50(taken["growing"]),
        against="handoff at some hundred",
        theirs=p50(taken["small"]),
        goal=None if handoffs == effort.handed[0] else at_most(1.2),
    )


def _room(receipts: int, ours: float, recorded: float) -> Row:
    return Row(
        what=f"room of a receipt among {receipts:,}",
        ours=Figure(ours, Unit.BYTES),
        against="signed bytes, signatures, salt and body",
        theirs=Figure(recorded, Unit.BYTES),
    )


def _sampled_bytes(scribe: Scribe, total: int) -> Iterator[int]:
    """Yield what receipts weigh, some from everywhere in the ledger."""
    for first in range(1, total, max(total // _SAMPLES, _SAMPLED)):
        yield from receipt_bytes(scribe.store, ReceiptQuery(first=first, last=first + _SAMPLED - 1))
