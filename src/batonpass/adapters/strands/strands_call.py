"""A call of a tool of Strands, made through the run of its agent. It needs the extra.

It is the innermost middleware, after the hooks and the middleware of the program. So a call is judged with the
arguments that the tool gets, and a call that another middleware answers is not recorded as made.
"""

import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from strands import Agent
from strands.tools.structured_output.structured_output_tool import StructuredOutputTool

from batonpass.adapters.frameworks.agent_seat import AgentSeat, SeatEnd, refusal_of
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.strands.strands_crew import StrandsCrew
from batonpass.adapters.strands.strands_stages import ExecuteToolContext, ToolResultEvent
from batonpass.agents.shown_result import show_result
from batonpass.aio.threads import in_thread
from batonpass.errors import BatonpassError, CallError, GrantError, GuardFailedError, HandoffError
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.tools.refusal_sentences import sentence_for

Done = TypeVar("Done")
Events = AsyncGenerator[Any, None]
MakeCall = Callable[[ExecuteToolContext], Events]

_TRANSFER: Final = "handoff_to_agent"
# The seat in whose tool we are: an agent that is called there works for it.
CALLER: Final[ContextVar[AgentSeat | None]] = ContextVar("batonpass_strands_caller", default=None)
# The seat of the agent that is to begin next, in this tool or because it goes on.
EXPECTED: Final[ContextVar[AgentSeat | None]] = ContextVar("batonpass_strands_expected", default=None)


@dataclass(frozen=True, eq=False)
class StrandsCall:
    """A call that the framework is about to make: by whom, and in which swarm."""

    ledger: FrameworkLedger
    seat: AgentSeat
    crew: StrandsCrew | None
    context: ExecuteToolContext
    make_it: MakeCall

    async def make(self, waiting: AgentSeat | None) -> Events:
        """Make the call, or let the agent behind the tool work. `waiting` is its seat if it waits for somebody."""
        tool, name = self.context.tool, self.context.tool_use["name"]
        if tool is None or isinstance(tool, StructuredOutputTool):
            made = self.make_it(self.context)
        elif (child := agent_of(tool)) is not None:
            made = self._ask_agent(child, waiting)
        elif self.crew is not None and name == _TRANSFER and self.crew.has(self._arguments().get("agent_name")):
            made = self._transfer(self.crew)
        else:
            made = self._call(name, getattr(tool, "__wrapped__", None))
        async with contextlib.aclosing(made):
            async for event in made:
                yield event

    def _arguments(self) -> dict[str, Any]:
        given = self.context.tool_use["input"]
        return given if isinstance(given, dict) else {"input": given}

    async def _call(self, name: str, function: Callable[..., Any] | None) -> Events:
        work = self.seat.work
        call = framework_call(self.ledger.tools.find(name, function), self._arguments())
        try:
            asked = await self._safely(lambda: work.ask(call))
        except Exception as error:  # noqa: BLE001 - only an enforced call comes here
            yield self.refused(GuardFailedError(name, f"{type(error).__name__}: {error}"))
            return
        begun, told = asked or (None, None)
        if told is not None:
            yield self._known(told) if isinstance(told, Replayed) else self.refused(told)
            return
        result: ToolResultEvent | None = None
        asking = False
        try:
            async for event in stepwise(self.make_it(self.context), self._within):
                asking = _asks(event)
                if isinstance(event, ToolResultEvent):
                    result = event
                else:
                    yield event
        except BaseException as error:
            # The framework reads no further after a question to a person, and makes the call again with the answer.
            ended_by = InterruptedError("it waits for somebody") if asking else error
            if begun is not None:
                await self._safely(functools.partial(work.fail, begun, call, ended_by))
            raise
        ended = await self._end(begun, call, result)
        if ended is not None:
            yield ended

    async def _end(self, begun: Begun | None, call: FrameworkCall, event: ToolResultEvent | None) -> Any:
        """Record how a call ended, and return the answer with which the framework goes on."""
        if begun is None:
            return event
        work = self.seat.work
        if event is None or event.exception is not None or event.tool_result["status"] == "error":
            error = InterruptedError("it waits for somebody") if event is None else _error_of(event)
            await self._safely(lambda: work.fail(begun, call, error))
            return event
        value = value_of(event.tool_result)
        shown = await self._safely(lambda: (work.end(begun, call, value),))
        if shown is None or shown[0] is value:
            return event
        return ToolResultEvent({**event.tool_result, "content": [{"text": str(shown[0])}]})

    async def _transfer(self, crew: StrandsCrew) -> Events:
        """Offer the work of a swarm to another of its agents. If that is refused, it stays where it is."""
        said = self._arguments()
        to, task = crew.name_of(said["agent_name"]), str(said.get("message") or crew.words)
        try:
            offered = await self._safely(lambda: self.seat.offer(to, task, SeatEnd.RUN))
        except (GrantError, HandoffError) as error:
            yield self.refused(error)
            return
        if offered is not None:
            crew.offered.append(offered)
        async for event in self.make_it(self.context):
            yield event

    async def _ask_agent(self, agent: Agent, waiting: AgentSeat | None) -> Events:
        said = self._arguments()
        task = str(said.get("input", "")) if set(said) <= {"input"} else str(said)
        child, known = waiting, None
        try:
            if child is None:
                child = await self._safely(lambda: self.seat.offer(agent.name, task, SeatEnd.TOOL))
                known = None if child is None else await self._safely(child.work.finished)
        except (CallError, GrantError, HandoffError) as error:
            yield self.refused(error)
            return
        if child is None:
            async for event in self.make_it(self.context):
                yield event
            return
        if known is not None:
            child.take(task)
            yield self._result(show_result(child.agent, known))
            return
        async with contextlib.aclosing(self._let_work(child, task)) as working:
            async for event in working:
                yield event

    async def _let_work(self, child: AgentSeat, task: str) -> Events:
        result: ToolResultEvent | None = None
        asking = False
        try:
            async for event in stepwise(self.make_it(self.context), lambda: self._within(child)):
                asking = _asks(event)
                if isinstance(event, ToolResultEvent):
                    result = event
                else:
                    yield event
        except BaseException as error:
            if asking:  # it waits for somebody, in the framework's own way, and goes on with the answer
                raise
            await self._safely(functools.partial(child.abort, error))
            if (refusal := child.refusal or refusal_of(error)) is None:
                raise
            yield await self._tell(refusal)
            return
        if result is None:  # as above
            return
        child.take(task)
        yield await self._deliver(child, result)

    async def _deliver(self, child: AgentSeat, result: ToolResultEvent) -> ToolResultEvent:
        if (refusal := child.work.waits or child.refusal) is not None:
            return await self._tell(refusal)
        try:
            await self._safely(lambda: child.close(child.said or str(value_of(result.tool_result))))
        except BatonpassError as error:
            return self.refused(error)
        return result

    async def _tell(self, refusal: BatonpassError) -> ToolResultEvent:
        return self._result(await in_thread(lambda: self.seat.work.tell_refusal(refusal)), status="error")

    def refused(self, error: BatonpassError) -> ToolResultEvent:
        """Return the answer for the model in place of the result of a call that was not made."""
        return self._result(sentence_for(error), status="error")

    def _known(self, told: Replayed) -> ToolResultEvent:
        """Return the result of a call that an earlier attempt finished."""
        value = told.value
        if isinstance(value, list) and all(isinstance(one, dict) for one in value):
            return ToolResultEvent({**self._result("").tool_result, "content": value})
        return self._result(value if isinstance(value, str) else str(value))

    def _result(self, text: str, *, status: Any = "success") -> ToolResultEvent:
        name = str(self.context.tool_use.get("toolUseId"))
        return ToolResultEvent({"toolUseId": name, "status": status, "content": [{"text": text}]})

    async def _safely(self, act: Callable[[], Done]) -> Done | None:
        """Run a step of the recorder in a thread. Its errors do not reach an observed program."""
        return await in_thread(lambda: self.ledger.attempt(act, enforced=self.seat.work.enforced))

    @contextlib.contextmanager
    def _within(self, child: AgentSeat | None = None) -> Iterator[None]:
        """Let agents that are called here work for the agent whose call this is."""
        caller, expected = CALLER.set(self.seat), EXPECTED.set(child)
        run = self.seat.work.run
        try:
            with contextlib.nullcontext() if run is None or child is not None else run.as_current():
                yield
        finally:
            EXPECTED.reset(expected)
            CALLER.reset(caller)


async def stepwise(events: Events, within: Callable[[], AbstractContextManager[None]]) -> Events:
    """Yield events, each made within a context that is left again, so that their reader is not in it."""
    async with contextlib.aclosing(events):
        while True:
            with within():
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
            yield event


def agent_of(tool: object) -> Agent | None:
    """Return the agent that is used as this tool, if one is."""
    agent = getattr(tool, "agent", None) if getattr(tool, "tool_type", None) == "agent" else None
    return agent if isinstance(agent, Agent) else None


def value_of(result: Any) -> Any:
    """Return the result of a tool as it is recorded: a text alone as that, anything else as the framework has it."""
    content = result["content"]
    return content[0]["text"] if len(content) == 1 and set(content[0]) == {"text"} else content


def _asks(event: Any) -> bool:
    """Return whether an event asks a person something."""
    return isinstance(event, dict) and "tool_interrupt_event" in event


def _error_of(event: ToolResultEvent) -> Exception:
    return event.exception or RuntimeError(str(value_of(event.tool_result)))
