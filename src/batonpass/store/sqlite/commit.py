"""Group commit: the caller who comes first writes for everybody who waits, then passes the lead on.

A dedicated writer thread would cost every append two thread switches; see docs/adr/0014.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import apsw

from batonpass.errors import BatonpassError, StoreBusyError, StoreError, StoreShutError
from batonpass.store.sqlite.connection import translated

_LARGEST_BATCH: Final = 256


class Gate(Protocol):
    """The right to write, among processes."""

    def enter(self, deadline: float) -> None:
        """Take it. Raises `StoreBusyError` at the deadline."""

    def leave(self) -> None:
        """Give it back."""


class _Command:
    __slots__ = ("alone", "apply", "deadline", "done", "error", "leads", "wake")

    def __init__(self, apply: Callable[[apsw.Connection], object], deadline: float) -> None:
        self.apply = apply
        self.alone: Callable[[apsw.Connection], object] | None = None
        self.deadline = deadline
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.wake = threading.Lock()
        self.wake.acquire()


class GroupCommit:
    """Runs commands in shared transactions on one connection. A refused command takes no other with it."""

    def __init__(self, connection: apsw.Connection, gate: Gate, wait_for: float) -> None:
        self._connection = connection
        self._gate = gate
        self._wait_for = wait_for
        self._mutex = threading.Lock()
        self._queue: deque[_Command] = deque()
        self._led = False
        self._shut = False

    def run(self, apply: Callable[[apsw.Connection], object]) -> None:
        """Run a command in a transaction and return when it is durable. Raises what it raised, or a `StoreError`."""
        self._run(_Command(apply, time.monotonic() + self._wait_for))

    def _run(self, command: _Command) -> None:
        with self._mutex:
            if self._shut:
                raise StoreShutError("this ledger was closed; open it again")
            self._queue.append(command)
            command.leads = not self._led
            self._led = True
        if not command.leads:
            try:
                self._await(command)
            except BaseException:
                self._abandon(command)
                raise
        if command.leads:
            self._lead(command)
        if command.error is not None:
            raise command.error

    def run_alone(self, apply: Callable[[apsw.Connection], object]) -> None:
        """Run a command outside any transaction, while nobody else uses the connection."""
        command = _Command(_nothing, time.monotonic() + self._wait_for)
        command.alone = apply
        self._run(command)

    def shut(self) -> None:
        """Take no more commands, and wait for those under way."""
        with self._mutex:
            self._shut = True
        while True:
            with self._mutex:
                if not self._led:
                    return
            time.sleep(0.001)

    def _await(self, command: _Command) -> None:
        if command.wake.acquire(timeout=max(0.0, command.deadline - time.monotonic())):
            return
        with self._mutex:
            if command in self._queue and not command.leads:
                self._queue.remove(command)
                command.error = StoreBusyError(
                    "the ledger is busy: another thread of this process waits for it too long"
                )
                return
        # A leader has it in hand, and a leader's own wait is bounded: the outcome is about to be known.
        command.wake.acquire()

    def _abandon(self, command: _Command) -> None:
        """Leave the queue because of an interrupt; if the lead was ours to take, pass it on."""
        with self._mutex:
            leads = command.leads
            if command in self._queue and not leads:
                self._queue.remove(command)
        if leads:
            self._pass_on(command, ())

    def _lead(self, own: _Command) -> None:
        batch: Sequence[_Command] = ()
        try:
            self._gate.enter(own.deadline)
            try:
                with self._mutex:
                    batch = [self._queue.popleft() for _ in range(min(len(self._queue), _LARGEST_BATCH))]
                self._commit(batch)
                self._run_alone(batch)
            finally:
                self._gate.leave()
        except BatonpassError as error:
            own.error = own.error or error
        finally:
            self._pass_on(own, batch)

    def _commit(self, batch: Sequence[_Command]) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            if len(batch) == 1:
                batch[0].apply(connection)
            else:
                for command in batch:
                    _run_apart(connection, command)
            connection.execute("COMMIT")
        except apsw.Error as error:
            _roll_back(connection)
            _fail(batch, translated(error))
        except BatonpassError as error:
            _roll_back(connection)
            _fail(batch, error)
        except BaseException:
            # An interrupt in this thread, perhaps just after COMMIT: the connection knows whether it happened.
            if connection.in_transaction:
                _roll_back(connection)
                raise
            _succeed(batch)
            raise
        else:
            _succeed(batch)

    def _run_alone(self, batch: Sequence[_Command]) -> None:
        for command in batch:
            if command.alone is not None:
                try:
                    command.alone(self._connection)
                except apsw.Error as error:
                    command.error = translated(error)

    def _pass_on(self, own: _Command, batch: Sequence[_Command]) -> None:
        undone = [command for command in batch if not command.done and command is not own]
        with self._mutex:
            if own in self._queue:
                self._queue.remove(own)
            self._queue.extendleft(reversed(undone))
            heir = self._queue[0] if self._queue else None
            self._led = heir is not None
            if heir is not None:
                heir.leads = True
        for command in batch:
            if command.done and command is not own:
                command.wake.release()
        if heir is not None:
            heir.wake.release()


def _run_apart(connection: apsw.Connection, command: _Command) -> None:
    connection.execute("SAVEPOINT command")
    try:
        command.apply(connection)
    except StoreError:
        raise
    except BatonpassError as error:
        connection.execute("ROLLBACK TO command")
        command.error = error
    connection.execute("RELEASE command")


def _roll_back(connection: apsw.Connection) -> None:
    # On a full disk SQLite may have rolled back by itself already.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _fail(batch: Sequence[_Command], error: BatonpassError) -> None:
    for command in batch:
        command.error = command.error or error
        command.done = True


def _succeed(batch: Sequence[_Command]) -> None:
    for command in batch:
        command.done = True


def _nothing(connection: apsw.Connection) -> None:
    """Do nothing: for commands that run after the transaction."""
