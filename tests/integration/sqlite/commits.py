"""A group commit in the hands of a test: a gate that opens when told, commands that leave marks, interrupts."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Self

import apsw

from batonpass.errors import StoreBusyError
from batonpass.store.sqlite.group_commit import GroupCommit

SOON: Final = 10.0  # how long a test waits for what must happen; nothing here takes that long


class Gate:
    """The right to write, which nobody else wants; closed, it keeps whoever comes until it is opened."""

    def __init__(self) -> None:
        self.entered = 0
        self.left = 0
        self.waiting = threading.Event()
        self.open = threading.Event()
        self.open.set()

    def enter(self, deadline: float) -> None:
        """Wait until the gate is open. Raises `StoreBusyError` at the deadline."""
        self.waiting.set()
        if not self.open.wait(max(0.0, deadline - time.monotonic())):
            raise StoreBusyError(self.explain())
        self.entered += 1

    def explain(self) -> str:
        """Say who is writing."""
        return "process 4711 has been writing to the ledger for as long as we wait"

    def leave(self) -> None:
        """Count who leaves."""
        self.left += 1


class Levels:
    """A watch that notes, inside each transaction, how its commit treats the disk: 2 waits for it, 1 does not."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def begin(self, connection: apsw.Connection) -> None:
        """Note the level of the transaction that begins."""
        self.seen.append(connection.pragma("synchronous"))

    def committed(self, connection: apsw.Connection) -> None:
        """Do nothing."""


class Desk:
    """A group commit on a database in memory, and threads that bring it commands."""

    def __init__(self, *, wait_for: float = SOON) -> None:
        self.gate = Gate()
        self.levels = Levels()
        self.connection = apsw.Connection(":memory:")
        self.connection.execute("CREATE TABLE marks (name TEXT)")
        self.commits = GroupCommit(self.connection, self.gate, wait_for, self.levels)
        self.outcomes: dict[str, BaseException | None] = {}
        self._threads: list[threading.Thread] = []

    def mark(self, name: str, *, then: Callable[[], object] | None = None) -> Callable[[apsw.Connection], None]:
        """Return a command that leaves a mark, and then does something more."""

        def apply(connection: apsw.Connection) -> None:
            connection.execute("INSERT INTO marks VALUES (?)", (name,))
            if then is not None:
                then()

        return apply

    def marks(self) -> list[str]:
        """Return the marks that were committed, sorted."""
        return sorted(row[0] for row in self.connection.execute("SELECT name FROM marks"))

    def bring(
        self, name: str, apply: Callable[[apsw.Connection], object] | None = None, *, lasting: bool = True
    ) -> threading.Thread:
        """Let a thread bring a command, by default one that leaves a mark, and remember what became of it."""

        def work() -> None:
            try:
                self.commits.run(apply or self.mark(name), lasting=lasting)
            except BaseException as error:  # noqa: BLE001 - compared by the test
                self.outcomes[name] = error
            else:
                self.outcomes[name] = None

        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def bring_in_turn(self, *names: str) -> None:
        """Let threads bring commands one after the other, each seen in the queue before the next comes."""
        for name in names:
            before = len(self.commits._queue)
            self.bring(name)
            until(lambda before=before: len(self.commits._queue) > before)  # type: ignore[misc]

    @contextmanager
    def crowd(
        self,
        first: str,
        *others: str,
        apply: Callable[[apsw.Connection], object] | None = None,
    ) -> Iterator[None]:
        """Let the first thread, perhaps with a command of its own, wait at the gate, others behind it; then open it."""
        self.gate.open.clear()
        self.bring(first, apply)
        assert self.gate.waiting.wait(SOON)
        self.bring_in_turn(*others)
        yield
        self.gate.open.set()
        self.join()

    def join(self) -> None:
        """Wait until every thread is through."""
        for thread in self._threads:
            thread.join(SOON)
        assert [] == [thread.name for thread in self._threads if thread.is_alive()]


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread is about to do."""
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.0005)


class InterruptAt:
    """Raises `KeyboardInterrupt` in this thread where a signal could: where the n-th call in a file begins or ends.

    With more numbers it does so again, each time after so many further such places. The interpreter forgets whoever
    raises here, so `rearm` has to be called in between.
    """

    def __init__(self, file: str, *numbers: int) -> None:
        self.struck: list[str] = []
        self._file = file
        self._numbers = list(numbers)

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def rearm(self) -> None:
        """Strike again in this thread, if it is the one that was struck and there is a number left."""
        if self.struck and self._numbers and self._thread == threading.get_ident():
            sys.setprofile(self._look)

    def _look(self, frame: FrameType, event: str, _argument: object) -> None:
        if event in {"call", "c_return"} and frame.f_code.co_filename == self._file and self._numbers:
            self._numbers[0] -= 1
            if self._numbers[0] < 0:
                del self._numbers[0]
                self.struck.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
                raise KeyboardInterrupt
