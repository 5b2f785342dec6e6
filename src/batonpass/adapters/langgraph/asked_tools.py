"""Requests of a model by a tool call: for a call, a transfer, or the work of another agent. It needs the extra."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command, interrupt

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.langgraph.graph_works import (
    Caller,
    GraphMoment,
    GraphWorks,
    messages_of,
    text_of,
    within,
    words_of,
)
from batonpass.errors import (
    BatonpassError,
    CallError,
    CallSuspendedError,
    GrantError,
    HandoffError,
    HandoffHeldError,
)
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.model.base.ids import as_agent

SUBAGENT: Final = frozenset({"description", "subagent_type"})  # the arguments of the tool `task` of deepagents
HELD: Final = (CallSuspendedError, HandoffHeldError)


class ToolFailedError(Exception):
    """A tool answered with an error."""


class AskedTool:
    """A request of a model by a tool call: for a call, or for a handoff in the form of one."""

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
        """Decide about it before anything is done; return the answer for the model if it is not to be done."""
        raise NotImplementedError

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Let agents that begin here be handoffs from its agent."""
        with within(self.caller):
            yield

    def fail(self, error: BaseException) -> ToolMessage | None:
        """Record that it failed. Return the answer for the model; None if the error is raised on."""
        if isinstance(error, CallError | GrantError | HandoffError):
            return self.tell(self.work.tell_refusal(error), refused=True)
        return None

    def end(self, result: Any) -> Any:
        """Record its result, and return the answer for LangGraph."""
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
        """Return the refusal for the model; None if there is none. If it waits for a person, the graph pauses."""
        while isinstance(error := judge(), HELD) and self.moment.is_kept:
            pause(self.moment, error)
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
        task = json.dumps(self.arguments, ensure_ascii=False) if self.arguments else words_of(self.moment.state)
        try:
            self._offered = self.works.offer(self.moment, self.work, to=self._to, task=task, key=self.key)
        except (HandoffError, GrantError) as error:
            return error
        return None


class AskedAgent(AskedTool):
    """A tool that does nothing but run another agent: a handoff alone."""

    def begin(self) -> ToolMessage | None:
        """Offer the task if the call names its agent; else the agent is handed it when it begins."""
        return self.judged(self._judge) if set(self.arguments) >= SUBAGENT else None

    def _judge(self) -> BatonpassError | None:
        to, task = as_agent(str(self.arguments["subagent_type"])), str(self.arguments["description"])
        try:
            self.caller.offered = self.work.offer(to, task, key=self.key)
        except (HandoffError, GrantError) as error:
            return error
        return None


def pause(moment: GraphMoment, error: BatonpassError) -> None:
    """Pause the graph until somebody has decided. Resuming it is no decision: after this returns, it is asked again."""
    moment.place.graph.hold(error)
    named = getattr(error, "call", None) or getattr(error, "handoff", None)
    interrupt({"batonpass": sentence_for(error), "approve": f"batonpass handoff approve {str(named)[-6:]}"})


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
