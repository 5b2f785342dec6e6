"""The port around code: a call through the guard, an agent from begin to end, a generator step by step."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from batonpass.api.async_port import aside
from batonpass.frameworks.port import VERDICTS, Call, Known, Refused, Work, within

T = TypeVar("T")
R = TypeVar("R")


def guard(call: Call, arguments: Mapping[str, Any], make: Callable[[], T], refuse: Callable[[Refused], T]) -> T:
    """Make a call through the guard. `refuse` says no in the framework's way: it returns, or raises."""
    verdict = call.judge(arguments)
    if isinstance(verdict, Refused):
        return refuse(verdict)
    if isinstance(verdict, Known):
        known: T = verdict.value
        return known
    try:
        with within(call.work, call):
            value = make()
    except BaseException as error:
        call.fail(error)
        if isinstance(error, VERDICTS):  # an agent that the tool asked was refused
            return refuse(Refused(error))
        raise
    call.succeed(value)
    return value


async def aguard(
    call: Call, arguments: Mapping[str, Any], make: Callable[[], Awaitable[T]], refuse: Callable[[Refused], T]
) -> T:
    """Make a call through the guard, awaited."""
    try:
        verdict = await aside(call.judge, arguments)
    except asyncio.CancelledError as error:  # judged and allowed, but cancelled before it began: not in doubt
        call.fail(error, is_made=False)
        raise
    if isinstance(verdict, Refused):
        return refuse(verdict)
    if isinstance(verdict, Known):
        known: T = verdict.value
        return known
    try:
        with within(call.work, call):
            value = await make()
    except BaseException as error:
        call.fail(error)
        if isinstance(error, VERDICTS):
            return refuse(Refused(error))
        raise
    await aside(call.succeed, value)
    return value


def delegate(begin: Callable[[], Work], work_on: Callable[[], T]) -> T:
    """Let an agent work, from its begin to its end. In a tool of another agent it is a handoff."""
    work = begin()
    work.open()
    if work.known is not None:
        known: T = work.known.value
        work.end(known)
        return known
    try:
        with within(work):
            value = work_on()
    except BaseException as error:
        work.end(error=error)
        raise
    work.end(value)
    return value


async def adelegate(begin: Callable[[], Work], work_on: Callable[[], Awaitable[T]]) -> T:
    """Let an agent work, awaited."""
    work = await aopen(begin)
    if work.known is not None:
        known: T = work.known.value
        work.end(known)
        return known
    try:
        with within(work):
            value = await work_on()
    except BaseException as error:
        work.end(error=error)
        raise
    await aside(work.end, value)
    return value


async def aopen(begin: Callable[[], Work]) -> Work:
    """Return work that has begun, by one way into a thread. If its caller is cancelled meanwhile, it ends so."""
    begun: list[Work] = []

    def begin_and_open() -> Work:
        begun.append(begin())
        begun[0].open()
        return begun[0]

    try:
        return await aside(begin_and_open)
    except asyncio.CancelledError as error:
        for work in begun:
            work.end(error=error)
        raise


def steps(events: Generator[T, Any, R], work: Work | None) -> Generator[T, Any, R]:
    """Yield what a generator yields. Each step runs for the agent; its reader, between them, does not."""
    step: Callable[[], T] = partial(next, events)
    try:
        while True:
            try:
                with within(work):
                    event = step()
            except StopIteration as stop:
                result: R = stop.value
                return result
            try:
                step = partial(events.send, (yield event))
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - it is for the generator, which raises it again
                step = partial(events.throw, error)
    finally:
        with within(work):  # what it does when it is dropped is still its agent's
            events.close()


async def asteps(events: AsyncGenerator[T, Any], work: Work | None) -> AsyncGenerator[T, None]:
    """Yield what an asynchronous generator yields, as `steps` does; what its reader sends is not passed on."""
    try:
        while True:
            try:
                with within(work):
                    event = await anext(events)
            except StopAsyncIteration:
                return
            yield event
    finally:
        with within(work):
            await events.aclose()


def stream(begin: Callable[[], Work], make: Callable[[], Generator[T, Any, R]]) -> Generator[T, Any, R]:
    """Let an agent that is a generator work, from its begin to its end."""
    work = begin()
    work.open()
    try:
        result = yield from steps(make(), work)
    except BaseException as error:
        work.end(error=error)
        raise
    work.end(result)
    return result


async def astream(begin: Callable[[], Work], make: Callable[[], AsyncGenerator[T, Any]]) -> AsyncGenerator[T, None]:
    """Let an agent that is an asynchronous generator work, from its begin to its end."""
    work = await aopen(begin)
    try:
        async with aclosing(asteps(make(), work)) as events:
            async for event in events:
                yield event
    except BaseException as error:
        work.end(error=error)
        raise
    await aside(work.end)
