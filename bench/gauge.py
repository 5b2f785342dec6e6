"""Reading what processes have used so far: processor time, and bytes that go to the disk."""

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Reading = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What is read before and after an act."""

    cpu: Reading  # seconds, of all threads
    beside: Reading | None = None  # of a process that does a part of it: a server, a recorder
    written: Reading | None = None  # bytes


class Metered:
    """An act, and what each time it was done took by a reading."""

    def __init__(self, act: Callable[[], object], read: Reading) -> None:
        self._act = act
        self._read = read
        self._taken: list[float] = []

    def __call__(self) -> None:
        """Do it."""
        before = self._read()
        self._act()
        self._taken.append(self._read() - before)

    def cheap(self) -> float:
        """Return what one of the cheapest quarter took: what others do to the caches only makes it dearer."""
        return sorted(self._taken)[len(self._taken) // 4]


def own_cpu() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return time.process_time() + children_cpu()


def children_cpu() -> float:
    """Return the processor time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of(process: int) -> float:
    """Return the processor time of another process, by its clock: /proc counts in hundredths of a second."""
    return time.clock_gettime(~process << 3 | 2)  # as clock_getcpuclockid(3) makes it


def cpu_of_tree(process: int) -> float:
    """Return the processor time of a process and all its children that run."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    return cpu_of(process) + sum(_if_there(int(child)) for child in children)


def written_by(process: int | None = None) -> float:
    """Return the bytes that a process has written: to files, what folds a log back included, and the little to pipes.

    Not what the kernel calls write_bytes: it counts the whole of a large folio of which one page was written.
    """
    lines = Path(f"/proc/{process or os.getpid()}/io").read_text(encoding="ascii").splitlines()
    return float(next(line.partition(": ")[2] for line in lines if line.startswith("wchar")))


def _if_there(process: int) -> float:
    try:
        return cpu_of(process)
    except OSError:
        return 0.0
