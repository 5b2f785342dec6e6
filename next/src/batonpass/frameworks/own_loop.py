"""For a loop of one's own: `@recorded_agent` and `@recorded_tool` around functions, coroutines and generators.

    from batonpass.frameworks import recorded_agent, recorded_tool

    @recorded_tool(target="path")
    def write(path: str, text: str) -> None: ...

    @recorded_agent(by="user:ana")
    def lead(task: str) -> str: ...

That records on the ledger of the folder. An agent that another one calls is handed its task by it. A program with a
relay or with grants of its own gives its `Recording` first: `recorded_agent(recording)`.

A task of asyncio knows for which agent it runs. A new thread does not, unless it is begun so:
`Thread(target=contextvars.copy_context().run, args=(work,))`, or `pool.submit(copy_context().run, work)`.
"""

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from functools import partial, wraps
from inspect import Signature
from typing import Any, NoReturn, TypeVar, Unpack, overload

from msgspec import json

from batonpass.api.async_port import await_function
from batonpass.api.run_base import make_grant
from batonpass.api.tools import Declared, ToolArguments, call_function, signature_of, tool_of
from batonpass.frameworks.flows import adelegate, aguard, astream, delegate, guard, stream
from batonpass.frameworks.port import DEFAULT, Call, Recording, Refused, Work, current_work, encode_plain, text_of
from batonpass.model.grants import Grant
from batonpass.model.items import Brief

F = TypeVar("F", bound=Callable[..., Any])


@overload
def recorded_agent(recording: F, /) -> F: ...


@overload
def recorded_agent(
    recording: Recording | None = None,
    name: str | None = None,
    /,
    *,
    by: str = "",
    may: Sequence[str] | None = None,
    may_delegate: Sequence[str] | None = None,
    grant: Grant | None = None,
) -> Callable[[F], F]: ...


def recorded_agent(
    recording: Any = None,
    name: str | None = None,
    /,
    *,
    by: str = "",
    may: Sequence[str] | None = None,
    may_delegate: Sequence[str] | None = None,
    grant: Grant | None = None,
) -> Any:
    """Record a function as an agent: each call of it is a run, and its first argument is the task.

    `by` is for whom it works where it begins by itself. With a grant it is enforced, without one observed; an enforced
    agent hands work only to one that has a grant, here or by its name in the `Recording`.
    What it returned to an earlier attempt of its caller is given again, and it does not work a second time; a generator
    does, with the results of its finished calls.
    """
    own_grant = make_grant(may, may_delegate, grant)

    def recorded(function: F) -> F:
        signature, agent = inspect.signature(function), name or function.__name__

        def begin(args: tuple[object, ...], kwargs: Mapping[str, object]) -> Work:
            given = _by_name(signature, args, kwargs)
            task = text_of(given.pop(next(iter(given)))) if given else agent
            # The rest is part of the offer as well: with other arguments it is another handoff.
            brief = Brief(context=json.decode(encode_plain(given))) if given else None
            recorder = _recording(recording)
            return recorder.begin(agent, task, brief=brief, grant=own_grant, by=by, at_once=True)

        @wraps(function)
        def work(*args: object, **kwargs: object) -> object:
            return delegate(partial(begin, args, kwargs), partial(function, *args, **kwargs))

        @wraps(function)
        async def work_awaited(*args: object, **kwargs: object) -> object:
            return await adelegate(partial(begin, args, kwargs), partial(function, *args, **kwargs))

        @wraps(function)
        def work_in_steps(*args: object, **kwargs: object) -> Generator[object, Any, object]:
            return (yield from stream(partial(begin, args, kwargs), partial(function, *args, **kwargs)))

        @wraps(function)
        def work_in_awaited_steps(*args: object, **kwargs: object) -> AsyncGenerator[object, None]:
            return astream(partial(begin, args, kwargs), partial(function, *args, **kwargs))

        if inspect.isasyncgenfunction(function):
            return work_in_awaited_steps  # type: ignore[return-value]
        if inspect.isgeneratorfunction(function):
            return work_in_steps  # type: ignore[return-value]
        return work_awaited if inspect.iscoroutinefunction(function) else work  # type: ignore[return-value]

    # Without brackets it is given the function.
    return recorded if recording is None or isinstance(recording, Recording) else recorded(recording)


@overload
def recorded_tool(recording: F, /) -> F: ...


@overload
def recorded_tool(
    recording: Recording | None = None, name: str | None = None, /, **does: Unpack[ToolArguments]
) -> Callable[[F], F]: ...


def recorded_tool(recording: Any = None, name: str | None = None, /, **does: Unpack[ToolArguments]) -> Any:
    """Guard a function as a tool of the agent at work, which it finds by itself. It is declared as with `tool`.

    A refusal is raised: a loop of one's own may tell its model. A generator is refused, as its work would begin after
    its call was recorded as completed.
    """
    declared = Declared(**does)
    is_declared = name is not None or declared != Declared()

    def recorded(function: F) -> F:
        signature = signature_of(function)
        tool = declared.of(function, name) if is_declared else tool_of(function)

        def begin(args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[Call, dict[str, object]]:
            # By name and with defaults: the key of a call must not depend on how it was spelled.
            given = _by_name(signature, args, kwargs)
            return _recording(recording).call(tool.name, declared=tool), given

        @wraps(function)
        def make(*args: object, **kwargs: object) -> object:
            return guard(*begin(args, kwargs), partial(call_function, function, args, kwargs), _refuse)

        @wraps(function)
        async def make_awaited(*args: object, **kwargs: object) -> object:
            return await aguard(*begin(args, kwargs), partial(await_function, function, args, kwargs), _refuse)

        return make_awaited if inspect.iscoroutinefunction(function) else make  # type: ignore[return-value]

    # Without brackets it is given the function.
    return recorded if recording is None or isinstance(recording, Recording) else recorded(recording)


def _recording(given: object) -> Recording:
    if isinstance(given, Recording):
        return given
    work = current_work()
    return DEFAULT if work is None else work.recording


def _by_name(signature: Signature, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    named = dict(bound.arguments)
    if named and next(iter(named)) in {"self", "cls"}:  # a method: whose it is says nothing of the call
        named.pop(next(iter(named)))
    return named


def _refuse(refused: Refused) -> NoReturn:
    raise refused.error
