"""Decorators for programs with a loop of their own: agents and tools are functions, and nobody passes runs around.

    @recorded_tool
    def write_file(path: str, text: str) -> None: ...

    @recorded_agent("editor")
    def edit(task: str) -> str: ...

Within a current run, calling an agent hands it the task, and calling a tool is a call of whichever agent is at work.
docs/guide/own-loop.md shows it.
"""

import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload
from weakref import WeakKeyDictionary

from batonpass.aio import AsyncRun
from batonpass.aio.run import AsyncHandoff
from batonpass.aio.threads import in_thread
from batonpass.default import start
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.current_run import find_current
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.programs.agent_makeup import makeup
from batonpass.handoff.tools.declaration import is_async
from batonpass.model.base.ids import AgentId, require_agent
from batonpass.model.baton.items import Report
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.policy.offer_options import Handling

__all__ = ["recorded_agent", "recorded_tool"]

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

_LOCK = threading.Lock()
_ASKED: WeakKeyDictionary[LiveRun, Counter[tuple[str, str]]] = WeakKeyDictionary()


@overload
def recorded_tool(function: Callable[Arguments, Returned], /) -> Callable[Arguments, Returned]: ...


@overload
def recorded_tool() -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]: ...


def recorded_tool(function: Callable[..., Any] | None = None, /) -> Any:
    """Make a function a tool whose calls are judged and recorded: by the current run, wherever it is called.

    Declare its target and effects with `batonpass.tool` below this decorator. Without a current run it is called as it
    is. A coroutine function stays one. Raises the errors of `run.call`.
    """
    if function is None:
        return recorded_tool
    if is_async(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the tool takes
            run = find_current()
            return await (AsyncRun(run).call if isinstance(run, LiveRun) else _plainly)(function, *args, **kwargs)

        return call_async

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        run = find_current()
        return run.call(function, *args, **kwargs) if isinstance(run, LiveRun) else function(*args, **kwargs)

    return call


async def _plainly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
    return await function(*args, **kwargs)


def recorded_agent(
    name: str,
    *,
    may: Sequence[str] = (),
    grant: GrantRequest | None = None,
    by: str | None = None,
    model: str | None = None,
    prompt: str | None = None,
    tools: Iterable[object] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function an agent. Its first argument is the task, a text; its return value is the result.

    Called within a run, it is handed the task, with the grant in `may` or `grant`. Each call is a handoff of its own,
    also with the same task. Called without a run, it is the root of a new one for the principal `by`, whose intent is
    the task. Raises the errors of `hand_off`, and `InvalidValueError` if there is neither a run nor `by`.

    `model`, `prompt` and `tools` are its parts. If one of them changes, drift begins a new comparison. Of the prompt
    only a digest is recorded.
    """
    agent = require_agent("name", AgentId(name))
    asked = _Asked(agent, may, grant, by, makeup(model=model, prompt=prompt, tools=tools) or None)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if is_async(function):

            @functools.wraps(function)
            async def work_async(task: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the agent takes
                opened = await in_thread(lambda: _open(asked, task))
                entered = AsyncHandoff(opened) if isinstance(opened, LiveHandoff) else AsyncRun(opened)
                async with entered as run:
                    result = await function(task, *args, **kwargs)
                    _report(run.sync, result)
                return result

            return work_async

        @functools.wraps(function)
        def work(task: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
            with _open(asked, task) as run:
                result = function(task, *args, **kwargs)
                _report(run, result)
            return result

        return work

    return decorate


class _Asked(NamedTuple):
    """The settings that are the same for every task of an agent."""

    agent: AgentId
    may: Sequence[str]
    grant: GrantRequest | None
    by: str | None
    made_of: Mapping[str, object] | None


def _open(asked: _Asked, task: str) -> LiveHandoff | LiveRun:
    agent, run = asked.agent, find_current()
    if isinstance(run, LiveRun):
        with _LOCK:
            before = _ASKED.setdefault(run, Counter())
            again = before[agent, task]
            before[agent, task] += 1
        handoff = run.hand_off(agent, task, may=asked.may, grant=asked.grant, handling=Handling(again=again))
        handoff._config = asked.made_of  # noqa: SLF001 - a door of the same handoff
        return handoff
    if asked.by is None:
        raise InvalidValueError(
            "by", f"the principal of {agent} is unknown: pass by=… here, or call it within a `start`"
        )
    return start(task, by=asked.by, agent=agent, may=asked.may, grant=asked.grant)


def _report(run: LiveRun, result: object) -> None:
    """Report the value that an agent returned, unless it reported by itself."""
    if run.reported is None and result is not None:
        run.report(result if isinstance(result, str | Report) else repr(result))
