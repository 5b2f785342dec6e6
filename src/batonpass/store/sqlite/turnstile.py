"""One writer at a time among all processes, each in turn, and the holder's pid for whoever wonders.

SQLite's own busy handler sleeps and tries again, so a process can lose every time; a single lock file lets the one who
just released it take it again before anybody wakes. Here a process takes `turn`, then `writer`, then gives `turn` back:
the next in line already holds `turn`, so whoever just wrote stands behind it. The kernel frees both when their
process dies.
"""

import contextlib
import fcntl
import os
import threading
import time
import weakref
from pathlib import Path

from batonpass.errors import StoreBusyError, StoreFullError, StoreReadOnlyError

_PID_DIGITS = 20


class Turnstile:
    """The right to write, for one process at a time. Used by one thread at a time."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "writer.lock"
        self._turn = _open(directory / "turn.lock")
        self._writer = _open(self._path)
        self._descriptors: tuple[int, ...] = (self._turn, self._writer)
        self._waiting: _Waiter | None = None
        self._name = b"%*d\n" % (_PID_DIGITS, os.getpid())
        _forget_in_forks(self)

    def enter(self, deadline: float) -> None:
        """Take the right to write. Raises `StoreBusyError` at the deadline (monotonic), naming the holder."""
        # The turn first, also where nobody else writes: to try `writer` alone would let whoever has just written take
        # it again before the next in line wakes, and a busy process would keep all others waiting.
        if self._waiting is not None or not self._enter_at_once():
            self._enter_in_turn(deadline)
        try:
            os.pwrite(self._writer, self._name, 0)
        except OSError as error:
            self.leave()
            raise StoreFullError(f"cannot write {self._path}: {error.strerror}; free some disk") from None

    def leave(self) -> None:
        """Give the right to write to the next in line."""
        fcntl.flock(self._writer, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the lock files."""
        # Once only: a number that was given back may be somebody else's file by now.
        descriptors, self._descriptors = self._descriptors, ()
        for descriptor in descriptors:
            os.close(descriptor)

    def forget(self) -> None:
        """Let go of the lock files in a process that was forked, where nobody stands in line for us."""
        self.close()
        if self._waiting is not None:
            self._waiting.close()

    def _enter_at_once(self) -> bool:
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
        return True

    def _enter_in_turn(self, deadline: float) -> None:
        """Stand in line. flock knows no time limit, so a helper thread stands there and we wait for it."""
        if self._waiting is None or not self._waiting.rejoin():
            self._waiting = _Waiter(self._turn, self._writer)
        if not self._waiting.wait(deadline):
            raise StoreBusyError(self.explain())
        self._waiting = None

    def explain(self) -> str:
        """Say which process has the right to write, and what to do about it."""
        holder = self._path.read_text(encoding="ascii", errors="replace").strip()
        command = ""
        with contextlib.suppress(OSError, ValueError):
            words = Path(f"/proc/{int(holder)}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            command = f" ({' '.join(words.split())[:80]})"
        return (
            f"process {holder or 'unknown'}{command} has been writing to the ledger for as long as we wait; "
            "look whether it is stopped or stuck, then try again"
        )


class _Waiter:
    """A thread that stands in line. There is never more than one: two would share one lock without knowing it."""

    def __init__(self, turn: int, writer: int) -> None:
        # Numbers of its own for the same locks: a store may be closed while this still stands in line, and the
        # numbers that it gave back may be other files by the time the lock comes.
        self._turn = os.dup(turn)
        self._writer = os.dup(writer)
        self._open = True
        self._mutex = threading.Lock()
        self._wanted = True
        self._gone = False
        self._entered = threading.Event()
        threading.Thread(target=self._stand, name="batonpass-turnstile", daemon=True).start()

    def wait(self, deadline: float) -> bool:
        """Return whether the lock is ours; if not by the deadline, it is given back when it comes."""
        if self._entered.wait(max(0.0, deadline - time.monotonic())):
            return True
        with self._mutex:
            self._wanted = self._entered.is_set()
            return self._wanted

    def rejoin(self) -> bool:
        """Take the old place in line again; return False if the lock came and went meanwhile."""
        with self._mutex:
            self._wanted = not self._gone
            return self._wanted

    def close(self) -> None:
        """Give the numbers back, once."""
        if self._open:
            self._open = False
            os.close(self._turn)
            os.close(self._writer)

    def _stand(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        fcntl.flock(self._writer, fcntl.LOCK_EX)
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        with self._mutex:
            if self._wanted:
                self._entered.set()
            else:
                fcntl.flock(self._writer, fcntl.LOCK_UN)
                self._gone = True
            # Whoever entered holds the lock by the numbers of the turnstile; if those are closed, this frees it.
            self.close()


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreReadOnlyError(f"cannot write {path}: {error.strerror}; the ledger can be read only") from None


def _forget_in_forks(turnstile: Turnstile) -> None:
    # A forked child shares the lock itself, not a copy: left open there, it would outlive a parent that is killed.
    reference = weakref.ref(turnstile)

    def forget() -> None:
        if (alive := reference()) is not None:
            alive.forget()

    os.register_at_fork(after_in_child=forget)
