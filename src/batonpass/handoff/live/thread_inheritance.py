"""Threads inherit a context variable of ours: from where they are started, or where their work is submitted.

Python does this by itself only from 3.14 on, if it is told to (`sys.flags.thread_inherit_context`), and never for work
that is submitted to a pool. So we wrap `Thread.start` and `ThreadPoolExecutor.submit`, once in a process. Both carry
that one variable and nothing else; where it has no value, they behave as always.
"""

import functools
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, ContextVar
from typing import Any, Final, Generic, TypeVar

Value = TypeVar("Value")

# The workers of `multiprocessing.pool.ThreadPool`. They are started by whoever makes the pool, and work for everybody
# who gives it work: what they inherited would be a guess.
_WORKS_FOR_ALL: Final = "multiprocessing.dummy"


class ThreadInheritance(Generic[Value]):
    """Whether threads of this process inherit a variable. Nothing is wrapped before `begin`."""

    def __init__(self, variable: ContextVar[Value | None]) -> None:
        self._variable = variable
        self._lock = threading.Lock()
        self._is_on = True
        self._undo: list[Callable[[], None]] = []
        self.is_decided = False  # whether `begin` or `stop` was called: whoever asks often looks here first

    def begin(self) -> None:
        """Let threads inherit the variable from now on, unless `stop` was called. Twice is as good as once."""
        with self._lock:
            if self.is_decided:
                return
            if not getattr(sys.flags, "thread_inherit_context", False):
                self._wrap(threading.Thread, "start", self._start)
            # Once the main thread has ended, Python refuses to load pools: nobody can have one then.
            with suppress(RuntimeError):
                # Only now: a program that works for no run does not load the pools of the standard library for us.
                from concurrent.futures.thread import ThreadPoolExecutor  # noqa: PLC0415

                self._wrap(ThreadPoolExecutor, "submit", self._submit)
            self.is_decided = True

    def stop(self) -> None:
        """Let threads inherit nothing from now on; those that were started keep their value."""
        with self._lock:
            self.is_decided, self._is_on = True, False
            while self._undo:
                self._undo.pop()()

    def _wrap(self, owner: type, name: str, wrapper: Callable[..., Any]) -> None:
        plain = getattr(owner, name)

        # A function, not a partial: only functions become methods.
        @functools.wraps(plain)
        def wrapped(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the method takes
            value = self._variable.get()
            if value is None or not self._is_on:
                return plain(*args, **kwargs)
            return wrapper(plain, value, *args, **kwargs)

        def undo() -> None:
            # If somebody wrapped ours since, theirs stays, and calls ours, which does nothing any more.
            if owner.__dict__.get(name) is wrapped:
                setattr(owner, name, plain)

        setattr(owner, name, wrapped)
        self._undo.append(undo)

    def _start(self, plain: Callable[..., None], value: Value, thread: threading.Thread) -> None:
        has_own_context = getattr(thread, "_context", None) is not None  # `Thread(context=…)`, from Python 3.14 on
        if thread.ident is not None or has_own_context or type(thread).__module__ == _WORKS_FOR_ALL:
            plain(thread)
            return
        # On the instance: a subclass has a `run` of its own, and need not call that of `Thread`.
        own = vars(thread)
        before = own.get("run")
        work = thread.run

        def run() -> None:
            own.pop("run", None)  # kept, the thread and its work would name each other for ever
            self._variable.set(value)
            work()

        own["run"] = run
        try:
            plain(thread)
        except BaseException:
            # Whoever starts it later may work for somebody else. But an interrupt also comes to whoever waits for a
            # thread that has begun: that one works with what it inherited, and has removed our `run` or soon will.
            if thread.ident is None and own.pop("run", None) is not None and before is not None:
                own["run"] = before
            raise

    def _submit(
        self,
        plain: Callable[..., Any],
        value: Value,
        pool: object,
        work: Callable[..., Any],
        /,
        *args: object,
        **kwargs: object,
    ) -> object:
        # `context.run` says itself in which context it works.
        if not isinstance(getattr(work, "__self__", None), Context):
            work = functools.partial(self._work_with, value, work)
        # Nothing is current meanwhile: a thread that this submit starts also works for later submits of others.
        token = self._variable.set(None)
        try:
            return plain(pool, work, *args, **kwargs)
        finally:
            self._variable.reset(token)

    def _work_with(self, value: Value, work: Callable[..., object], /, *args: object, **kwargs: object) -> object:
        token = self._variable.set(value)
        try:
            return work(*args, **kwargs)
        finally:
            self._variable.reset(token)
