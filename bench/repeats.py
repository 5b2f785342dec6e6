"""Whether a retry costs more after many retries, and a handoff more beside many siblings: processor time, and calls."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from batonpass.relay import Relay
from bench import batons
from bench.cost import repeat
from bench.effort import Effort
from bench.gauge import Reading, own_cpu
from bench.measure import Act
from bench.table import Figure, Row, Unit, at_most
from bench.tally import Tally

_SAMPLES: Final = 10
_FLAT: Final = at_most(1.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Something that is done again and again, on a thing that is made anew for each first time."""

    name: str
    make: Callable[[Relay], Act]
    times: int  # done before it is measured again
    before: int = 0  # done before it is measured for the first time
    once: str
    often: str


def retries(relay: Relay) -> Act:
    """Return what lets an attempt at one handoff fail, and tries again."""
    handoff = batons.offer(batons.start_lead(relay))

    def again() -> None:
        handoff.accept().fail(ValueError("it does not add up"))
        handoff.retry(by="user:ana")

    return again


def open_siblings(relay: Relay) -> Act:
    """Return a handoff from one run whose receiver goes on working, so that all of them are open."""
    lead = batons.start_lead(relay)
    return lambda: batons.offer(lead).accept()


REPEATED: Final = (
    Repeated(
        name="retries",
        make=retries,
        times=150,
        before=2,  # the first has no attempt to look back at, so it is less work
        once="the third retry",
        often="a failed attempt and its retry, after 150",
    ),
    Repeated(
        name="siblings",
        make=batons.hands_off,
        times=2_000,
        once="the first handoff of a run",
        often="handoff after 2,000 siblings",
    ),
    Repeated(
        name="open-siblings",
        make=open_siblings,
        times=2_000,
        once="the first of a run",
        often="handoff beside 2,000 siblings that work",
    ),
)


def measure(scratch: Path, _: Effort) -> Sequence[Row]:
    """Measure the first time on fresh things against what comes after many times on one."""
    return [row for repeated in REPEATED for row in _rows(repeated, scratch)]


def _rows(repeated: Repeated, scratch: Path) -> Iterator[Row]:
    with batons.open_relay(scratch / repeated.name) as relay:
        yield _row(repeated, relay, own_cpu, Unit.SECONDS)
    with Tally() as tally, batons.open_relay(scratch / f"{repeated.name}-counted") as relay:
        yield _row(repeated, relay, lambda: tally.read().calls, Unit.COUNT)


def _row(repeated: Repeated, relay: Relay, read: Reading, unit: Unit) -> Row:
    _spent(repeated.make(relay), read)  # the first of all makes keys and fills caches
    first = median(_spent(_begun(repeated, relay), read) for _ in range(_SAMPLES))
    act = repeated.make(relay)
    repeat(act, repeated.times)
    many = median(_spent(act, read) for _ in range(_SAMPLES))
    return Row(
        what=f"{repeated.often}, {'processor time' if unit is Unit.SECONDS else 'Python calls'}",
        ours=Figure(many, unit),
        against=repeated.once,
        theirs=Figure(first, unit),
        goal=_FLAT,
    )


def _begun(repeated: Repeated, relay: Relay) -> Act:
    act = repeated.make(relay)
    repeat(act, repeated.before)
    return act


def _spent(act: Act, read: Reading) -> float:
    before = read()
    act()
    return read() - before
