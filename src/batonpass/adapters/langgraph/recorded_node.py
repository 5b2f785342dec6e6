"""Nodes of graphs that are agents: functions with a name. It needs the extra.

A graph that somebody wrote by hand has no agents, only nodes. A node that is decorated is an agent, which begins when
its function is called. Its function returns the next step of the graph: a command that goes to another such node is a
handoff to that agent. Everything else is the result of this one.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, Send

from batonpass.adapters.langgraph.asked_tools import HELD, pause
from batonpass.adapters.langgraph.graph_works import (
    Caller,
    GraphMoment,
    GraphWorks,
    messages_of,
    moment_of,
    within,
    words_of,
)
from batonpass.aio.threads import in_thread
from batonpass.errors import BatonpassError
from batonpass.handoff.tools.declaration import is_async
from batonpass.model.base.ids import AgentId, require_agent

if TYPE_CHECKING:
    from batonpass.adapters.frameworks.agent_work import AgentWork

Function = Callable[..., Any]


class AgentNodes:
    """The nodes that are agents, by the names that a graph may know them by."""

    def __init__(self, works: GraphWorks) -> None:
        self._works = works
        self._agents: dict[str, AgentId] = {}

    def decorate(self, agent: str) -> Callable[[Function], Function]:
        """Return a decorator for the function of a node."""
        name = require_agent("agent", AgentId(agent))

        def decorate(function: Function) -> Function:
            self._agents |= {agent: name, getattr(function, "__name__", agent): name}

            # LangGraph reads the parameters of the function, and passes arguments by name.
            if is_async(function):

                @functools.wraps(function)
                async def work_async(state: Any, *args: Any, **kwargs: Any) -> Any:
                    visit = self._visit(agent, state)
                    await in_thread(visit.begin)
                    try:
                        with visit.current():
                            result = await function(state, *args, **kwargs)
                        await in_thread(lambda: visit.end(result))
                    except BaseException as error:
                        await in_thread(functools.partial(visit.pause, error))
                        await in_thread(functools.partial(visit.fail, error))
                        raise
                    return result

                return work_async

            @functools.wraps(function)
            def work(state: Any, *args: Any, **kwargs: Any) -> Any:
                visit = self._visit(agent, state)
                visit.begin()
                try:
                    with visit.current():
                        result = function(state, *args, **kwargs)
                    visit.end(result)
                except BaseException as error:
                    visit.pause(error)
                    visit.fail(error)
                    raise
                return result

            return work

        return decorate

    def _visit(self, agent: str, state: Any) -> "NodeVisit":
        return NodeVisit(self._works, self._agents, moment_of(get_config(), state, agent, is_agent=True))


class NodeVisit:
    """One call of the function of a node."""

    def __init__(self, works: GraphWorks, agents: dict[str, AgentId], moment: GraphMoment) -> None:
        self._works = works
        self._agents = agents
        self._moment = moment
        self._work: AgentWork | None = None

    def begin(self) -> None:
        """Begin the work of its agent. Raises as `AgentWork.open`, and a pause if somebody has to decide first."""
        try:
            self._work = self._works.begin(self._moment)
            self._work.open()
        except BatonpassError as error:
            self.pause(error)
            raise

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """In this block, code finds the run, and an agent that begins is a handoff from it."""
        work = self._work
        assert work is not None  # noqa: S101 - it has begun
        with (
            within(Caller(work, self._moment.space)),
            contextlib.nullcontext() if work.run is None else work.run.as_current(),
        ):
            yield

    def end(self, result: Any) -> None:
        """Record the answer of the function: a result, or a handoff. Raises `HandoffError` and `GrantError`."""
        work, moment = self._work, self._moment
        assert work is not None  # noqa: S101 - as above
        goes = [one for one in _targets(result) if _name_of(one) in self._agents]
        for number, target in enumerate(goes):
            task = words_of(target.arg if isinstance(target, Send) else _updated(moment.state, result.update))
            self._works.offer(
                moment,
                work,
                to=_name_of(target),
                task=task,
                key=f"{moment.space}:{number}",
                agent=self._agents[_name_of(target)],
            )
        if goes:
            self._works.wait(moment, work)
        else:
            output = result.update if isinstance(result, Command) else result
            self._works.end(moment, work, output, None)

    def pause(self, error: BaseException) -> None:
        """Pause the graph if somebody has to decide first. Resuming the graph is no decision, so it pauses again."""
        while isinstance(error, HELD) and self._moment.is_kept:
            try:
                pause(self._moment, error)
            except GraphInterrupt:
                if self._work is not None:
                    self._works.pause(self._moment, self._work, error, self._moment.space)
                raise

    def fail(self, error: BaseException) -> None:
        """Record that the function raised. A pause of the program leaves the run open."""
        if self._work is None:
            return
        if isinstance(error, GraphInterrupt):
            self._works.pause(self._moment, self._work, None, self._moment.space)
        else:
            self._works.end(self._moment, self._work, None, error)


def _updated(state: Any, update: Any) -> Any:
    """Return the input of the next node: the state, with the updates of the command."""
    if not isinstance(state, Mapping) or not isinstance(update, Mapping):
        return state
    messages = {"messages": [*messages_of(state), *messages_of(update)]} if "messages" in state else {}
    return {**state, **update, **messages}


def _targets(result: Any) -> list[str | Send]:
    """Return where a returned command goes in the same graph."""
    if not isinstance(result, Command) or result.graph is not None:
        return []
    goes = result.goto
    return [goes] if isinstance(goes, str | Send) else list(goes)


def _name_of(target: str | Send) -> str:
    return target.node if isinstance(target, Send) else target
