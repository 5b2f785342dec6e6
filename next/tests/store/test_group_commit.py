"""Group commit over a writer in memory: one for all that wait, what is refused fails alone, an interrupt hurts none."""

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

import pytest

from batonpass.errors import BatonpassError, ConflictError, OutcomeUnknownError, StoreError
from batonpass.store.group_commit import GroupCommit, RefusedError
from batonpass.testing import FrozenClock


class FakeWriter:
    """Writes numbers; refuses a batch with a negative one, and fails on a zero. The first batch waits for `go`."""

    def __init__(self) -> None:
        self.written: list[int] = []
        self.batches: list[int] = []
        self.began = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def prepare(self, given: int) -> int:
        """Return it as it is."""
        return given

    def write(self, batch: Sequence[int]) -> None:
        """Write a batch as a whole, or not at all."""
        self.began.set()
        self.go.wait(10)
        self.batches.append(len(batch))
        if 0 in batch:
            raise StoreError("the disk is full")
        for number in batch:
            if number < 0:
                raise RefusedError(ConflictError(f"{number} is refused"))
        self.written += batch

    def roll_back(self) -> None:
        """Leave nothing open: there is nothing."""


class NoTurn:
    """The only process there is."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def append_together(writer: FakeWriter, numbers: Sequence[int]) -> dict[int, str]:
    """Append the first, and the others while it is being written; return what each was told."""
    commit: GroupCommit[int, int] = GroupCommit(writer, NoTurn(), FrozenClock())
    answers: dict[int, str] = {}

    def append(number: int) -> None:
        try:
            commit.run(number)
        except BatonpassError as error:
            answers[number] = str(error)
        else:
            answers[number] = "written"

    writer.go.clear()
    threads = [threading.Thread(target=append, args=(number,)) for number in numbers]
    threads[0].start()
    writer.began.wait(10)
    for thread in threads[1:]:
        thread.start()
    writer.go.set()
    for thread in threads:
        thread.join(10)
    return answers


def test_what_is_refused_fails_alone() -> None:
    """Of appends that wait at the same time the refused ones are told so, and the others are written."""
    writer = FakeWriter()

    answers = append_together(writer, (1, 2, -3, 4, -5))

    assert {1: "written", 2: "written", -3: "-3 is refused", 4: "written", -5: "-5 is refused"} == answers
    assert [1, 2, 4] == sorted(writer.written)


def test_what_is_refused_alone_is_written_once_less() -> None:
    """A single append that is refused is not tried a second time."""
    writer = FakeWriter()
    commit: GroupCommit[int, int] = GroupCommit(writer, NoTurn(), FrozenClock())

    with pytest.raises(ConflictError, match="-1 is refused"):
        commit.run(-1)

    assert [1] == writer.batches


def test_a_batch_that_cannot_be_written_fails_all_of_it() -> None:
    """When the transaction itself fails each caller gets an error of its own, and none is left waiting."""
    writer = FakeWriter()
    commit: GroupCommit[int, int] = GroupCommit(writer, NoTurn(), FrozenClock())

    with pytest.raises(StoreError, match="the disk is full"):
        commit.run(0)
    commit.run(7)

    assert [7] == writer.written


def test_what_nobody_can_tell_is_an_unknown_outcome() -> None:
    """An error that the writer does not explain leaves the outcome unknown."""

    class BrokenWriter(FakeWriter):
        def write(self, batch: Sequence[int]) -> None:
            raise RuntimeError(f"{len(batch)} lost")

    commit: GroupCommit[int, int] = GroupCommit(BrokenWriter(), NoTurn(), FrozenClock())

    with pytest.raises(OutcomeUnknownError, match="1 lost"):
        commit.run(1)


class WatchedLock:
    """A lock between threads that counts who sleeps on it."""

    def __init__(self, system: "WatchedSystem") -> None:
        self._system = system
        self._lock = threading.Lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as `threading` has it
        """Take it, or say that it was not free in time."""
        if timeout != -1:
            self._system.sleepers += 1
        return self._lock.acquire(blocking, min(timeout, 0.05))  # a wake-up that is lost costs this

    def release(self) -> None:
        """Give it back."""
        self._lock.release()

    def locked(self) -> bool:
        """Return whether it is taken."""
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._lock.__exit__(kind, error, trace)


class WatchedSystem(FrozenClock):
    """A system that knows how many appends wait for their turn."""

    def __init__(self) -> None:
        super().__init__()
        self.sleepers = 0

    def lock(self) -> WatchedLock:
        """Return a lock that is watched."""
        return WatchedLock(self)


class Turn:
    """The right to write, which is never taken twice."""

    def __init__(self) -> None:
        self.is_held = False

    def __enter__(self) -> None:
        assert not self.is_held
        self.is_held = True

    def __exit__(self, *_: object) -> None:
        self.is_held = False


class OpenWriter(FakeWriter):
    """A writer whose transactions stay open until they are rolled back, or done."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = False

    def write(self, batch: Sequence[int]) -> None:
        """Write a batch in a transaction."""
        assert not self.is_open
        self.is_open = True
        super().write(batch)
        self.is_open = False

    def roll_back(self) -> None:
        """Leave nothing open."""
        self.is_open = False


class Scene:
    """One append holds the commit, and others come behind it: the first of them will lead the rest."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.writer, self.system, self.turn = OpenWriter(), WatchedSystem(), Turn()
        self.commit: GroupCommit[int, int] = GroupCommit(self.writer, self.turn, self.system)
        self.answers: dict[int, str] = {}
        self._numbers = numbers
        self._is_over = threading.Event()

    def append(self, number: int) -> None:
        """Append, and note the answer."""
        try:
            self.commit.run(number)
        except OutcomeUnknownError:
            self.answers[number] = "unknown"
        except BatonpassError as error:
            self.answers[number] = str(error)
        else:
            self.answers[number] = "written"

    def play(self, interrupt_at: int | None = None) -> bool:
        """Let all append; return whether the leader was interrupted, at this point of the group commit."""
        leader, *others = self._numbers
        self.writer.go.clear()
        first = threading.Thread(target=self.append, args=(100,))
        first.start()
        self.writer.began.wait(10)
        followers = [threading.Thread(target=self.append, args=(number,)) for number in others]
        usher = threading.Thread(target=self._usher, args=(followers,))
        usher.start()
        try:
            interrupted(lambda: self.append(leader), interrupt_at)
        except KeyboardInterrupt:
            return True
        else:
            return False
        finally:
            self._is_over.set()
            for thread in (usher, first, *followers):
                thread.join(20)
                assert not thread.is_alive(), f"sleeps on after an interrupt at point {interrupt_at}"

    def _usher(self, followers: Sequence[threading.Thread]) -> None:
        self._wait_for(1)
        for number, follower in enumerate(followers):
            follower.start()
            self._wait_for(2 + number)
        self.writer.go.set()

    def _wait_for(self, sleepers: int) -> None:
        self.system.wait(lambda: self.system.sleepers >= sleepers or self._is_over.is_set(), 10)


def interrupted(act: Any, at: int | None) -> None:  # noqa: ANN401 - anything that can be called
    """Do something, and raise `KeyboardInterrupt` at a point of the group commit, by its number.

    A point is where the interpreter looks for signals: as a function begins, and when one that it called has returned.
    """
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event == "c_call" or frame.f_globals.get("__name__") != GroupCommit.__module__:
            return
        count += 1
        if count == at:
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)


@pytest.mark.parity("group-commit-shares-one-sync")
def test_appends_that_wait_share_one_commit() -> None:
    """While one commit is under way others come; the next commit is of all of them, and no thread was made for it."""
    scene = Scene(range(1, 9))
    before = threading.active_count()

    scene.play()

    assert [1, 8] == scene.writer.batches
    assert [100, *range(1, 9)] == scene.writer.written
    assert {"written"} == set(scene.answers.values())
    assert before == threading.active_count()


def test_what_cannot_be_prepared_fails_before_the_queue() -> None:
    """It takes no part in a batch."""

    class PickyWriter(FakeWriter):
        def prepare(self, given: int) -> int:
            raise ConflictError(f"nothing is made of {given}")

    writer = PickyWriter()
    commit: GroupCommit[int, int] = GroupCommit(writer, NoTurn(), FrozenClock())

    with pytest.raises(ConflictError, match="nothing is made of 1"):
        commit.run(1)

    assert [] == writer.batches


@pytest.mark.slow
@pytest.mark.parity("interrupted-leader-settles-its-batch", "sim-no-transaction-stays-open", "interrupt-leaks-no-lock")
@pytest.mark.parametrize(
    "numbers", [[1, 2, 3], [1, -2, 3], [-1, 2]], ids=["all good", "a refused one", "it is refused"]
)
def test_interrupt_at_any_point_of_the_leader(numbers: list[int]) -> None:
    """Nothing stays open, no lock and no turn is held, no waiter hears what is not so, and the next append succeeds."""
    point, is_reached = 0, True
    while is_reached:
        point += 1
        scene = Scene(numbers)

        is_reached = scene.play(interrupt_at=point)

        told = {number: answer for number, answer in scene.answers.items() if answer == "written"}
        assert told.keys() <= set(scene.writer.written), f"told that it is written, at point {point}"
        refused = {number for number, answer in scene.answers.items() if answer.endswith("is refused")}
        assert refused <= {number for number in numbers if number < 0}, f"told that it is refused, at point {point}"
        assert {100, *numbers[1:]} <= scene.answers.keys()
        assert len(set(scene.writer.written)) == len(scene.writer.written)
        assert (False, False) == (scene.writer.is_open, scene.turn.is_held)
        scene.commit.run(9)
        assert 9 == scene.writer.written[-1]
    assert point > 25


class SteppedWriter(FakeWriter):
    """Each batch waits for its own step."""

    def __init__(self) -> None:
        super().__init__()
        self.begins = [threading.Event() for _ in range(3)]
        self.steps = [threading.Event() for _ in range(3)]

    def write(self, batch: Sequence[int]) -> None:
        """Write a batch when it may."""
        number = len(self.batches)
        self.begins[number].set()
        self.steps[number].wait(10)
        super().write(batch)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parity("interrupted-leader-settles-its-batch")
def test_interrupted_follower_looks_when_its_batch_has_ended() -> None:
    """Its entry is under way in another thread: until that has ended, no look at the ledger would tell."""
    writer, system = SteppedWriter(), WatchedSystem()
    commit: GroupCommit[int, int] = GroupCommit(writer, NoTurn(), system)
    is_over = threading.Event()
    threads = [threading.Thread(target=commit.run, args=(number,)) for number in (1, 2)]

    def direct() -> None:
        system.wait(lambda: system.sleepers >= 2, 10)
        writer.steps[0].set()
        writer.begins[1].wait(10)  # the second leads now, and writes the third as well
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        is_over.wait(0.3)
        writer.steps[1].set()

    threads[0].start()
    writer.begins[0].wait(10)
    threads[1].start()
    system.wait(lambda: system.sleepers >= 1, 10)
    threads.append(threading.Thread(target=direct))
    threads[2].start()
    try:
        with pytest.raises(KeyboardInterrupt):
            commit.run(3)
        found = list(writer.written)
    finally:
        is_over.set()
        for thread in threads:
            thread.join(10)

    assert [1, 2, 3] == found
