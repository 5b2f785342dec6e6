"""Threads for what blocks: a pool for acts on the ledger, and one each for the code of agents, which may take long."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

Returned = TypeVar("Returned")


async def in_thread(act: Callable[[], Returned], *, undo: Callable[[Returned], object] | None = None) -> Returned:
    """Do something with the ledger. A cancellation waits until it is done, or undone if nobody could find it again."""
    loop = asyncio.get_running_loop()
    done = loop.run_in_executor(None, contextvars.copy_context().run, act)
    if await until_done(done):
        if done.exception() is None and undo is not None:
            undone = loop.run_in_executor(None, undo, done.result())
            await until_done(undone)
            undone.exception()
        raise asyncio.CancelledError
    return done.result()


async def until_done(done: "asyncio.Future[Any]") -> bool:
    """Wait for something that cannot be interrupted. Return whether somebody tried to."""
    cancelled = False
    while not done.done():
        try:
            await asyncio.wait({done})
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


def in_own_thread(act: Callable[[], Returned]) -> "asyncio.Future[Returned]":
    """Begin something that may take long, in a thread that nobody else waits for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Returned] = loop.create_future()
    future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # it may end with nobody waiting
    context = contextvars.copy_context()

    def work() -> None:
        try:
            returned = context.run(act)
        except StopIteration as error:
            tell(future.set_exception, RuntimeError(f"raised {error!r}"))  # no future can hold it
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            tell(future.set_exception, error)
        else:
            tell(future.set_result, returned)

    def tell(settle: Callable[[Any], None], value: object) -> None:
        with suppress(RuntimeError):  # the loop is gone: what was recorded is recorded
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(value))

    threading.Thread(target=work, name="batonpass-agent", daemon=True).start()
    return future
