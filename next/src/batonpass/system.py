"""Whatever is not determined comes from one `System`: time, chance, locks, waiting, the process.

The recorder is given one and reaches for nothing else. So a simulation can put a clock, locks and processes of its own
under the core and play every schedule from one seed, and a test can hold the clock still.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol


class Lock(Protocol):
    """What the core needs of a lock."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as `threading` has it
        """Take it, or say that it was not free in time."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...

    def locked(self) -> bool:
        """Return whether it is taken."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class System(Protocol):
    """Time, chance, locks, waiting and the process."""

    def now(self) -> int:
        """Return microseconds since 1970, UTC."""
        ...

    def entropy(self, size: int) -> bytes:
        """Return bytes that nobody can guess."""
        ...

    def lock(self) -> Lock:
        """Return a new lock between threads of this process."""
        ...

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Return whether it became true in time, in seconds."""
        ...

    def pid(self) -> int:
        """Return the id of this process."""
        ...


Turn = AbstractContextManager[None]  # the right to write, between processes


class RealSystem:
    """The system that this process runs on."""

    _LOOK_SECONDS = 0.02

    def now(self) -> int:
        """Return microseconds since 1970, UTC."""
        return time.time_ns() // 1000

    def entropy(self, size: int) -> bytes:
        """Return bytes that nobody can guess."""
        return os.urandom(size)

    def lock(self) -> Lock:
        """Return a new lock between threads of this process."""
        return threading.Lock()

    def pid(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Return whether it became true in time, in seconds."""
        end = time.monotonic() + timeout
        while not until():
            if time.monotonic() >= end:
                return False
            time.sleep(self._LOOK_SECONDS)
        return True
