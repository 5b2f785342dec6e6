"""The middleware that records: it sees requests to models and tool calls, and decides about them. It needs the extra.

What it does between two steps of LangGraph blocks on the ledger only; the asynchronous forms do it in a thread.
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
    ToolMessage,
    convert_to_messages,
    messages_from_dict,
    messages_to_dict,
)
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command, interrupt

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import reopen, resume_work
from batonpass.adapters.langgraph.graph_works import (
    RESUMED,
    Caller,
    GraphMoment,
    GraphWorks,
    messages_of,
    moment_of,
    recognised,
    text_of,
    within,
    words_of,
)
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.errors import (
    BatonpassError,
    CallError,
    CallSuspendedError,
    GrantError,
    HandoffError,
    HandoffHeldError,
    InvalidValueError,
)
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.model.base.ids import as_agent

FRAMEWORK: Final = "langgraph"
_DESTINATION: Final = "__handoff_destination"  # where tools of swarm and supervisor say to whom they transfer
_CHECKPOINTER: Final = "__pregel_checkpointer"
_SUBAGENT: Final = frozenset({"description", "subagent_type"})  # the arguments of the tool `task` of deepagents
_HELD: Final = (CallSuspendedError, HandoffHeldError)


class ToolFailedError(Exception):
    """A tool answered with an error."""


class RecordedGraphs(AgentMiddleware):
    """Records the agents that have it. One middleware serves all agents of a graph."""

    def __init__(self, ledger: FrameworkLedger, delegates: Sequence[str] = ()) -> None:
        super().__init__()
        self.ledger = ledger
        self._delegates = frozenset(delegates)
        self._works = GraphWorks(ledger)

    @property
    def name(self) -> str:
        """Return the name of the middleware."""
        return "batonpass"

    def resume(self, agent: Any, which: str = LAST, **options: Any) -> Any:
        """Go on with a handoff that failed or waited for somebody, or with a root run whose process is gone.

        Only its own agent runs, from its last messages on, and what it had finished is not done again. To go on with
        the whole graph, invoke it with its thread, as without us. Raises `InvalidValueError` if it is the work of
        another agent than the one given.
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
        return handler(request if moment is None else self._prepared(moment, request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same as `wrap_model_call`."""
        moment = moment_of(get_config(), request.state)
        return await handler(request if moment is None else await in_thread(lambda: self._prepared(moment, request)))

    def _prepared(self, moment: GraphMoment, request: Any) -> Any:
        """Start the run or accept the handoff of an agent, with a checkpoint, and return what its model gets."""
        self.ledger.leave_uncovered([_name_of(tool) for tool in request.tools if isinstance(tool, Mapping)])
        work = self._open(moment)
        if work.waits is not None:
            raise work.waits
        work.checkpoint({"framework": FRAMEWORK, "messages": _kept(request.messages)})
        briefing = work.briefing()
        # In the user's role: the words are the sender's, and never the operator's.
        return request.override(messages=[HumanMessage(briefing), *request.messages]) if briefing else request

    def _open(self, moment: GraphMoment) -> AgentWork:
        """Return the work of an agent, which has begun. Raises what `AgentWork.open` raises, and a pause."""
        while True:
            try:
                work = self._works.find(moment)
                is_new = work.run is None
                work.open()
            except HandoffHeldError as held:
                if not _can_pause(moment):
                    raise
                _pause(moment, held)
            else:
                if is_new:
                    work.recognise(recognised(self.ledger, moment))
                return work

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Make a call through the run of its agent: judged and recorded before, recorded after."""
        moment = moment_of(get_config(), request.state)
        if moment is None:
            return handler(request)
        asked = self._asked(moment, request)
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

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same as `wrap_tool_call`."""
        moment = moment_of(get_config(), request.state)
        if moment is None:
            return await handler(request)
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
        if call["name"] in self._delegates or (call["name"] == "task" and set(call["args"]) >= _SUBAGENT):
            return AskedAgent(self._works, moment, work, request)
        return AskedCall(self._works, moment, work, request)


class AskedTool:
    """What a model asks for with a tool call: a call, or a handoff in the form of one."""

    def __init__(self, works: GraphWorks, moment: GraphMoment, work: AgentWork, request: Any) -> None:
        self.works = works
        self.moment = moment
        self.work = work
        self.request = request
        call = request.tool_call
        self.tool: str = call["name"]
        self.arguments: dict[str, Any] = call["args"]
        # The namespace of a call is of its node: two calls with one id, as careless models make them, have two.
        self.key = f"{moment.configured.get('checkpoint_ns', '')}:{call['id']}"
        self.caller = Caller(work, self.key)

    def begin(self) -> ToolMessage | None:
        """Decide about it before anything is done; return what the model reads instead, if there is something."""
        raise NotImplementedError

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Let agents that begin here be handoffs from its agent."""
        with within(self.caller):
            yield

    def fail(self, error: BaseException) -> ToolMessage | None:
        """Record that it failed. Return what the model reads; None if the error goes on."""
        if isinstance(error, CallError | GrantError | HandoffError):
            return self.tell(self.work.tell_refusal(error), refused=True)
        return None

    def end(self, result: Any) -> Any:
        """Record its result, and return what LangGraph gets."""
        return result

    def tell(self, content: Any, *, refused: bool) -> ToolMessage:
        """Return a message for the model."""
        return ToolMessage(
            content=content,
            name=self.tool,
            tool_call_id=self.request.tool_call["id"],
            status="error" if refused else "success",
        )

    def judged(self, judge: Callable[[], BatonpassError | None]) -> ToolMessage | None:
        """Return the refusal for the model; None if there is none. What waits for a person pauses the graph."""
        while isinstance(error := judge(), _HELD) and _can_pause(self.moment):
            _pause(self.moment, error)
        return None if error is None else self.tell(sentence_for(error), refused=True)


class AskedCall(AskedTool):
    """A call of an ordinary tool."""

    def __init__(self, works: GraphWorks, moment: GraphMoment, work: AgentWork, request: Any) -> None:
        super().__init__(works, moment, work, request)
        declared = works.ledger.tools.find(self.tool, _function_of(request.tool))
        self.call: FrameworkCall = framework_call(declared, self.arguments)
        self.begun: Begun | None = None
        self.known: Replayed | None = None

    def begin(self) -> ToolMessage | None:
        """Judge it, and record its request."""
        refusal = self.judged(self._judge)
        if refusal is None and self.known is not None:
            return self.tell(self.known.value, refused=False)
        return refusal

    def _judge(self) -> BatonpassError | None:
        self.begun, told = self.work.ask(self.call)
        self.known = told if isinstance(told, Replayed) else None
        return None if isinstance(told, Replayed) else told

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Let code in the tool find the run of its agent."""
        with super().current(), contextlib.nullcontext() if self.work.run is None else self.work.run.as_current():
            yield

    def fail(self, error: BaseException) -> ToolMessage | None:
        """Record that it failed, or that it was not made after all: a tool that pauses is called again."""
        if self.begun is not None:
            self.work.fail(self.begun, self.call, error, made=not isinstance(error, GraphBubbleUp))
        return super().fail(error)

    def end(self, result: Any) -> Any:
        """Record its result; a result from outside is quoted where models are told more."""
        if self.begun is None:
            return result
        message = _message_of(result, self.request.tool_call["id"])
        if message is None:
            self.work.end(self.begun, self.call, _plain(result))
            return result
        if message.status == "error":
            self.work.fail(self.begun, self.call, ToolFailedError(text_of(message)))
            return result
        shown = self.work.end(self.begun, self.call, message.content)
        if shown is message.content:
            return result
        return _replaced(result, message, message.model_copy(update={"content": shown}))


class AskedTransfer(AskedTool):
    """A transfer of the conversation to another node of the graph around."""

    def __init__(self, works: GraphWorks, moment: GraphMoment, work: AgentWork, request: Any, to: str) -> None:
        super().__init__(works, moment, work, request)
        self._to = to
        self._offered: AgentWork | None = None

    def begin(self) -> ToolMessage | None:
        """Offer it: the graph may carry out one transfer of a turn, and drop the others."""
        return self.judged(self._judge)

    def _judge(self) -> BatonpassError | None:
        task = json.dumps(self.arguments, ensure_ascii=False) if self.arguments else words_of(self.moment.messages)
        try:
            self._offered = self.works.offer(self.moment, self.work, to=self._to, task=task, key=self.key)
        except (HandoffError, GrantError) as error:
            return error
        return None


class AskedAgent(AskedTool):
    """A tool that does nothing but run another agent: a handoff alone."""

    def begin(self) -> ToolMessage | None:
        """Offer the task if the call names its agent; else the agent is handed it when it begins."""
        return self.judged(self._judge) if set(self.arguments) >= _SUBAGENT else None

    def _judge(self) -> BatonpassError | None:
        to, task = as_agent(str(self.arguments["subagent_type"])), str(self.arguments["description"])
        try:
            self.caller.offered = self.work.offer(to, task, key=self.key)
        except (HandoffError, GrantError) as error:
            return error
        return None


def _can_pause(moment: GraphMoment) -> bool:
    """Return whether LangGraph keeps what a paused graph needs to go on."""
    return moment.configured.get(_CHECKPOINTER) not in {None, False}


def _pause(moment: GraphMoment, error: BatonpassError) -> None:
    """Pause the graph until somebody has decided. Resuming it is no decision: whoever returns from here asks again."""
    moment.place.graph.hold(error)
    named = getattr(error, "call", None) or getattr(error, "handoff", None)
    interrupt({"batonpass": sentence_for(error), "approve": f"batonpass handoff approve {str(named)[-6:]}"})


@contextlib.contextmanager
def _resumed(work: AgentWork) -> Iterator[None]:
    token = RESUMED.set([work])
    try:
        yield
    finally:
        RESUMED.reset(token)


def _kept(messages: Sequence[AnyMessage]) -> Any:
    """Return messages as JSON."""
    return json.loads(json.dumps(messages_to_dict(convert_to_messages(messages)), default=str))


def _message_of(result: Any, call: str) -> ToolMessage | None:
    """Return the message with the result of a call, if LangGraph got one."""
    if isinstance(result, ToolMessage):
        return result
    update = result.update if isinstance(result, Command) else None
    said = (message for message in messages_of(update or {}) if isinstance(message, ToolMessage))
    return next((message for message in said if message.tool_call_id == call), None)


def _replaced(result: Any, old: ToolMessage, new: ToolMessage) -> Any:
    if result is old:
        return new
    messages = [new if message is old else message for message in result.update["messages"]]
    return Command(
        graph=result.graph, update={**result.update, "messages": messages}, resume=result.resume, goto=result.goto
    )


def _plain(result: Any) -> Any:
    if isinstance(result, Command):
        return json.dumps({"goto": str(result.goto), "update": result.update}, ensure_ascii=False, default=str)
    return str(result)


def _function_of(tool: Any) -> Callable[..., Any] | None:
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None)


def _name_of(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool.get("type") or "tool")
