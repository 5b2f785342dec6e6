"""Group commit: commands that wait at the same time are written in one transaction, by the first of their callers.

A commit costs one sync of the disk, however many commands are in it. The caller that comes first is the *leader*: it
writes for everybody in the queue, and then the first who still waits leads. A dedicated writer thread would cost every
append two thread switches; see docs/adr/0014.

A leader can be interrupted at any moment (Ctrl-C in the main thread). `_recover` can finish its work from any state,
because a command leaves the queue only when its batch is settled, and a batch is settled by one assignment. A second
Ctrl-C may interrupt that as well. Then the leader is gone, which others see by the lock that its caller no longer
holds, and the next caller or waiter recovers in its place.

Waiters are woken in a chain: the leader wakes a few, and each of them wakes one more when it runs. If all were woken at
once, sixty threads would ask for the interpreter's lock, find it taken and go to sleep again.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import apsw
from msgspec import Struct

from batonpass.errors import BatonpassError, StoreBusyError, StoreError, StoreShutError
from batonpass.model.ledger.entry import Entry
from batonpass.store.sqlite.connection import translated

_LARGEST_BATCH: Final = 256
_ENOUGH_TO_JOIN: Final = 4  # fewer appends are written as fast one by one
_TOLD_AT_ONCE: Final = 2  # more threads could only queue for the interpreter's lock while the leader goes on
_LOOK_SECONDS: Final = 0.25  # how often a waiter looks whether whoever should wake it is gone


class WriteGate(Protocol):
    """The right to write, which one process has at a time."""

    def enter(self, deadline: float) -> None:
        """Take the right to write. Raises `StoreBusyError` at the deadline."""

    def explain(self) -> str:
        """Return a sentence about which process has the right to write."""

    def leave(self) -> None:
        """Give the right to write back. Harmless if it is not ours."""


class Watch(Protocol):
    """An observer that sees each transaction before its first command, and learns when it was committed."""

    def begin(self, connection: apsw.Connection) -> None:
        """Read the commits of others since our last transaction.

        May refuse the transaction by a `StoreError`.
        """

    def committed(self, connection: apsw.Connection) -> None:
        """Note that everything written since `begin` is durable."""


class Joint(Protocol):
    """A way to write the appends of many commands by fewer statements than each of them by itself."""

    def can_join(self, entries: Sequence[Entry]) -> bool:
        """Return whether an append can be written in this way."""

    def write(self, entries: Sequence[Entry], connection: apsw.Connection) -> None:
        """Write the entries of many appends. Raises if one of them is refused, whichever it is."""


class _Batch(Struct, eq=False):
    """One transaction, and the commands in it."""

    commands: "tuple[_Command, ...]" = ()  # emptied when all were woken, because each command refers to its batch
    lasting: bool = False  # whether a command in it must survive a power failure
    committing: bool = False
    failure: BatonpassError | None = None
    settled: bool = False
    told: int = 0  # how many of its commands were woken, in order


class _Command(Struct, eq=False):
    """One request to write, and its outcome."""

    apply: Callable[[apsw.Connection], object]
    deadline: float
    caller: threading.Lock  # held while its caller is in `run`; free, and still in the queue: its caller is gone
    alone: Callable[[apsw.Connection], object] | None = None
    lasting: bool = True  # its caller relies on it after a power failure
    entries: Sequence[Entry] = ()  # the entries that it appends, if it does nothing else
    error: BaseException | None = None
    batch: _Batch | None = None  # the transaction that contains it
    leading: _Batch | None = None  # the transaction that its caller leads
    inside: bool = False  # its caller may have the right to write
    wake: "threading.Lock | None" = None  # only if its caller sleeps


class GroupCommit:
    """Runs commands in shared transactions on one connection. A command that is refused does not affect the others."""

    def __init__(
        self,
        connection: apsw.Connection,
        gate: WriteGate,
        wait_for: float,
        watch: Watch,
        joint: Joint | None = None,
    ) -> None:
        self._connection = connection
        # For the statements around each batch: a connection would make a new cursor for each.
        self._execute = connection.cursor().execute
        self._joint = joint
        self._gate = gate
        self._wait_for = wait_for
        self._watch = watch
        self._mutex = threading.Lock()
        self._recovery = threading.Lock()
        self._queue: deque[_Command] = deque()
        self._leader: _Command | None = None  # always the first in the queue
        self._shut = False
        self._relaxed = False  # the connection does not wait for the disk, or may not

    def run_alone(self, apply: Callable[[apsw.Connection], object]) -> None:
        """Run a command outside any transaction, while nobody else uses the connection."""
        self.run(_nothing, alone=apply)

    def shut(self) -> None:
        """Take no more commands, and wait for those that have begun."""
        with self._mutex:
            self._shut = True
        while self._leader is not None:
            self._replace_lost()
            time.sleep(0.001)

    def run(
        self,
        apply: Callable[[apsw.Connection], object],
        *,
        alone: Callable[[apsw.Connection], object] | None = None,
        lasting: bool = True,
        entries: Sequence[Entry] = (),
    ) -> None:
        """Run a command in a transaction and return when it is durable. Raises its own exception, or a `StoreError`.

        `apply` may run more than once, because the batch is run again if another command in it is refused. If all that
        it does is to append `entries`, they may be written together with others instead. `alone` runs after the
        transaction, while nobody else uses the connection. A command that is not `lasting` survives the end of this
        process, but perhaps not a power failure: it does not wait for the disk, unless another one in its batch does.
        """
        command = _Command(apply, time.monotonic() + self._wait_for, threading.Lock(), alone, lasting, entries)
        # `with` on a lock of the interpreter is one step: however we leave, the lock is free afterwards.
        with command.caller:
            try:
                if self._leader is not None:
                    # A leader that is gone would wake nobody, so we look before we stand in line behind it.
                    self._replace_lost()
                with self._mutex:
                    if self._shut:
                        raise StoreShutError("this ledger was closed; open it again")  # noqa: TRY301 - asked under the mutex
                    if self._leader is None:
                        self._leader = command
                    else:
                        command.wake = threading.Lock()
                        # Taken once here, so that taking it again in `_await` sleeps until somebody releases it.
                        command.wake.acquire()
                    self._queue.append(command)
                if command.wake is not None:
                    self._await(command, command.wake)
                if self._leader is command and (command.batch is None or not command.batch.settled):
                    self._lead(command)
            except BaseException:
                self._recover(command)
                raise
        if command.error is not None:
            raise command.error
        if command.batch is not None and command.batch.failure is not None:
            raise command.batch.failure

    def _await(self, command: _Command, wake: threading.Lock) -> None:
        """Sleep until this command is settled or its caller must lead. At the deadline, withdraw it."""
        # Nearly always it is woken. It looks by itself too, because whoever should wake it may be gone.
        while not wake.acquire(timeout=max(0.0, min(_LOOK_SECONDS, command.deadline - time.monotonic()))):
            self._replace_lost()
            with self._mutex:
                if self._leader is command or (command.batch is not None and command.batch.settled):
                    break
                if time.monotonic() < command.deadline:
                    continue
                if command.batch is None:
                    self._queue.remove(command)
                    command.error = StoreBusyError(self._gate.explain())
                    return
            # Too late to withdraw: a leader is writing it. A leader's own wait is bounded, so the outcome comes soon.
            command.deadline = time.monotonic() + _LOOK_SECONDS
        if command.batch is not None and command.batch.settled:
            with self._mutex:
                _tell(command.batch, 1)

    def _lead(self, own: _Command) -> None:
        own.wake = None
        batch = own.leading = _Batch()
        own.inside = True
        try:
            self._gate.enter(own.deadline)
            # Only now, and not before the gate opened: commands that came while we stood in line are written as well.
            with self._mutex:
                batch.commands = tuple(self._queue)[:_LARGEST_BATCH]
                for command in batch.commands:
                    command.batch = batch
                    if command.lasting:
                        batch.lasting = True
            self._commit(batch)
            for command in batch.commands:
                if command.alone is not None:
                    self._run_alone(command, command.alone)
            self._gate.leave()
            own.inside = False
        except StoreError as error:
            # Only our own command fails, for instance because the gate did not open in time. The others stay in the
            # queue, and the next of them tries as leader, with its own deadline.
            own.error = error
            own.inside = False
        self._pass_on(own, batch)

    def _commit(self, batch: _Batch) -> None:
        """Write all commands of a batch in one transaction.

        The batch is settled afterwards, with success or failure.
        """
        connection, watch = self._connection, self._watch
        try:
            # A batch of leases alone does not wait for the disk: a power failure loses only rights that nothing was
            # written under. With one receipt in it, the whole batch waits (ADR 70).
            if batch.lasting is self._relaxed:
                self._wait_for_disk(waits=batch.lasting)
            self._execute("BEGIN IMMEDIATE")
            watch.begin(connection)
            if len(batch.commands) == 1:
                # Nobody else is in the transaction, so a refusal may roll all of it back.
                batch.commands[0].apply(connection)
            elif not self._run_together(batch.commands):
                # One was refused. Without savepoints it cannot be undone alone, so all are undone and run again, each
                # in a savepoint of its own.
                connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                watch.begin(connection)
                for command in batch.commands:
                    _run_apart(connection, command)
            # From here on only the connection knows whether the commit happened; `_recover` asks it.
            batch.committing = True
            self._execute("COMMIT")
            batch.settled = True
            watch.committed(connection)
        except apsw.Error as error:
            # SQLite may have rolled back by itself, for instance on a full disk.
            batch.committing = False
            _roll_back(connection)
            batch.failure = translated(error)
            batch.settled = True
        except Exception as error:  # noqa: BLE001 - as in a command that runs apart
            batch.committing = False
            _roll_back(connection)
            if len(batch.commands) == 1:
                batch.commands[0].error = error
            else:
                batch.failure = error if isinstance(error, BatonpassError) else StoreError(str(error))
            batch.settled = True

    def _run_together(self, commands: Sequence[_Command]) -> bool:
        """Run commands without savepoints, which cost two statements each; return False if they must be run apart."""
        connection, joint = self._connection, self._joint
        joined: list[_Command] = []
        if joint is not None and len(commands) >= _ENOUGH_TO_JOIN:
            joined = [command for command in commands if command.entries and joint.can_join(command.entries)]
        try:
            if joint is not None and len(joined) >= _ENOUGH_TO_JOIN:
                joint.write([command.entries[0] for command in joined], connection)
            else:
                joined = []
            written = {id(command) for command in joined}
            for command in commands:
                if id(command) not in written:
                    command.apply(connection)
        except (StoreError, apsw.Error):
            raise
        except Exception:  # noqa: BLE001 - which of them it was shows when they run apart
            return False
        return True

    def _wait_for_disk(self, *, waits: bool) -> None:
        """Set whether the next commits wait for the disk. Called outside of a transaction, where SQLite allows it."""
        # SQLite sets this when it reads the statement, and not when it runs it, so the statement must not be cached.
        # Interrupted anywhere, we believe that the connection does not wait, and a lasting batch sets it once more.
        self._relaxed = True
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if waits else 'NORMAL'}", can_cache=False)
        self._relaxed = not waits

    def _run_alone(self, command: _Command, alone: Callable[[apsw.Connection], object]) -> None:
        try:
            alone(self._connection)
        except apsw.Error as error:
            command.error = translated(error)

    def _pass_on(self, own: _Command, batch: _Batch) -> None:
        """Remove settled commands and our own from the queue, and let the first who waits lead. Safe to repeat."""
        with self._mutex:
            if len(self._queue) == 1 and self._queue[0] is own:
                self._queue.clear()
                self._leader = None
                batch.commands = ()  # there is nobody to wake
            else:
                settled = batch if batch.settled else None
                self._queue = deque(
                    [
                        command
                        for command in self._queue
                        if command is not own and (settled is None or command.batch is not settled)
                    ]
                )
                self._leader = self._queue[0] if self._queue else None
                # The next leader is woken first: its transaction waits for the disk while the others work.
                if self._leader is not None:
                    _wake(self._leader)
                if batch.settled:
                    _tell(batch, _TOLD_AT_ONCE)

    def _replace_lost(self) -> None:
        """Recover in the place of a leader whose caller is gone, because its own recovery was interrupted too."""
        leader = self._leader
        if leader is None or leader.caller.locked():
            return
        with self._recovery:
            # The next in line may be lost as well.
            while (leader := self._leader) is not None and not leader.caller.locked():
                self._recover(leader)

    def _recover(self, command: _Command) -> None:
        """Clean up after an interrupted caller, so that nobody waits for it forever and nothing is written twice."""
        batch = command.leading
        if batch is not None:
            if not batch.settled:
                # The connection knows whether the commit happened before the interrupt.
                if batch.committing and not self._connection.in_transaction:
                    batch.settled = True
                else:
                    # First: a recovery that is interrupted in between must not take the rollback for a commit.
                    batch.committing = False
                    _roll_back(self._connection)
                    for waiting in batch.commands:
                        waiting.batch = None
            if command.inside:
                self._gate.leave()
                command.inside = False
            self._pass_on(command, batch)
            return
        with self._mutex:
            leads = self._leader is command
            if command in self._queue and command.batch is None and not leads:
                self._queue.remove(command)
            if command.batch is not None and command.batch.settled:
                _tell(command.batch, 1)  # it may have been woken, and have woken nobody
        if leads:
            self._pass_on(command, _Batch())


def _run_apart(connection: apsw.Connection, command: _Command) -> None:
    command.error = None
    connection.execute("SAVEPOINT command")
    try:
        command.apply(connection)
    except (StoreError, apsw.Error):
        raise
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in one command is its caller's alone
        connection.execute("ROLLBACK TO command")
        command.error = error
    connection.execute("RELEASE command")


def _roll_back(connection: apsw.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _wake(command: _Command) -> None:
    if command.wake is not None and command.wake.locked():
        command.wake.release()


def _tell(batch: _Batch, number: int) -> None:
    """Wake the next `number` callers of a settled batch. The caller of this holds the mutex."""
    while number > 0 and batch.told < len(batch.commands):
        wake = batch.commands[batch.told].wake
        # Counted after the release: an interrupt in between wakes one twice, and leaves none asleep for ever.
        if wake is not None and wake.locked():
            wake.release()
            number -= 1
        batch.told += 1
    if batch.told >= len(batch.commands):
        # A command and its batch refer to each other. Without this, both would stay in memory until the next
        # collection.
        batch.commands = ()


def _nothing(connection: apsw.Connection) -> None:
    """Do nothing: for commands that run only after the transaction."""
