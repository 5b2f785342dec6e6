"""The middleware that records: it sees requests to models and tool calls, and decides about them. It needs the extra.

Its work between two steps of LangGraph blocks on the ledger only; the asynchronous forms do it in a thread.
"""

import contextlib
import functools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import (
    AnyMessage,
    HumanMessage,
    convert_to_messages,
    messages_from_dict,
    messages_to_dict,
)
from langgraph.config import get_config
from langgraph.prebuilt import ToolNode

from batonpass.adapters.frameworks.agent_work import AgentWork, Makeup
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import reopen, resume_work
from batonpass.adapters.langgraph.asked_tools import (
    SUBAGENT,
    AskedAgent,
    AskedCall,
    AskedTool,
    AskedTransfer,
    pause,
)
from batonpass.adapters.langgraph.graph_watch import WATCH
from batonpass.adapters.langgraph.graph_works import RESUMED, GraphMoment, GraphWorks, moment_of, recognised
from batonpass.adapters.langgraph.recorded_node import AgentNodes
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.errors import HandoffHeldError, InvalidValueError
from batonpass.handoff.programs.agent_makeup import makeup
from batonpass.model.base.ids import as_agent

FRAMEWORK: Final = "langgraph"
_DESTINATION: Final = "__handoff_destination"  # where tools of swarm and supervisor say to whom they transfer


class RecordedGraphs(AgentMiddleware):
    """Records the agents that have it. One middleware serves all agents of a graph."""

    def __init__(self, ledger: FrameworkLedger, delegates: Sequence[str] = ()) -> None:
        super().__init__()
        self.ledger = ledger
        self._delegates = frozenset(delegates)
        self._works = GraphWorks(ledger)
        self._nodes = AgentNodes(self._works)

    @property
    def name(self) -> str:
        """Return the name of the middleware."""
        return "batonpass"

    def resume(self, agent: Any, which: str = LAST, **options: Any) -> Any:
        """Go on with a handoff that failed or waited for somebody, or with a root run whose process is gone.

        Only its own agent runs, from its last messages on, and its finished work is not repeated. To go on with the
        whole graph, invoke it with its thread, as without us. Raises `InvalidValueError` if it is the work of another
        agent than the one given.
        """
        work, given = self._reopen(agent, which)
        with _resumed(work):
            return agent.invoke(given, **options)

    async def aresume(self, agent: Any, which: str = LAST, **options: Any) -> Any:
        """Do the same as `resume`."""
        work, given = await in_thread(lambda: self._reopen(agent, which))
        with _resumed(work):
            return await agent.ainvoke(given, **options)

    def _reopen(self, agent: Any, which: str) -> tuple[AgentWork, dict[str, Any]]:
        run = reopen(self.ledger, which)
        name = as_agent(getattr(agent, "name", None) or "")
        if run.agent != name:
            raise InvalidValueError("agent", f"is {name}, and {run.id} is a run of {run.agent}")
        kept = run.messages()
        messages = messages_from_dict(kept["messages"]) if isinstance(kept, dict) else [HumanMessage(run.task)]
        return resume_work(self.ledger, run), {"messages": messages}

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let a model be asked: its agent has begun then, and its messages are kept."""
        moment = moment_of(get_config(), request.state)
        prepared = self._prepared(moment, request)
        with _guessed(moment) as guess:
            return guess(handler(prepared))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same as `wrap_model_call`."""
        moment = moment_of(get_config(), request.state)
        prepared = await in_thread(lambda: self._prepared(moment, request))
        with _guessed(moment) as guess:
            return guess(await handler(prepared))

    def _prepared(self, moment: GraphMoment, request: Any) -> Any:
        """Start the run or accept the handoff of an agent, with a checkpoint, and return the request for its model."""
        self.ledger.leave_uncovered([_name_of(tool) for tool in request.tools if isinstance(tool, Mapping)])
        work = self._open(moment, lambda: _made_of(request))
        if work.waits is not None:
            raise work.waits
        work.checkpoint({"framework": FRAMEWORK, "messages": _kept(request.messages)})
        briefing = work.briefing()
        # In the user's role: the words are the sender's, and never the operator's.
        return request.override(messages=[HumanMessage(briefing), *request.messages]) if briefing else request

    def _open(self, moment: GraphMoment, made_of: Callable[[], Makeup] | None = None) -> AgentWork:
        """Return the work of an agent, which has begun. Raises the errors of `AgentWork.open`, and a pause."""
        while True:
            try:
                work = self._works.find(moment)
                is_new = work.run is None
                work.open(made_of)
            except HandoffHeldError as held:
                if not moment.is_kept:
                    raise
                pause(moment, held)
            else:
                if is_new:
                    work.recognise(recognised(self.ledger, moment))
                return work

    def tool_node(self, tools: Sequence[Any], *, agent: str | None = None, **options: Any) -> ToolNode:
        """Return a `ToolNode` whose calls are recorded, for agents that take no middleware.

        `agent` is the name of the agent, by default that of its graph. The options are those of `ToolNode`.
        """
        inner, inner_async = options.pop("wrap_tool_call", None), options.pop("awrap_tool_call", None)

        def wrap(request: Any, execute: Callable[[Any], Any]) -> Any:
            made = execute if inner is None else functools.partial(_inside, inner, execute)
            return self.wrap_tool_call(request, made, agent)

        async def wrap_async(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
            made = execute if inner_async is None else functools.partial(_inside, inner_async, execute)
            return await self.awrap_tool_call(request, made, agent)

        return ToolNode(tools, wrap_tool_call=wrap, awrap_tool_call=wrap_async, **options)

    def node(self, agent: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Make a function that is a node of a graph an agent: `@recorded.node("editor")`.

        Its messages, else its state, have its task. If it returns a `Command` that goes to another such node, it hands
        its work to that agent. Inside, `current_run()` is its run. Name the node like its agent or its function.
        """
        return self._nodes.decorate(agent)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any], agent: str | None = None) -> Any:
        """Make a call through the run of its agent: judged and recorded before, recorded after."""
        asked = self._asked(moment_of(get_config(), request.state, agent), request)
        if (known := asked.begin()) is not None:
            return known
        try:
            with asked.current():
                result = handler(request)
        except BaseException as error:
            if (told := asked.fail(error)) is not None:
                return told
            raise
        return asked.end(result)

    async def awrap_tool_call(
        self, request: Any, handler: Callable[[Any], Awaitable[Any]], agent: str | None = None
    ) -> Any:
        """Do the same as `wrap_tool_call`."""
        moment = moment_of(get_config(), request.state, agent)
        asked = await in_thread(lambda: self._asked(moment, request))
        if (known := await in_thread(asked.begin)) is not None:
            return known
        try:
            with asked.current():
                result = await handler(request)
        except BaseException as error:
            if (told := await in_thread(functools.partial(asked.fail, error))) is not None:
                return told
            raise
        return await in_thread(lambda: asked.end(result))

    def _asked(self, moment: GraphMoment, request: Any) -> "AskedTool":
        work = self._open(moment)
        call = request.tool_call
        target = ((request.tool.metadata if request.tool is not None else None) or {}).get(_DESTINATION)
        if target is not None:
            return AskedTransfer(self._works, moment, work, request, str(target))
        if call["name"] in self._delegates or (call["name"] == "task" and set(call["args"]) >= SUBAGENT):
            return AskedAgent(self._works, moment, work, request)
        return AskedCall(self._works, moment, work, request)


@contextlib.contextmanager
def _guessed(moment: GraphMoment) -> Iterator[Callable[[Any], Any]]:
    """Guess the end of a graph of which LangChain told us nothing: an error, or an answer without calls."""
    graph = moment.place.graph

    def guess(response: Any) -> Any:
        answers = getattr(response, "result", None) or [response]
        if not graph.is_told and not any(getattr(answer, "tool_calls", ()) for answer in answers):
            WATCH.end_untold(graph, {"messages": answers}, None)
        return response

    try:
        yield guess
    except BaseException as error:
        if not graph.is_told:
            WATCH.end_untold(graph, None, error)
        raise


def _inside(inner: Callable[[Any, Any], Any], execute: Callable[[Any], Any], request: Any) -> Any:
    return inner(request, execute)


@contextlib.contextmanager
def _resumed(work: AgentWork) -> Iterator[None]:
    token = RESUMED.set([work])
    try:
        yield
    finally:
        RESUMED.reset(token)


def _made_of(request: Any) -> Makeup:
    return makeup(model=request.model, prompt=request.system_prompt, tools=request.tools)


def _kept(messages: Sequence[AnyMessage]) -> Any:
    """Return messages as JSON."""
    return json.loads(json.dumps(messages_to_dict(convert_to_messages(messages)), default=str))


def _name_of(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool.get("type") or "tool")
