"""Group commit: appends that wait at the same time are written in one transaction, by the first of their callers.

A commit costs one sync of the disk, however many receipts are in it. The caller that holds the lock *leads*: it writes
for all who wait; then the first that came meanwhile leads. A writer thread would cost each append two switches.

Ctrl-C may fall anywhere. So who leads is no flag but a lock in a `with`, which the interpreter gives back; a wake-up
that is lost costs a quarter of a second and nothing else; and a transaction that was left open is rolled back.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from batonpass.errors import BatonpassError, OutcomeUnknownError, StoreError
from batonpass.system import Lock, System, Turn

Given_contra = TypeVar("Given_contra", contravariant=True)
Item = TypeVar("Item")
_LARGEST_BATCH: Final = 256
_LOOK_SECONDS: Final = 0.25


class RefusedError(Exception):
    """One of a batch was refused, and nothing of the batch was written."""

    def __init__(self, reason: BatonpassError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Writer(Protocol[Given_contra, Item]):
    """What writes a batch, in one transaction."""

    def prepare(self, given: Given_contra) -> Item:
        """Return what is written of what a caller gives. What can fail for one of them fails here, and alone."""
        ...

    def write(self, batch: Sequence[Item]) -> None:
        """Write a batch and return when it is durable.

        Raises `RefusedError` if one of it was refused, `StoreError` if nothing of it could be written, and anything
        else if nobody can tell.
        """
        ...

    def roll_back(self) -> None:
        """Leave no transaction open, whatever happened."""
        ...


class _Command(Generic[Item]):
    """One append, and its outcome."""

    __slots__ = ("error", "item", "settled", "wake")

    def __init__(self, item: Item, wake: Lock) -> None:
        self.item = item
        self.error: BaseException | None = None
        self.settled = False
        self.wake = wake
        wake.acquire()

    def settle(self, error: BaseException | None = None) -> None:
        """Note the outcome. The first one counts."""
        if not self.settled:
            self.error, self.settled = error, True


class GroupCommit(Generic[Given_contra, Item]):
    """Writes items in shared transactions. One that is refused does not affect the others."""

    def __init__(self, writer: Writer[Given_contra, Item], turn: Turn, system: System) -> None:
        self._writer = writer
        self._turn = turn
        self._system = system
        self._leading = system.lock()
        self._queue: deque[_Command[Item]] = deque()
        self._process = system.pid()

    def run(self, given: Given_contra, /) -> None:
        """Return when it is durable. Raises what refused it, or `OutcomeUnknownError`."""
        if self._system.pid() != self._process:
            detail = "a ledger does not survive a fork: open it again in the child process"
            raise StoreError(detail, code="store.forked")
        command = _Command(self._writer.prepare(given), self._system.lock())
        try:
            self._queue.append(command)  # in here: what was left behind in the queue another caller would write
            # Only the first in the queue may lead at once. A newcomer that took a free lock would write a batch of one
            # while the next leader wakes up: 64 callers got two thirds of the handoffs that they get this way.
            if self._leading.locked() or self._first() is not command:
                command.wake.acquire(timeout=_LOOK_SECONDS)  # until it is written, or its turn to lead
            if not command.settled:
                written: list[_Command[Item]] = []
                with self._leading:
                    while not command.settled:
                        written += self._lead(command)
                # After the lock is free, or a caller that came just before would sleep on. First the one that leads
                # next, then those that only return: the disk should not wait for them.
                self._wake_next()  # type: ignore[unreachable] # `_lead` settles it
                for other in written:
                    _wake(other)
        except BaseException:
            self._abandon(command)
            raise
        if command.error is not None:
            raise command.error

    def _abandon(self, command: _Command[Item]) -> None:
        try:
            self._queue.remove(command)
        except ValueError:
            # A leader has it. Let it end, so that the next reader of the head sees what became of it.
            with self._leading:
                pass
        self._wake_next()

    def _first(self) -> _Command[Item] | None:
        # By its place: others append meanwhile, and an iterator would notice.
        try:
            return self._queue[0]
        except IndexError:
            return None

    def _wake_next(self) -> None:
        if (command := self._first()) is not None:
            _wake(command)

    def _lead(self, own: _Command[Item]) -> list[_Command[Item]]:
        """Write what waits, as far as it fits into one batch. Return what was settled."""
        batch: list[_Command[Item]] = []
        try:
            while self._queue and len(batch) < _LARGEST_BATCH:
                batch.append(self._queue.popleft())
            if not batch:
                own.settle(OutcomeUnknownError("the caller that was writing it was interrupted"))
                return batch
            with self._turn:
                try:
                    self._writer.write([command.item for command in batch])
                except RefusedError as refused:
                    self._write_each(batch, refused)
                else:
                    for command in batch:
                        command.settle()
                finally:  # before the turn is given back, or all other processes wait for our next write
                    self._writer.roll_back()
        except BaseException as error:
            # The transaction itself failed, or we were interrupted. A caller that is not settled must look at the head.
            for command in batch:
                command.settle(_told(error))
            if not isinstance(error, Exception):
                # It may have fallen where the turn was given back, or had just been taken. To give it back twice is
                # nothing; to keep it would stop all other processes.
                self._turn.__exit__(None, None, None)
                raise
        return batch

    def _write_each(self, batch: Sequence[_Command[Item]], refused: RefusedError) -> None:
        """Write by itself each of a batch that was rolled back, so that what is refused fails alone.

        No savepoints, which would cost two statements for each append: what is refused is rare.
        """
        if len(batch) == 1:
            batch[0].settle(refused.reason)
            return
        for command in batch:
            try:
                self._writer.write([command.item])
            except RefusedError as alone:
                command.settle(alone.reason)
            else:
                command.settle()


def _told(error: BaseException) -> StoreError:
    """Return what a caller is told of a batch that failed as a whole: an error of its own, to raise in its thread."""
    if isinstance(error, StoreError):
        return type(error)(str(error), code=error.code)
    return OutcomeUnknownError(f"the commit was cut short: {error!r}")


def _wake(command: _Command[Item]) -> None:
    try:  # noqa: SIM105 - `suppress` costs three Python calls, here for each append
        command.wake.release()
    except RuntimeError:
        pass  # it is awake already
