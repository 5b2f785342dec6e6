"""Virtual processes: greenlets on one thread, with clocks, locks, SQLite and faults that all follow from one seed.

The core is synchronous: a greenlet is switched out in the middle of any call without a change of it, at a fiftieth of
the price of a thread. A killed process is never switched to again. What the system does at its death is done for it;
its `finally` blocks run when all is judged, and by then every seam raises `GoneError` and reaches nothing.
"""

from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

import apsw
from greenlet import getcurrent, greenlet
from msgspec import Struct, field

from batonpass.store.sqlite.store import SqliteStore, open_connection

_BUSY_SECONDS: Final = 30
_MOST_STEPS: Final = 80_000
_BEGAN_AT: Final = 1_700_000_000_000_000
_FOREVER: Final = float("inf")

Kind = Literal["kill", "power", "freeze", "interrupt", "jump", "lose", "fail"]


class GoneError(BaseException):
    """The process of this greenlet was killed."""


class HungError(Exception):
    """No process can go on, or one never stops."""


class Fault(Struct, frozen=True):
    """What happens to a process when it comes to the nth point whose label begins so."""

    process: int
    label: str
    nth: int
    kind: Kind  # power kills all; lose: the answer of the next COMMIT; fail: that COMMIT
    much: int = 0  # steps, or seconds


class Process(Struct, eq=False):
    """What the system knows of a process."""

    number: int
    faults: list[Fault]
    awake_at: int = 0
    has_begun: bool = False
    dead: bool = False
    lose: str = ""
    clock: int = 0  # how far its clock is from the others', in microseconds
    seen: Counter[Fault] = field(default_factory=Counter)
    connections: list[apsw.Connection] = field(default_factory=list)


class Task(greenlet):  # type: ignore[misc]  # it ships no types
    """One virtual thread. It goes on when it is `ready`, or at its `deadline`."""

    def __init__(self, process: Process, work: Callable[[], None], hub: greenlet) -> None:
        super().__init__(parent=hub)
        self.process = process
        self.work = work
        self.raised: BaseException | None = None
        self.ready: Callable[[], bool] | None = None
        self.deadline: float = _FOREVER
        self.step = ""  # the step of a task that it makes a call for

    def run(self) -> None:
        """Work. An error is for the oracle, or for the task that joins this one."""
        try:
            self.work()
        except GoneError:
            pass
        except BaseException as error:  # noqa: BLE001 - the oracle knows which are expected
            self.raised = error


class Simulation:
    """One run. Everything that happens follows from `random`, and only the seams and the programs draw from it."""

    def __init__(self, seed: int, switch: float, faults: tuple[Fault, ...]) -> None:
        self.random = Random(seed)
        self.switch = switch
        self.faults = faults
        self.hub = getcurrent()
        self.time = 0  # of waits, in microseconds: no clock that jumps moves it
        self.steps = 0
        self.starved = 0
        self.processes: list[Process] = []
        self.tasks: list[Task] = []
        self.turns: deque[Process] = deque()  # the first has the turn
        self.trace: list[str] = []
        self.task = Task(Process(number=-1, faults=[]), lambda: None, self.hub)  # until the first one is at work

    def spawn(self, work: Callable[[], None], process: Process | None = None, begins: int = 0) -> Task:
        """Start a process, or a thread of one."""
        if process is None:
            number = len(self.processes)
            process = Process(number, [fault for fault in self.faults if fault.process == number], begins)
            self.processes.append(process)
        task = Task(process, work, self.hub)
        self.tasks.append(task)
        return task

    def run(self) -> None:
        """Let one after the other go on, until all have ended or were killed."""
        while alive := [task for task in self.tasks if not task.dead and not task.process.dead]:
            awake = [task for task in alive if task.process.awake_at <= self.steps]
            able = [task for task in awake if task.ready is None or task.deadline <= self.time or task.ready()]
            if able:
                self.task = able[int(self.random.random() * len(able))]
                self.task.process.has_begun = True
                self.task.switch()
            elif len(awake) < len(alive):
                self.steps = min(task.process.awake_at for task in alive if task not in awake)
            elif (deadline := min(task.deadline for task in alive)) < _FOREVER:
                self.time = int(deadline)
            else:
                raise HungError(f"P{alive[0].process.number} waits for ever")
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise HungError("livelock")

    def pause(self, label: str, share: float = 1) -> None:
        """Come to a point: here faults happen, and others may go on."""
        process = self.task.process
        if process.dead:
            raise GoneError
        self.steps += 1
        for fault in process.faults:
            if label.startswith(fault.label):
                process.seen[fault] += 1
                if process.seen[fault] == fault.nth:
                    self._befall(process, fault, label)
        if process.awake_at > self.steps or self.random.random() < self.switch * share:
            self._yield()

    def wait(self, label: str, ready: Callable[[], bool], seconds: float = _FOREVER) -> bool:
        """Return whether it became ready in time. A fault comes before it, as a signal would."""
        self.pause(label)
        task, deadline = self.task, self.time + seconds * 1_000_000
        while not ready() and self.time < deadline:
            task.ready, task.deadline = ready, deadline
            self._yield()
            task.ready, task.deadline = None, _FOREVER
        return ready()

    def _yield(self) -> None:
        process = self.task.process
        self.hub.switch()
        if process.dead:
            raise GoneError

    def _befall(self, process: Process, fault: Fault, label: str) -> None:
        self.note(f"!! {fault.kind} at {label}" + f" ({fault.much})" * (fault.kind in {"freeze", "jump"}))
        match fault.kind:
            case "interrupt":
                raise KeyboardInterrupt
            case "freeze":
                process.awake_at = self.steps + fault.much
            case "jump":
                process.clock += fault.much * 1_000_000
            case "lose" | "fail":
                process.lose = fault.kind
            case "kill" | "power":
                for other in list(self.processes) if fault.kind == "power" else [process]:
                    if other.has_begun:
                        self.kill(other)
                self._yield()

    def kill(self, process: Process) -> None:
        """Do what the system does at the end of a process, whether it ended well or not."""
        process.dead = True
        for connection in process.connections:
            connection.close(True)  # noqa: FBT003 - rolls back what is open
        self.turns = deque(each for each in self.turns if each is not process)

    def end(self) -> None:
        """Unwind what was killed, into nothing."""
        for process in self.processes:
            self.kill(process)
        for task in self.tasks:
            self.task = task
            if task.gr_frame is not None:  # has begun, and has not ended
                task.throw(GoneError)

    def note(self, text: str) -> None:
        """Write a line of the trace."""
        self.trace.append(f"{self.steps:5} P{self.task.process.number} {text}")

    def clock(self) -> int:
        """Return what the clock of this process says: a look at it takes some time."""
        self.pause("clock", 1 / 8)
        self.time += 1 + int(self.random.random() * 100)
        return _BEGAN_AT + self.time + self.task.process.clock


class VirtualSystem:
    """The system that a virtual process runs on."""

    def __init__(self, simulation: Simulation, process: Process) -> None:
        self._simulation = simulation
        self._process = process

    def now(self) -> int:
        """Return microseconds since 1970, by the clock of this process."""
        return self._simulation.clock()

    def entropy(self, size: int) -> bytes:
        """Return bytes that follow from the seed."""
        return self._simulation.random.randbytes(size)

    def lock(self) -> "VirtualLock":
        """Return a lock between virtual threads."""
        return VirtualLock(self._simulation)

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Return whether it became true in time, in seconds."""
        return self._simulation.wait("wait", until, timeout)

    def pid(self) -> int:
        """Return the id of this process."""
        return 100 + self._process.number


class VirtualLock:
    """A lock between virtual threads."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as `threading` has it
        """Take it, or say that it was not free in time."""
        seconds = _FOREVER if timeout < 0 else timeout
        if self._held and not (blocking and self._simulation.wait("lock", lambda: not self._held, seconds)):
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Give it back."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def locked(self) -> bool:
        """Return whether it is taken."""
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._held = False


class VirtualTurn:
    """The right to write, in the order in which it is asked for. A process that is killed has it no more."""

    def __init__(self, simulation: Simulation, process: Process) -> None:
        self._simulation = simulation
        self._process = process

    def __enter__(self) -> None:
        simulation, process = self._simulation, self._process
        simulation.pause("turn")
        simulation.turns.append(process)
        try:
            simulation.wait("turn", lambda: simulation.turns[0] is process)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self._process in self._simulation.turns:
            self._simulation.turns.remove(self._process)


class VirtualConnection:
    """A connection with a point before each statement and after each COMMIT."""

    def __init__(self, simulation: Simulation, process: Process, path: Path) -> None:
        self._simulation = simulation
        self._process = process
        self._real = cast("apsw.Connection", open_connection(path))
        self._real.set_busy_timeout(0)
        self.changes = self._real.changes
        process.connections.append(self._real)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._real.in_transaction

    def execute(self, sql: str, bindings: Any = None) -> Any:  # noqa: ANN401 - as the driver has it
        """Run a statement when the scheduler wants it."""
        simulation, process, label = self._simulation, self._process, sql[:6]
        # Inside a transaction no other process writes: every fault may come there, but rarely a switch.
        simulation.pause(label, 1 / 8 if self._real.in_transaction else 1)
        if label != "COMMIT":
            return self._execute(sql, bindings)
        lose, process.lose = process.lose, ""
        if lose == "fail":
            raise apsw.IOError("the commit failed")
        cursor = self._real.execute(sql)
        if lose:
            raise apsw.IOError("the answer of the commit was lost")
        simulation.pause("committed")
        return cursor

    def _execute(self, sql: str, bindings: Any) -> apsw.Cursor:  # noqa: ANN401 - as above
        simulation = self._simulation
        until = simulation.time + _BUSY_SECONDS * 1_000_000
        while True:
            try:
                return self._real.execute(sql, bindings)
            except apsw.BusyError:
                if simulation.time >= until:
                    simulation.starved += 1  # no process at work holds SQLite's lock without the turn
                    raise
                simulation.wait("busy", lambda: False, 0.5)

    def close(self) -> None:
        """Close it."""
        self._process.connections.remove(self._real)
        self._real.close()


class WatchedStore(SqliteStore):
    """A ledger of a virtual process. Each append is told, before it, after it, and when it was refused."""

    def __init__(self, simulation: Simulation, path: Path, watch: Callable[[Any, Callable[[], None]], None]) -> None:
        process = simulation.task.process
        super().__init__(
            path,
            system=VirtualSystem(simulation, process),
            connect=lambda where: VirtualConnection(simulation, process, where),
            turn=VirtualTurn(simulation, process),
        )
        append = self.append
        self.append = lambda entry: watch(entry, lambda: append(entry))


class Looker:
    """Reads a ledger without a point, so that nothing comes between two looks."""

    def __init__(self, path: Path) -> None:
        self._connection = cast("apsw.Connection", open_connection(path))

    def __call__(self, query: str, *values: object) -> list[Any]:
        """Return rows; none while there is no ledger yet."""
        try:
            return list(self._connection.execute(query, cast("Any", values)))
        except apsw.SQLError:
            return []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def open_ledger(path: Path) -> SqliteStore:
    """Return the ledger of a run that is over, on the real system."""
    return SqliteStore(path)
