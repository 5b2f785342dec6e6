"""Where processor time goes: the stack of the main thread, looked at whenever a little more of it was used."""

import signal
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, Self

OTHER_THREADS: Final = "other threads"

# The kernel looks at such timers at its ticks, of which it has 100 to 1,000 in a second: asking for more is no use.
_EVERY: Final = 0.001
_HALF: Final = 0.5


class Place(NamedTuple):
    """A function on a stack, and the line from which its caller called it."""

    function: str
    called_at: int


Stack = tuple[Place, ...]


class Sampler:
    """Counts stacks of the main thread while it is entered, which may be many times.

    Of two other ways neither tells the truth. A thread that looks at `sys._current_frames` runs when the main thread
    lets go of the interpreter, so it sees the places where that happens: SQLite and the disk. `sys.setprofile` sees
    every call, and makes it several times as dear: what calls many small functions looks worse than it is. Here the
    kernel counts processor time, and the main thread itself looks, wherever it is. A function in C, such as a signature
    or a statement of SQLite, is counted for the Python function that called it.
    """

    def __init__(self, *, root: str) -> None:
        self._root = root  # the function that is measured: what called it is left out
        self._stacks: Counter[Stack] = Counter()
        self._used = self._used_by_all = self._began = 0.0
        self.seconds = 0.0  # processor time of the whole process while it was entered

    def __enter__(self) -> Self:
        # Or system calls that were interrupted would return, and not all of C does them again.
        signal.signal(signal.SIGPROF, self._look)
        signal.siginterrupt(signal.SIGPROF, False)  # noqa: FBT003 - its signature
        self._used, self._used_by_all = time.thread_time(), time.process_time()
        self._began = self._used_by_all
        signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.seconds += time.process_time() - self._began

    @property
    def stacks(self) -> Counter[Stack]:
        """Return how often each stack was seen, from the measured function inwards."""
        return self._stacks

    def _look(self, _: int, frame: FrameType | None) -> None:
        used, used_by_all = time.thread_time(), time.process_time()
        own = (used - self._used) >= _HALF * (used_by_all - self._used_by_all)
        self._used, self._used_by_all = used, used_by_all
        # The timer counts all threads, and only this one is looked at: what another one used is not this one's.
        self._stacks[self._read(frame) if own else (Place(OTHER_THREADS, 0),)] += 1

    def _read(self, frame: FrameType | None) -> Stack:
        places: list[Place] = []
        while frame is not None:
            name = name_of(frame)
            if name == self._root:
                break
            places.append(Place(name, frame.f_back.f_lineno if frame.f_back is not None else 0))
            frame = frame.f_back
        return tuple(reversed(places))


def name_of(frame: FrameType) -> str:
    """Return a function as a reader looks for it: its module without the name of the package, and its name."""
    module = str(frame.f_globals.get("__name__", "?"))
    if module == "__main__":
        module = Path(frame.f_code.co_filename).stem
    return f"{module.removeprefix('batonpass.')}:{frame.f_code.co_qualname.replace('.<locals>', '')}"
