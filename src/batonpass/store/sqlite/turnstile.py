"""The turnstile: one process writes at a time, processes take turns, and a waiting process can name the holder.

SQLite's own busy handler sleeps and tries again, so an unlucky process can lose every time. With a single lock file,
the process that just released it can take it again before a waiter wakes. So there are two locks. A process takes
`turn`, then `writer`, then gives `turn` back. The next in line already holds `turn`, so a process that just wrote
queues behind it. The kernel frees both locks when their process dies.
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
    """The right to write, for one process at a time. Only one thread at a time may use it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "writer.lock"
        self._turn = _open(directory / "turn.lock")
        self._writer = _open(self._path)
        self._descriptors: tuple[int, ...] = (self._turn, self._writer)
        self._waiting: _Waiter | None = None
        self._name = b"%*d\n" % (_PID_DIGITS, os.getpid())
        _forget_in_forks(self)

    def enter(self, deadline: float) -> None:
        """Take the right to write. Raises `StoreBusyError`, which names the holder, at the deadline (monotonic)."""
        # Take `turn` even if nobody writes. A process that tried `writer` alone could take it again before the next in
        # line wakes, and a busy process would keep all others waiting.
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
        """Close the lock files. Closing twice is harmless."""
        # Never twice: a closed descriptor's number may belong to another file by now.
        descriptors, self._descriptors = self._descriptors, ()
        for descriptor in descriptors:
            os.close(descriptor)

    def forget(self) -> None:
        """Close the lock files in a forked process, where no thread of ours waits in line."""
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
        """Stand in line until the deadline. Raises `StoreBusyError`.

        flock has no timeout, so a helper thread blocks in it while we wait for the thread.
        """
        if self._waiting is None or not self._waiting.rejoin():
            self._waiting = _Waiter(self._turn, self._writer)
        if not self._waiting.wait(deadline):
            raise StoreBusyError(self.explain())
        self._waiting = None

    def explain(self) -> str:
        """Return a sentence that names the process with the right to write, and says what to do."""
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
    """A thread that waits in line.

    There is never more than one, because two would share one lock without knowing it.
    """

    def __init__(self, turn: int, writer: int) -> None:
        # Descriptors of its own for the same locks: the store may be closed while this thread still stands in line, and
        # the numbers of the closed descriptors may belong to other files by the time the lock comes.
        self._turn = os.dup(turn)
        self._writer = os.dup(writer)
        self._open = True
        self._mutex = threading.Lock()
        self._wanted = True
        self._gone = False
        self._entered = threading.Event()
        threading.Thread(target=self._stand, name="batonpass-turnstile", daemon=True).start()

    def wait(self, deadline: float) -> bool:
        """Return whether the lock is ours.

        If it is not by the deadline, the thread gives it back as soon as it comes.
        """
        if self._entered.wait(max(0.0, deadline - time.monotonic())):
            return True
        with self._mutex:
            self._wanted = self._entered.is_set()
            return self._wanted

    def rejoin(self) -> bool:
        """Take the old place in line again; return False if the lock has come and was given back."""
        with self._mutex:
            self._wanted = not self._gone
            return self._wanted

    def close(self) -> None:
        """Close its descriptors, once."""
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
            # The caller that entered holds the lock through the turnstile's descriptors. If those are closed, this
            # frees the lock.
            self.close()


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreReadOnlyError(f"cannot write {path}: {error.strerror}; the ledger can be read only") from None


def _forget_in_forks(turnstile: Turnstile) -> None:
    # A forked child shares the lock itself. If the child kept it open, it would stay locked after the parent was
    # killed.
    reference = weakref.ref(turnstile)

    def forget() -> None:
        if (alive := reference()) is not None:
            alive.forget()

    os.register_at_fork(after_in_child=forget)
