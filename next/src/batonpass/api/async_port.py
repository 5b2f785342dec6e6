"""The port, awaited: acts run in threads of their own. All that is asynchronous by hand, but for `frameworks`.

An act cannot be stopped halfway, so a caller that is cancelled waits until it is over, and hears of its cancellation
then. What it would have been given is taken back: a call that was begun is recorded as not made, and is not in doubt.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final, ParamSpec, TypeVar

from msgspec import UNSET, Struct

from batonpass.api import calls as call_acts
from batonpass.api import handoffs as handoff_acts
from batonpass.api import opening
from batonpass.api import runs as run_acts
from batonpass.api.acts import Act
from batonpass.api.port import Port
from batonpass.api.tools import require_finished
from batonpass.errors import BatonpassError

P = ParamSpec("P")
T = TypeVar("T")
Q = TypeVar("Q", bound=Struct)
A = TypeVar("A", bound=Struct)

_ACTS_AT_ONCE: Final = 32


class AsyncPort:
    """Any port, awaited."""

    def __init__(self, port: Port) -> None:
        self.port = port

    async def do(self, act: Act[Q, A], request: Q, key: str | None = None) -> A:
        """Return the answer. With a key the same request again has the same answer. Raises `BatonpassError`."""
        answer, cancelled = await _finish(partial(self.port.do, act, request, key))
        if cancelled is None:
            return answer
        undo = None if key is not None else _take_back(request, answer)  # with a key it will be asked again
        if undo is not None:
            with suppress(BatonpassError):
                await _finish(partial(self.port.do, *undo))
        raise cancelled

    async def close(self) -> None:
        """Give back what the port holds."""
        await aside(self.port.close)


async def open_async_port(*args: Any, **kwargs: Any) -> AsyncPort:  # noqa: ANN401 - those of `open_port`
    """Return a port to a ledger, awaited."""
    return AsyncPort(await aside(partial(opening.open_port, *args, **kwargs)))


async def aside(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what an act returns, from a thread. A caller that is cancelled waits until it is over."""
    result, cancelled = await _finish(partial(act, *args, **kwargs))
    if cancelled is not None:
        raise cancelled
    return result


async def await_function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what tools return
    """Return what a tool returns: a coroutine is awaited, and a function runs in a thread.

    No thread can be stopped, so a cancelled caller waits for a function, which then has an outcome and is not in doubt;
    the cancellation goes on at the next await. A coroutine is cancelled where it is.
    """
    if iscoroutinefunction(function):
        return require_finished(function, await function(*args, **kwargs))
    call = partial(copy_context().run, partial(function, *args, **kwargs))
    # Not in our threads: tools may take all day, and acts would wait for them.
    result, cancelled = await _wait_for(asyncio.get_running_loop().run_in_executor(None, call))
    if cancelled is not None:
        _cancel_later()
    value = result.result()
    return require_finished(function, await value if isawaitable(value) else value)


async def _finish(act: Callable[[], T]) -> tuple[T, asyncio.CancelledError | None]:
    """Return what an act returned, and whether its caller was cancelled meanwhile. Raises what the act raises."""
    work = partial(copy_context().run, act)
    future, cancelled = await _wait_for(asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), work))
    if cancelled is not None and future.exception() is not None:
        raise cancelled from future.exception()
    return future.result(), cancelled


async def _wait_for(future: "asyncio.Future[T]") -> tuple["asyncio.Future[T]", asyncio.CancelledError | None]:
    """Return a future when it is done, however often its caller is cancelled, and the last of these cancellations."""
    cancelled = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    return future, cancelled


def _cancel_later() -> None:
    """Let the cancellation that was held back come at the next await."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()  # it is the same one, and `asyncio.timeout` counts them
        task.cancel()


def _take_back(request: Struct, answer: Struct) -> tuple[Act[Any, Any], Struct] | None:
    """Return the act that ends what was begun for a caller that will never hear of it."""
    error = "not made: its caller was cancelled before it began"
    if isinstance(answer, call_acts.CallBegun) and isinstance(request, call_acts.BeginCall):
        is_begun = answer.result is UNSET and answer.call
        finish = call_acts.FinishCall(run=request.run, call=answer.call, error=error)
        return (call_acts.finish_call, finish) if is_begun else None
    if isinstance(answer, run_acts.Opened) and isinstance(request, run_acts.Start | handoff_acts.Accept):
        return run_acts.close, run_acts.Close(run=answer.run, error=error)
    return None


@cache
def _threads(process: int) -> ThreadPoolExecutor:  # a child after a fork has none of its parent's threads
    # Our own: acts that wait for a disk would fill those which everything else in the program shares.
    return ThreadPoolExecutor(_ACTS_AT_ONCE, f"batonpass-{process}")
