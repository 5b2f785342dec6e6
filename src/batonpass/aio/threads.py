"""Threads for blocking code: one pool for the ledger, and a thread of its own for each piece of agent code."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

Returned = TypeVar("Returned")

# This many methods can wait for the store at once, and those that wait together are committed together. The executor of
# the event loop has six threads on a machine with two cores, and other code may fill it.
_MOST_AT_ONCE: Final = 32


class _Pool:
    """The threads of this process that work on the ledger."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)

    def get(self) -> ThreadPoolExecutor:
        """Return the executor. It is started when it is first needed."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="batonpass-ledger")
            return self._executor

    def _forget(self) -> None:
        # Threads do not survive a fork: work given to this executor in the child would wait for ever.
        self._executor, self._lock = None, threading.Lock()


_POOL: Final = _Pool()


async def in_thread(act: Callable[[], Returned], *, undo: Callable[[Returned], object] | None = None) -> Returned:
    """Run `act` in the pool. A cancellation is raised only after `act` has finished.

    `undo` then gets the result, if nobody could find it again otherwise.
    """
    loop = asyncio.get_running_loop()
    done = loop.run_in_executor(_POOL.get(), contextvars.copy_context().run, act)
    if await until_done(done):
        if done.exception() is None and undo is not None:
            undone = loop.run_in_executor(_POOL.get(), undo, done.result())
            await until_done(undone)
            undone.exception()
        raise asyncio.CancelledError
    return done.result()


async def until_done(done: "asyncio.Future[Any]") -> bool:
    """Wait for work that cannot be interrupted. Return whether somebody tried to cancel it."""
    cancelled = False
    while not done.done():
        try:
            await asyncio.wait({done})
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


def in_own_thread(act: Callable[[], Returned]) -> "asyncio.Future[Returned]":
    """Start work that may take long, in a thread of its own."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Returned] = loop.create_future()
    future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody may be left to await it
    context = contextvars.copy_context()

    def work() -> None:
        try:
            returned = context.run(act)
        except StopIteration as error:
            tell(future.set_exception, RuntimeError(f"raised {error!r}"))  # a future cannot hold a StopIteration
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            tell(future.set_exception, error)
        else:
            tell(future.set_result, returned)

    def tell(settle: Callable[[Any], None], value: object) -> None:
        with suppress(RuntimeError):  # the loop is closed; whatever was recorded stays recorded
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(value))

    threading.Thread(target=work, name="batonpass-agent", daemon=True).start()
    return future
