"""A call of a tool of ADK, made through the run of its agent. It needs the extra.

Callbacks of plugins and agents may change the arguments of a call, answer it themselves, or ask a person first. So a
call is judged when the framework really makes it, with the arguments that the tool gets: in its `run_async`.
"""

import asyncio
import contextlib
import functools
import types
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from google.adk.tools import AgentTool, BaseTool, FunctionTool, ToolContext, exit_loop
from google.adk.tools.transfer_to_agent_tool import transfer_to_agent

from batonpass.adapters.frameworks.agent_seat import AgentSeat, SeatEnd, refusal_of
from batonpass.adapters.frameworks.framework_call import framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.google_adk.adk_invocation import (
    CALLER,
    EXPECTED,
    AdkInvocation,
    task_of,
    text_of,
)
from batonpass.agents.shown_result import show_result
from batonpass.aio.threads import in_thread
from batonpass.errors import BatonpassError, CallError, GrantError, GuardFailedError, HandoffError
from batonpass.handoff.calls.pending_call import Replayed
from batonpass.handoff.tools.refusal_sentences import sentence_for

Done = TypeVar("Done")

# How an agent answers or goes elsewhere. They do nothing by themselves, and their consequences are recorded.
_ANSWERS: Final = frozenset({"finish_task", "set_model_response"})
_CONTROL: Final = (transfer_to_agent, exit_loop)


@dataclass(frozen=True, eq=False)
class PlannedCall:
    """A call that the framework is about to make: by whom, and in which invocation."""

    ledger: FrameworkLedger
    invocation: AdkInvocation
    seat: AgentSeat
    context: ToolContext
    turn: asyncio.Lock  # calls of one turn are judged in the order in which the model asked for them

    async def make(self, tool: BaseTool, args: dict[str, Any], inner: Callable[[], Awaitable[Any]]) -> Any:
        """Make the call, or let the agent behind the tool work; return the answer for the model."""
        if isinstance(tool, AgentTool) and tool.include_plugins:
            return await inner() if _is_deferred(tool) else await self._ask_agent(tool, args, inner)
        if isinstance(tool, AgentTool):
            self.ledger.leave_uncovered([tool.name], "works without our plugin")
        if _is_control(tool):
            value = await inner()
        else:
            value = await self._call(tool, args, inner)
        return await self._transferred(value)

    async def _call(self, tool: BaseTool, args: dict[str, Any], inner: Callable[[], Awaitable[Any]]) -> Any:
        work = self.seat.work
        call = framework_call(self.ledger.tools.find(tool.name, getattr(tool, "func", None)), args)
        try:
            async with self.turn:
                asked = await self._safely(lambda: work.ask(call))
        except Exception as error:  # noqa: BLE001 - only an enforced call comes here
            return refused(GuardFailedError(tool.name, f"{type(error).__name__}: {error}"))
        begun, told = asked or (None, None)
        if told is not None:
            return told.value if isinstance(told, Replayed) else refused(told)
        try:
            with self._within(), contextlib.nullcontext() if work.run is None else work.run.as_current():
                value = await inner()
        except BaseException as error:
            if begun is not None:
                await self._safely(functools.partial(work.fail, begun, call, error))
            raise
        if begun is None:
            return value
        shown = await self._safely(lambda: (work.end(begun, call, value),))
        return value if shown is None else shown[0]

    async def _safely(self, act: Callable[[], Done]) -> Done | None:
        """Run a step of the recorder in a thread. Its errors do not reach an observed program."""
        return await in_thread(lambda: self.ledger.attempt(act, enforced=self.seat.work.enforced))

    async def _transferred(self, value: Any) -> Any:
        """Offer the conversation to the agent to which a tool passed it; if that is refused, it stays where it is."""
        actions = self.context.actions
        to = actions.transfer_to_agent
        if not to:
            return value
        task = actions.transfer_reason or self.invocation.words
        try:
            async with self.turn:
                offered = await self._safely(lambda: self.seat.offer(to, task, SeatEnd.RUN))
        except (GrantError, HandoffError) as error:
            actions.transfer_to_agent = None
            return refused(error)
        if offered is not None:
            self.invocation.offered.append(offered)
        return value

    async def _ask_agent(self, tool: AgentTool, args: dict[str, Any], inner: Callable[[], Awaitable[Any]]) -> Any:
        task = task_of(args)
        try:
            async with self.turn:
                child = await self._safely(lambda: self.seat.offer(tool.agent.name, task, SeatEnd.TOOL))
                known = None if child is None else await self._safely(child.work.finished)
        except (CallError, GrantError, HandoffError) as error:
            return refused(error)
        if child is None:
            return await inner()
        if known is not None:
            child.take(task)
            return show_result(child.agent, known)
        return await self._let_work(child, task, inner)

    async def _let_work(self, child: AgentSeat, task: str, inner: Callable[[], Awaitable[Any]]) -> Any:
        expected = EXPECTED.set(child)
        try:
            with self._within():
                value = await inner()
        except BaseException as error:
            await self._safely(functools.partial(child.abort, error))
            if (refusal := child.refusal or refusal_of(error)) is None:
                raise
            return await self._tell(refusal)
        finally:
            EXPECTED.reset(expected)
            child.take(task)
        return await self._deliver(child, value)

    async def _deliver(self, child: AgentSeat, value: Any) -> Any:
        if (refusal := child.work.waits or child.refusal) is not None:
            return await self._tell(refusal)
        try:
            await self._safely(lambda: child.close(text_of(value)))
        except BatonpassError as error:
            return refused(error)
        return value

    async def _tell(self, refusal: BatonpassError) -> dict[str, str]:
        return {"error": await in_thread(lambda: self.seat.work.tell_refusal(refusal))}

    @contextlib.contextmanager
    def _within(self) -> Iterator[None]:
        """Let runners that are started here work for the agent whose call this is."""
        caller = CALLER.set(self.seat)
        try:
            yield
        finally:
            CALLER.reset(caller)


# Plugins are told of a call in the same context in which it is made.
PLAN: Final[ContextVar[PlannedCall | None]] = ContextVar("batonpass_google_adk_plan", default=None)


def record_tool(tool: BaseTool) -> None:
    """Let the calls of a tool pass through us. Twice is once; calls that nobody planned are made as before."""
    given = tool.run_async
    if getattr(given, "__func__", None) is _run_recorded:
        return
    own = tool.__dict__.get("run_async")
    if own is not None:  # somebody else has put something there
        tool.__dict__[_INNER] = own
    tool.run_async = types.MethodType(_run_recorded, tool)  # of this tool alone


_INNER: Final = "__batonpass_inner__"


async def _run_recorded(tool: BaseTool, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
    own = tool.__dict__.get(_INNER)

    def inner() -> Awaitable[Any]:
        if own is not None:
            made: Awaitable[Any] = own(args=args, tool_context=tool_context)
            return made
        return type(tool).run_async(tool, args=args, tool_context=tool_context)

    plan = PLAN.get()
    if plan is None or plan.context is not tool_context:
        return await inner()
    return await plan.make(tool, args, inner)


def refused(error: BatonpassError) -> dict[str, str]:
    """Return the answer for a model in place of the result of a call that was not made."""
    return {"error": sentence_for(error)}


def _is_control(tool: BaseTool) -> bool:
    own = type(tool).__module__.startswith("google.adk.")
    return own and (tool.name in _ANSWERS or (isinstance(tool, FunctionTool) and tool.func in _CONTROL))


def _is_deferred(tool: BaseTool) -> bool:
    """Return whether the framework answers calls of this tool later: then it does nothing but name a task."""
    return bool(getattr(tool, "_defers_response", False))
