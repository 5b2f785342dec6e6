"""What one act costs: wall time, processor time, and the counts that no noise changes."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from nacl.signing import SigningKey

from bench.gauge import Gauges
from bench.limits import RawFile
from bench.measure import Act, time_act
from bench.tally import Counts

_RAW_BYTES: Final = 2_000  # about one receipt with its contents
_KEY: Final = SigningKey(bytes(32))
_DOCUMENT: Final = {"words": ["a baton that is passed on"] * 20, "numbers": list(range(50))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The figures of one act. What cannot be measured of it is None."""

    act: str
    wall: float  # seconds, the median
    cpu: float  # seconds of all threads of the process that does it, and of children that it waits for
    raw: float  # seconds of one raw append+fsync, in the same turns
    yardstick: float  # processor seconds of a piece of work that is always the same, in the same turns
    beside: float | None = None  # processor seconds of a server or a recorder that does a part of it
    calls: float | None = None  # of Python functions
    statements: float | None = None
    steps: float | None = None  # of SQLite's virtual machine
    trips: float | None = None  # to PostgreSQL and back
    pages: float | None = None  # frames of SQLite's write-ahead log
    written: float | None = None  # bytes

    def without_sqlite(self) -> "Cost":
        """Return the same of an act that does not write to SQLite, or not in the process that was counted."""
        return replace(self, steps=None, pages=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """How often an act is done: so many turns of so many acts, after one that warms up."""

    turns: int
    acts: int
    each: int = 1  # what one act counts for


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was measured in turns."""

    wall: float
    cpu: float
    beside: float | None
    written: float | None
    raw: float
    yardstick: float


def spend(act: Act, gauges: Gauges, turns: Turns, scratch: Path) -> Spent:
    """Do an act in turns with a raw append+fsync and the yardstick, and return what each took.

    A turn has one reading of processor time, because a single act may take less than the clock can tell. What others do
    to the caches only makes turns dearer, even in processor time: the figure is that of a turn among the cheapest
    quarter, and the yardstick's too.
    """
    raw = RawFile(scratch / "raw", _RAW_BYTES)
    number = turns.acts * turns.each
    walls: list[float] = []
    raws: list[float] = []
    readings: dict[str, list[float]] = {"cpu": [], "beside": [], "written": [], "yardstick": []}
    for turn in range(turns.turns + 1):
        syncs = time_act(raw.append, turns.acts)
        yard = _time_yardstick()
        before = _read(gauges)
        taken = time_act(act, turns.acts)
        after = _read(gauges)
        if turn == 0:
            continue
        walls += [seconds / turns.each for seconds in taken]
        raws += syncs
        readings["yardstick"].append(yard)
        for name, value in after.items():
            readings[name].append((value - before[name]) / number)
    figures = {name: _cheap(values) for name, values in readings.items()}
    if readings["written"]:
        # A log is folded back now and then, and one turn pays for all: only the mean tells what an act costs.
        figures["written"] = sum(readings["written"]) / len(readings["written"])
    return Spent(
        wall=median(walls),
        cpu=figures["cpu"] or 0.0,
        beside=figures["beside"],
        written=figures["written"],
        raw=median(raws),
        yardstick=figures["yardstick"] or 0.0,
    )


def cost_of(act: str, spent: Spent, counts: Counts | None = None, number: int = 1, trips: int | None = None) -> Cost:
    """Return the cost of one act, from what was measured and what was counted over a number of them."""
    return Cost(
        act=act,
        wall=spent.wall,
        cpu=spent.cpu,
        raw=spent.raw,
        yardstick=spent.yardstick,
        beside=spent.beside,
        calls=None if counts is None else counts.calls / number,
        statements=None if counts is None else counts.statements / number,
        steps=None if counts is None else counts.steps / number,
        pages=None if counts is None else counts.pages / number,
        trips=None if trips is None else trips / number,
        written=spent.written,
    )


def repeat(act: Callable[[], object], times: int) -> None:
    """Do something so many times."""
    for _ in range(times):
        act()


def _cheap(values: list[float]) -> float | None:
    return sorted(values)[len(values) // 4] if values else None


def _read(gauges: Gauges) -> dict[str, float]:
    readings = {"cpu": gauges.cpu, "beside": gauges.beside, "written": gauges.written}
    return {name: read() for name, read in readings.items() if read is not None}


def _time_yardstick() -> float:
    """Return the processor time of a little of what our acts are made of: Python, JSON, a digest and a signature."""
    began = time.process_time()
    for number in range(20):
        text = json.dumps(_DOCUMENT, sort_keys=True)
        words = {f"{number}-{index}": part for index, part in enumerate(text.split(","))}
        _KEY.sign(hashlib.sha256("".join(sorted(words.values())).encode()).digest())
    return time.process_time() - began
