"""The right to write, for one process at a time, in turn. SQLite's own lock protects; this one only orders."""

import fcntl
import os
from pathlib import Path
from typing import Final

_TURN: Final = 0  # bytes of the lock file
_WRITER: Final = 1


class FairLock:
    """A lock between processes that is given in the order in which it is asked for.

    With one lock a process that has just released it takes it again before a waiter wakes. So a process locks the byte
    `turn`, then the byte `writer`, then frees `turn`: the next in line holds `turn` already, and it queues behind.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def __enter__(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _TURN)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _WRITER)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _TURN)

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 2, _TURN)  # both: an interrupt may have left the first one taken

    def close(self) -> None:
        """Close the lock file."""
        os.close(self._file)
