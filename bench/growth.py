"""Whether an append or a handoff costs more in a larger ledger, and how much room a receipt takes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.testing.builders import Scribe
from bench import batons
from bench.cost import repeat
from bench.effort import Effort
from bench.gauge import Metered, own_cpu
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
from bench.measure import Act, time_in_turns
from bench.table import Figure, Goal, Row, Unit, at_most, p50
from bench.tally import Counts, Tally

_RECEIPTS: Final = 3  # of a handoff
_SAMPLES: Final = 40
_SAMPLED: Final = 50  # receipts in a row, of each sample
_WARM: Final = 20
_FLAT: Final = at_most(1.2)
_SMALL: Final = "the same in a ledger that stays small"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """An act whose cost must not depend on how much there is."""

    name: str
    make: Callable[[Relay, Path], Act]  # of a relay, and the folder with its keys
    acts: int  # over which counts are averaged: the tail of the ledger is settled several times in them


GROWN: Final = (
    Grown(name="append", make=lambda relay, home: requests(scribe_of(relay, home)), acts=512),
    Grown(name="handoff", make=lambda relay, _: batons.hands_off(relay), acts=256),
)
_COUNTED: Final[Mapping[str, Callable[[Counts], int]]] = {
    "Python calls": lambda counts: counts.calls,
    "SQL statements": lambda counts: counts.statements,
    "SQLite steps": lambda counts: counts.steps,
    "pages": lambda counts: counts.pages,
}


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure acts in a ledger that grows against the same in a ledger that stays small, at the same moment."""
    rows: list[Row] = []
    growing, small = scratch / "growing", scratch / "small"
    with batons.open_relay(small) as relay:
        scribe = scribe_of(relay, small)
        use_up_log(scribe)
        raw = RawFile(scratch / "raw", request_bytes(scribe))
    for receipts in effort.grown:
        with batons.open_relay(growing) as relay:
            scribe = scribe_of(relay, growing)
            use_up_log(scribe)
            _fill_up(scribe, receipts, effort)
        # The first mark compares two ledgers of about one size: how far it is from 1 is how far others can be trusted.
        goal = None if receipts == effort.grown[0] else _FLAT
        for grown in GROWN:
            rows += _timed(grown, receipts, (growing, small), raw, effort=effort, goal=goal)
            rows += _counted(grown, receipts, (growing, small), goal)
    with batons.open_relay(growing) as relay:
        scribe = scribe_of(relay, growing)
        total = count_receipts(scribe)
        recorded = mean(_sampled_bytes(scribe, total))
    bytes_each = sum(path.stat().st_size for path in growing.glob("ledger.db*")) / total
    return [*rows, _room(total, bytes_each, recorded)]


def _fill_up(scribe: Scribe, receipts: int, effort: Effort) -> None:
    """Add handoffs until there are as many as asked for, then tool calls."""
    begun = count_receipts(scribe)
    handoffs = min(receipts, effort.handed * _RECEIPTS) - begun
    if handoffs > 0:
        fill_with_handoffs(scribe, handoffs // _RECEIPTS)
    if (missing := receipts - count_receipts(scribe)) > 0:
        fill(scribe, missing)


def _timed(
    grown: Grown, receipts: int, homes: tuple[Path, Path], raw: RawFile, *, effort: Effort, goal: Goal | None
) -> Iterator[Row]:
    with ExitStack() as stack:
        relays = [stack.enter_context(batons.open_relay(home)) for home in homes]
        growing, small = (Metered(grown.make(relay, home), own_cpu) for relay, home in zip(relays, homes, strict=True))
        contenders: dict[str, Act] = {"growing": growing, "small": small, "raw": raw.append}
        taken = time_in_turns(contenders, turns=effort.turns // 2, acts=effort.acts)
    what = f"{grown.name} at {receipts:,} receipts"
    ours = p50(taken["growing"])
    yield Row(what=f"{what}, p50", ours=ours, against="raw append+fsync", theirs=p50(taken["raw"]))
    yield Row(what=f"{what}, p50", ours=ours, against=_SMALL, theirs=p50(taken["small"]), goal=goal)
    yield Row(
        what=f"{what}, processor time",
        ours=Figure(growing.cheap(), Unit.SECONDS),
        against=_SMALL,
        theirs=Figure(small.cheap(), Unit.SECONDS),
        goal=goal,
    )


def _counted(grown: Grown, receipts: int, homes: tuple[Path, Path], goal: Goal | None) -> Iterator[Row]:
    ours, theirs = (_count(grown, home) for home in homes)
    for name, read in _COUNTED.items():
        yield Row(
            what=f"{grown.name} at {receipts:,} receipts, {name}",
            ours=Figure(read(ours) / grown.acts, Unit.COUNT),
            against=_SMALL,
            theirs=Figure(read(theirs) / grown.acts, Unit.COUNT),
            goal=goal,
        )


def _count(grown: Grown, home: Path) -> Counts:
    with Tally() as tally, batons.open_relay(home) as relay:
        act = grown.make(relay, home)
        repeat(act, _WARM)
        before = tally.read()
        repeat(act, grown.acts)
        return tally.read().since(before)


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
