"""Threads work for the run that was current where they were started: that one, or none."""

import contextvars
import functools
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from batonpass import current_run
from batonpass.adapters.own_loop import recorded_tool
from batonpass.errors import InvalidValueError, StreamClosedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.live.thread_inheritance import ThreadInheritance
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA

NOBODY = "there is none here"


def seen() -> str:
    """Return which run is current, or what is said instead."""
    try:
        return current_run().id
    except InvalidValueError as error:
        return error.problem
    except StreamClosedError as error:
        return str(error)


def in_thread(make: Callable[[Callable[[], None]], threading.Thread]) -> str:
    """Return what a thread sees that is started here."""
    told: list[str] = []
    thread = make(lambda: told.append(seen()))
    thread.start()
    thread.join()
    return told[0]


class Own(threading.Thread):
    """A thread with a `run` of its own, which does not call that of `Thread`."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self.work = work

    def run(self) -> None:
        """Work."""
        self.work()


WAYS: dict[str, Callable[[Callable[[], None]], threading.Thread]] = {
    "a thread with a target": lambda work: threading.Thread(target=work),
    "a timer": lambda work: threading.Timer(0, work),
    "a subclass": Own,
}


@pytest.mark.parametrize("make", WAYS.values(), ids=WAYS)
def test_a_thread_works_for_the_run_that_started_it(
    relay: Relay, make: Callable[[Callable[[], None]], threading.Thread]
) -> None:
    """Which is the innermost; and none where there is none."""
    with relay.start("begin", by=ANA) as lead:
        with lead.hand_off("editor", "one") as child:
            inner = in_thread(make)
        outer = in_thread(make)
    after = in_thread(make)

    assert (child.id, lead.id) == (inner, outer)
    assert NOBODY in after


def test_started_counts_and_not_made(relay: Relay) -> None:
    """A thread that is made in a run and started outside works for nobody, and the other way round."""
    told: list[str] = []
    outside = threading.Thread(target=lambda: told.append(seen()))
    with relay.start("begin", by=ANA) as lead:
        inside = threading.Thread(target=lambda: told.append(seen()))
        outside.start()
        outside.join()
    inside.start()
    inside.join()

    assert lead.id == told[0]
    assert NOBODY in told[1]


def test_a_thread_of_a_thread_works_for_the_same_run(relay: Relay) -> None:
    """However many lie between."""
    with relay.start("begin", by=ANA) as lead, ThreadPoolExecutor(1) as pool:
        told = pool.submit(lambda: in_thread(WAYS["a timer"])).result()

    assert lead.id == told


def test_a_pool_works_for_the_run_of_each_submit(relay: Relay) -> None:
    """Its one worker was started by the first of them, and keeps nobody's."""
    with ThreadPoolExecutor(1) as pool:
        with relay.start("begin", by=ANA) as lead:
            with lead.hand_off("editor", "one") as child:
                told = [pool.submit(seen).result(), *pool.map(lambda _: seen(), range(2))]
            told.append(pool.submit(seen).result())
        nobody = pool.submit(seen).result()
        with relay.start("begin again", by=ANA) as second:
            told.append(pool.submit(seen).result())

    assert [child.id] * 3 + [lead.id, second.id] == told
    assert NOBODY in nobody


def test_work_that_fails_leaves_no_run_behind(relay: Relay) -> None:
    """An error comes out as it is, and the next work of nobody has no run."""

    def fail() -> None:
        raise KeyError(current_run().id)

    with ThreadPoolExecutor(1) as pool:
        with relay.start("begin", by=ANA) as lead, pytest.raises(KeyError, match=lead.id):
            pool.submit(fail).result()
        nobody = pool.submit(seen).result()

    assert NOBODY in nobody


def test_pools_side_by_side_do_not_mix_runs(relay: Relay) -> None:
    """Eight runs at once share one pool of three; each piece of work is done for its own run."""
    with ThreadPoolExecutor(3) as pool:

        def work(number: int) -> bool:
            with relay.start(f"number {number}", by=ANA) as run:
                return {run.id} == {one.result() for one in [pool.submit(seen) for _ in range(20)]}

        with ThreadPoolExecutor(8) as programs:
            own = list(programs.map(work, range(8)))

    assert [True] * 8 == own


def test_a_pool_that_everybody_uses_works_for_nobody(relay: Relay) -> None:
    """The workers of `multiprocessing.pool.ThreadPool` are started by whoever makes it: that says nothing."""
    with relay.start("begin", by=ANA), ThreadPool(1) as pool:
        told = pool.apply(seen)

    assert NOBODY in told


def test_a_context_that_is_passed_along_counts(relay: Relay) -> None:
    """Whoever submits `context.run` says themselves for whom it works."""
    nobody = contextvars.copy_context()
    with relay.start("begin", by=ANA) as lead, ThreadPoolExecutor(1) as pool:
        told = pool.submit(nobody.run, seen).result(), pool.submit(contextvars.copy_context().run, seen).result()

    assert NOBODY in told[0]
    assert lead.id == told[1]


def test_a_thread_that_outlives_its_run_is_refused(relay: Relay) -> None:
    """It gets neither the old run, nor the next one, nor leave to work without one."""
    ended, told, made = threading.Event(), [], []

    @recorded_tool
    def write() -> None:
        made.append("written")

    def late() -> None:
        assert ended.wait(30)
        told.append(seen())
        try:
            write()
        except StreamClosedError as error:
            told.append(str(error))

    with relay.start("begin", by=ANA) as lead:
        thread = threading.Thread(target=late)
        thread.start()
    with relay.start("another", by=ANA):
        ended.set()
        thread.join()

    assert [f"{lead.id} is closed; start a new run to continue"] * 2 == told
    assert [] == made


def test_a_thread_that_has_ended_keeps_no_run(relay: Relay) -> None:
    """Neither the thread nor its run waits for the garbage collector to undo a ring of names."""
    with relay.start("begin", by=ANA):
        thread = threading.Thread(target=seen)
        thread.start()
        thread.join()
        gone = weakref.ref(thread)
        gc.disable()
        try:
            del thread
            assert gone() is None
        finally:
            gc.enable()


def test_a_thread_that_could_not_start_may_start_for_somebody_else(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine had no room for it; tried again in another run, it works for that one."""
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(seen()))

    def no_room(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    with relay.start("begin", by=ANA):
        pass
    with relay.start("begin", by=ANA) as lead:
        with lead.hand_off("editor", "one"), monkeypatch.context() as patched:
            patched.setattr(threading, "_start_joinable_thread", no_room, raising=False)
            patched.setattr(threading, "_start_new_thread", no_room, raising=False)
            with pytest.raises(RuntimeError, match="can't start"):
                thread.start()
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="once"):
            thread.start()

    assert [lead.id] == told


@pytest.mark.parametrize("works", [True, False], ids=["while it works", "before it works"])
def test_an_interrupt_does_not_disturb_a_thread_that_has_begun(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, *, works: bool
) -> None:
    """Whoever starts it waits until it has begun, and an interrupt comes to that wait; it works for its run."""
    told: list[str] = []
    begun, may_work = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        told.append(seen())

    def interrupt(wait: Callable[[], object]) -> None:
        wait()
        if works:
            may_work.set()
            begun.wait()
        raise KeyboardInterrupt

    def trace(*_: object) -> None:
        may_work.wait()  # called as the thread enters its first function, before `run`
        sys.settrace(None)

    thread = threading.Thread(target=work)
    started: Any = vars(thread)["_started"]
    monkeypatch.setattr(started, "wait", functools.partial(interrupt, started.wait))
    monkeypatch.setattr(threading, "_trace_hook", trace)
    with relay.start("begin", by=ANA) as lead:
        with pytest.raises(KeyboardInterrupt):
            thread.start()
        may_work.set()
        begun.wait()
        monkeypatch.undo()
        thread.join()

    assert [lead.id] == told


Variable = contextvars.ContextVar[str | None]


@contextmanager
def inheriting(variable: Variable) -> Iterator[ThreadInheritance[str]]:
    """Let threads inherit a variable of this test, and leave them as they were."""
    inheritance = ThreadInheritance(variable)
    inheritance.begin()
    yield inheritance
    inheritance.stop()


def value_in_thread(variable: Variable) -> str | None:
    """Return the value of a variable in a thread that is started here."""
    told: list[str | None] = []
    thread = threading.Thread(target=lambda: told.append(variable.get()))
    thread.start()
    thread.join()
    return told[0]


def test_twice_is_as_good_as_once_and_stopping_leaves_nothing_behind() -> None:
    """The methods of the standard library are those of before, to the object."""
    variable: Variable = contextvars.ContextVar("told", default=None)
    before = threading.Thread.start, ThreadPoolExecutor.submit
    with inheriting(variable) as inheritance:
        once = threading.Thread.start, ThreadPoolExecutor.submit
        inheritance.begin()
        twice = threading.Thread.start, ThreadPoolExecutor.submit
    after = threading.Thread.start, ThreadPoolExecutor.submit

    assert once == twice
    assert before == after
    assert set(before).isdisjoint(once)


def test_only_our_variable_is_carried() -> None:
    """A variable of somebody else has its default in a new thread, as ever."""
    ours: Variable = contextvars.ContextVar("ours", default=None)
    theirs: Variable = contextvars.ContextVar("theirs", default=None)

    def work() -> tuple[str | None, str | None, str | None]:
        ours.set("inherited")
        theirs.set("own")
        with ThreadPoolExecutor(1) as pool:
            return value_in_thread(ours), value_in_thread(theirs), pool.submit(theirs.get).result()

    with inheriting(ours):
        assert ("inherited", None, None) == contextvars.copy_context().run(work)


def wrap_start(names: list[str]) -> Callable[[], None]:
    """Wrap `Thread.start` as tracing libraries do, with the work of the thread; return what undoes it."""
    plain = threading.Thread.start

    @functools.wraps(plain)
    def start(self: threading.Thread) -> Any:  # noqa: ANN401 - as what it wraps
        work = self.run

        def run() -> None:
            names.append(self.name)
            work()

        self.run = run  # type: ignore[method-assign]  # as such libraries do
        return plain(self)

    threading.Thread.start = start  # type: ignore[method-assign]  # as such libraries do

    def undo() -> None:
        threading.Thread.start = plain  # type: ignore[method-assign]  # as it was

    return undo


@pytest.mark.parametrize("first", [True, False], ids=["they wrap before us", "they wrap after us"])
def test_others_may_wrap_too(first: bool) -> None:  # noqa: FBT001 - a case
    """Both are told of each thread, in either order; and ours does nothing any more once it is stopped."""
    variable: Variable = contextvars.ContextVar("told", default=None)
    names: list[str] = []
    inheritance = ThreadInheritance(variable)

    def work() -> tuple[str | None, str | None]:
        variable.set("inherited")
        told = value_in_thread(variable)
        inheritance.stop()
        return told, value_in_thread(variable)

    if first:
        undo = wrap_start(names)
        inheritance.begin()
    else:
        inheritance.begin()
        undo = wrap_start(names)
    try:
        told = contextvars.copy_context().run(work)
    finally:
        undo()
        inheritance.stop()

    assert ("inherited", None) == told
    assert 2 == len(names)


SEEN_IN_THREAD = """
import threading
from concurrent.futures import ThreadPoolExecutor
before = threading.Thread.start
from batonpass import Relay, current_run
from batonpass.errors import InvalidValueError
with Relay.open("memory:") as relay:
    assert threading.Thread.start is before  # nothing is wrapped for a program that has no run
    with relay.start("begin", by="user:ana") as lead, ThreadPoolExecutor(1) as pool:
        def seen():
            try:
                return current_run() is lead
            except InvalidValueError:
                return None
        print(threading.Thread.start is before, pool.submit(seen).result())
"""


@pytest.mark.parametrize(
    ("told", "expected"),
    [({}, "False True"), ({"BATONPASS_THREADS": "off"}, "True None")],
    ids=["by default", "switched off"],
)
def test_it_begins_with_the_first_run_and_can_be_switched_off(told: dict[str, str], expected: str) -> None:
    """`BATONPASS_THREADS=off` leaves the standard library alone."""
    done = subprocess.run([sys.executable, "-c", SEEN_IN_THREAD], env=told, capture_output=True, text=True, check=True)

    assert expected == done.stdout.strip()


AFTER_THE_MAIN_THREAD = """
import sys, threading
from batonpass import Relay, current_run
relay = Relay.open("memory:")
def work():
    threading.main_thread().join()
    with relay.start("begin", by="user:ana") as lead:
        print(current_run() is lead, "concurrent.futures.thread" in sys.modules)
threading.Thread(target=work).start()
"""


def test_a_run_can_begin_after_the_main_thread_has_ended() -> None:
    """Python loads no pools any more then, so there is none whose work could inherit a run."""
    done = subprocess.run([sys.executable, "-c", AFTER_THE_MAIN_THREAD], capture_output=True, text=True, check=True)

    assert ("True False", "") == (done.stdout.strip(), done.stderr)


def test_a_runner_is_a_thread_s_run_too(relay: Relay) -> None:
    """What a registered agent starts works for the agent's run."""
    found: list[tuple[str, str]] = []

    def work(run: LiveRun) -> None:
        found.append((run.id, in_thread(WAYS["a timer"])))

    relay.register("editor", work)
    with relay.start("begin", by=ANA) as lead:
        lead.hand_off("editor", "here").wait()

    assert [(run, run) for run, _ in found] == found
    assert found
