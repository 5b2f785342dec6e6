"""Timing contenders in turns, A B C B C A …, so that whatever else the machine does falls upon all of them."""

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Protocol

Act = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Samples:
    """What was measured again and again: seconds, or acts in a second."""

    values: tuple[float, ...]

    @property
    def p50(self) -> float:
        """Return the median."""
        return median(self.values)

    @property
    def p95(self) -> float:
        """Return what all but one in twenty stay below."""
        return sorted(self.values)[min(int(len(self.values) * 0.95), len(self.values) - 1)]

    @property
    def p99(self) -> float:
        """Return what all but one in a hundred stay below."""
        return sorted(self.values)[min(int(len(self.values) * 0.99), len(self.values) - 1)]

    def summary(self) -> dict[str, float]:
        """Return what is kept of the samples."""
        return {
            "samples": len(self.values),
            "min": min(self.values),
            "p50": self.p50,
            "p99": self.p99,
            "max": max(self.values),
        }


class Elsewhere(Protocol):
    """Somebody in a process of their own, who is asked to measure the same thing there."""

    def time(self, acts: int) -> list[float]:
        """Return how many seconds each of so many acts took."""

    def race(self, threads: int, seconds: float) -> float:
        """Return how many acts in a second so many threads did together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Something that many threads do at once: each asks for an act of its own."""

    make: Callable[[int], Act]
    threads: int
    each: int = 1  # what one act counts for

    def enter(self) -> Callable[[float], float]:
        """Return what races for so many seconds, and returns how many acts in a second were done."""
        acts = [self.make(number) for number in range(self.threads)]
        return lambda seconds: race(acts, seconds) * self.each


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The same in a process elsewhere."""

    peer: Elsewhere
    threads: int

    def enter(self) -> Callable[[float], float]:
        """Return what races for so many seconds, and returns how many acts in a second were done."""
        return lambda seconds: self.peer.race(self.threads, seconds)


def time_in_turns(contenders: Mapping[str, Act | Elsewhere], *, turns: int, acts: int) -> dict[str, Samples]:
    """Return how long single acts took. The first turn warms up and does not count."""
    names = list(contenders)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns + 1):
        for name in _shuffled(names, turn):
            contender = contenders[name]
            seconds = time_act(contender, acts) if callable(contender) else contender.time(acts)
            if turn > 0:
                taken[name] += seconds
    return {name: Samples(tuple(seconds)) for name, seconds in taken.items()}


def race_in_turns(contenders: Mapping[str, Contender | Visitor], *, turns: int, seconds: float) -> dict[str, Samples]:
    """Return how many acts in a second were done. The first turn warms up and does not count."""
    names = list(contenders)
    racing = {name: entrant.enter() for name, entrant in contenders.items()}
    rates: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns + 1):
        for name in _shuffled(names, turn):
            rate = racing[name](seconds)
            if turn > 0:
                rates[name].append(rate)
    return {name: Samples(tuple(values)) for name, values in rates.items()}


def cpu_of(act: Act, times: int) -> float:
    """Return the processor seconds of an act, by the median of several."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        act()
        taken.append(time.process_time() - began)
    return median(taken)


def time_act(act: Act, times: int) -> list[float]:
    """Return how many seconds each of so many acts took."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return taken


def race(acts: Sequence[Act], seconds: float) -> float:
    """Return how many acts in a second were done by as many threads as there are acts."""
    ready = threading.Barrier(len(acts) + 1)

    def run(act: Act) -> int:
        done = 0
        ready.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            act()
            done += 1
        return done

    with ThreadPoolExecutor(len(acts)) as threads:
        running = [threads.submit(run, act) for act in acts]
        ready.wait()
        began = time.perf_counter()
        done = sum(future.result() for future in running)
        return done / (time.perf_counter() - began)


def _shuffled(names: Sequence[str], turn: int) -> list[str]:
    # Whoever comes next finds the caches and the disk as the one before left them. Rotating the order is not enough: it
    # changes who comes first, and leaves everybody behind the same neighbour. Our handoff always came after a peer that
    # writes in the background, and took a fifth longer than the act that came after it and does more. The seed makes
    # two runs comparable.
    return random.Random(turn).sample(names, len(names))
