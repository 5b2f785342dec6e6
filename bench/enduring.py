"""Whether the hundredth attempt, the thousandth sibling and the ten-thousandth handoff of a worker cost more.

Counts and memory, no times: other programs on the machine change nothing in them.
"""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from batonpass.dispatch.worker import Worker
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from bench.effort import Effort
from bench.table import Figure, Row, Unit, at_most
from bench.tally import Counts, Tally

_FLAT: Final = at_most(1.1)
_LONG: Final = timedelta(minutes=10)
_ATTEMPTS: Final = (2, 50, 150)
_SIBLINGS: Final = (250, 2000)  # until then each child is told of more results of others: at most 200 travel along
_AVERAGED: Final = 16  # handoffs in a row: now and then one of them settles the tail of the ledger
_WORKED: Final = (2_000, 20_000)


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure what a retry, a sibling and a worker cost early and late."""
    worked = _WORKED if effort == Effort.full() else tuple(number // 20 for number in _WORKED)
    return [*_retries(scratch / "retries"), *_siblings(scratch / "siblings"), _memory(scratch / "memory", worked)]


def _open(home: Path) -> Relay:
    home.mkdir(exist_ok=True)
    # Without an end: here a handoff is tried as often as we want to see.
    relay = Relay.open(f"sqlite:///{home / 'ledger.db'}", home=home, policy=HandoffPolicy(max_attempts=1_000_000))
    relay.register("editor", lambda run: run.task)
    return relay


def _retries(home: Path) -> Iterator[Row]:
    with Tally() as tally, _open(home) as relay:
        handoff = relay.start("Endure", by="user:ana").hand_off("editor", "Fail", carrier="worker")
        found: dict[int, Counts] = {}
        for number in range(1, _ATTEMPTS[-1] + 1):
            counted = _counted(tally, lambda: _fail(relay, handoff))
            if number in _ATTEMPTS:
                found[number] = counted
    yield from _compared("attempt", found)


def _fail(relay: Relay, handoff: LiveHandoff) -> None:
    lease = relay.claim(holder="bench", lease_for=_LONG)
    assert lease is not None, "it waits"  # noqa: S101 - a benchmark of nothing is none
    handoff.accept(lease=lease).fail(RuntimeError("as always"))
    handoff.retry(by="user:ana")


def _siblings(home: Path) -> Iterator[Row]:
    with Tally() as tally, _open(home) as relay:
        lead = relay.start("Endure", by="user:ana")

        def hand_off(number: int) -> None:
            with lead.hand_off("editor", f"Part {number}") as child:
                child.report("done")

        found: dict[int, Counts] = {}
        number = 0
        for mark in _SIBLINGS:
            while number < mark:
                number += 1
                hand_off(number)
            found[mark] = _counted(tally, partial(_each, hand_off, range(10**6 + mark, 10**6 + mark + _AVERAGED)))
    yield from _compared("sibling", found, of=_AVERAGED)


def _each(act: Callable[[int], None], numbers: Iterable[int]) -> None:
    for number in numbers:
        act(number)


def _memory(home: Path, worked: Sequence[int]) -> Row:
    with _open(home) as relay:
        lead = relay.start("Endure", by="user:ana")
        worker = Worker(relay)
        number, found = 0, []
        for mark in worked:
            while number < mark:
                number += 1
                lead.hand_off("editor", f"Part {number}", carrier="worker")
                worker.work_one()
                # The lead would rightly remember each of them; this is about the worker.
                lead._holding.handed_off.clear()  # noqa: SLF001 - as above
                lead._asked_for.clear()  # noqa: SLF001 - as above
            gc.collect()
            found.append(_resident())
    early, late = found
    return Row(
        what=f"memory of a process after {worked[1]:,} handoffs of its worker",
        ours=Figure(late, Unit.BYTES),
        against=f"after {worked[0]:,}",
        theirs=Figure(early, Unit.BYTES),
        goal=_FLAT,
    )


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _counted(tally: Tally, act: Callable[[], object]) -> Counts:
    before = tally.read()
    act()
    return tally.read().since(before)


def _compared(what: str, found: dict[int, Counts], *, of: int = 1) -> Iterator[Row]:
    first, *later = found
    for mark in later:
        for name in ("calls", "statements"):
            yield Row(
                what=f"{what} {mark:,}, {'Python calls' if name == 'calls' else 'SQL statements'}",
                ours=Figure(getattr(found[mark], name) / of, Unit.COUNT),
                against=f"{what} {first}",
                theirs=Figure(getattr(found[first], name) / of, Unit.COUNT),
                goal=_FLAT,
            )
