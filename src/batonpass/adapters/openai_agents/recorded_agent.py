"""Agents of the SDK whose tools and transfers pass through us. It needs the extra.

The agents stay the program's own objects, so that everything the SDK returns is the same as without us. An agent gets a
`get_all_tools` of its own, which is asked before each turn: so tools of MCP servers and tools that are enabled later
pass here too. Outside of a recorded run, both behave as before.
"""

import contextlib
import copy
import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import fields
from typing import Any, Final

from agents import Agent, FunctionTool, Handoff, handoff
from agents.tool import maybe_invoke_function_tool_failure_error_function

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.openai_agents.sdk_run import RUN, task_of, words_of
from batonpass.aio.threads import in_thread
from batonpass.errors import CallError, GrantError, HandoffError
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.tools.refusal_sentences import sentence_for

Invoker = Callable[[Any, str], Awaitable[Any]]

_OURS: Final = "__batonpass_recorded__"
_FAILED: Final[ContextVar[list[Exception] | None]] = ContextVar("batonpass_openai_agents_failed", default=None)
# Why the transfer that was just asked for is refused. Runs side by side share agents, and so their transfers.
_REFUSAL: Final[ContextVar[str | None]] = ContextVar("batonpass_openai_agents_refusal", default=None)
# The work whose tool is being made: a run of the SDK that begins there is a handoff from it.
CALLER: Final[ContextVar[AgentWork | None]] = ContextVar("batonpass_openai_agents_caller", default=None)


def record_agent(ledger: FrameworkLedger, agent: Agent[Any]) -> None:
    """Let the tools and transfers of an agent, and of all that it can transfer to, pass through us. Twice is once."""
    if getattr(agent, _OURS, None) is ledger:
        return
    tools_of = type(agent).get_all_tools

    async def get_all_tools(run_context: Any) -> list[Any]:
        tools = await tools_of(agent, run_context)
        if RUN.get() is None:
            return list(tools)
        ledger.leave_uncovered([tool.name for tool in tools if not isinstance(tool, FunctionTool)])
        return [_recorded_tool(ledger, tool) if isinstance(tool, FunctionTool) else tool for tool in tools]

    setattr(agent, _OURS, ledger)
    agent.get_all_tools = get_all_tools
    transfers = [one if isinstance(one, Handoff) else handoff(one) for one in agent.handoffs]
    names = {one.tool_name: one.agent_name for one in transfers}
    agent.handoffs = [_recorded_transfer(ledger, agent, one, names) for one in transfers]


class RecordedHandoff(Handoff[Any, Any]):
    """A transfer that may be refused: then the conversation stays where it is, and the model is told why."""

    def get_transfer_message(self, agent: Any) -> str:
        """Return the answer for the model as the result of the transfer."""
        refusal = _REFUSAL.get()
        _REFUSAL.set(None)
        return super().get_transfer_message(agent) if refusal is None else refusal


def _recorded_transfer(
    ledger: FrameworkLedger, source: Agent[Any], given: Handoff[Any, Any], names: Mapping[str, str]
) -> Handoff[Any, Any]:
    if isinstance(given, RecordedHandoff):
        return given
    made = RecordedHandoff(**{one.name: getattr(given, one.name) for one in fields(given) if one.init})
    made._agent_ref = given._agent_ref  # noqa: SLF001 - the SDK copies it in no other way
    target = given._agent_ref() if given._agent_ref is not None else None  # noqa: SLF001 - as above

    async def invoke(context: Any, arguments: str) -> Any:
        run = RUN.get()
        if run is None:
            return await given.on_invoke_handoff(context, arguments)
        try:
            words = task_of(arguments, words_of(list(context.turn_input)))
            await in_thread(lambda: run.transfer(made.agent_name, made.tool_name, names, words))
        except (HandoffError, GrantError) as error:
            _REFUSAL.set(sentence_for(error))
            return source
        following = await given.on_invoke_handoff(context, arguments)
        record_agent(ledger, following)
        return following

    made.on_invoke_handoff = invoke
    if target is not None:
        record_agent(ledger, target)
    return made


def _recorded_tool(ledger: FrameworkLedger, tool: FunctionTool) -> FunctionTool:
    made = copy.copy(tool)
    _hear_failures(tool, made)
    inner: Invoker = made.on_invoke_tool
    made.on_invoke_tool = _same_kind(inner, RecordedTool(ledger, tool, inner).invoke)
    return made


class RecordedTool:
    """A function tool whose calls are made through the run of its agent."""

    def __init__(self, ledger: FrameworkLedger, tool: FunctionTool, inner: Invoker) -> None:
        self._declared = ledger.tools.find(tool.name, _function_of(tool))
        self._is_agent = getattr(tool, "_is_agent_tool", False)
        self._inner = inner

    async def invoke(self, context: Any, arguments: str) -> Any:
        """Make a call, or let an agent that is used as a tool work: that is a handoff, and recorded as that alone."""
        run = RUN.get()
        if run is None:
            return await self._inner(context, arguments)
        if self._is_agent:
            return await self._ask_agent(run.top, context, arguments)
        return await self._call(run.top, context, arguments)

    async def _call(self, work: AgentWork, context: Any, arguments: str) -> Any:
        call = framework_call(self._declared, _arguments(arguments))
        begun, told = await in_thread(lambda: work.ask(call))
        if told is not None:
            return told.value if isinstance(told, Replayed) else sentence_for(told)
        failed: list[Exception] = []
        try:
            with _within(work, failed), contextlib.nullcontext() if work.run is None else work.run.as_current():
                value = await self._inner(context, arguments)
        except BaseException as error:
            if begun is not None:
                await in_thread(functools.partial(work.fail, begun, call, error))
            raise
        return value if begun is None else await in_thread(lambda: _end(work, begun, call, value, failed))

    async def _ask_agent(self, work: AgentWork, context: Any, arguments: str) -> Any:
        failed: list[Exception] = []
        with _within(work, failed):
            value = await self._inner(context, arguments)
        refused = failed[-1] if failed else None
        if isinstance(refused, CallError | GrantError | HandoffError):
            return await in_thread(functools.partial(work.tell_refusal, refused))
        return value


def _end(work: AgentWork, begun: Begun, call: FrameworkCall, value: object, failed: list[Exception]) -> object:
    """Record how a call ended, and return the answer for its model."""
    if failed:  # the SDK made a text of its error, which the model reads
        work.fail(begun, call, failed[-1])
        return value
    return work.end(begun, call, value)


@contextlib.contextmanager
def _within(work: AgentWork, failed: list[Exception]) -> Iterator[None]:
    """Let runs of the SDK that begin here be handoffs from this work, and hear the errors of its tool."""
    heard, caller = _FAILED.set(failed), CALLER.set(work)
    try:
        yield
    finally:
        _FAILED.reset(heard)
        CALLER.reset(caller)


def _hear_failures(tool: FunctionTool, made: FunctionTool) -> None:
    """Let us hear the error of a tool of which the SDK only shows a text to the model. The text stays the same."""
    if not hasattr(tool, "_failure_error_function"):
        return

    async def tell(context: Any, error: Exception) -> Any:
        if (failed := _FAILED.get()) is not None:
            failed.append(error)
        return await maybe_invoke_function_tool_failure_error_function(function_tool=tool, context=context, error=error)

    made._failure_error_function = tell  # noqa: SLF001 - a canary test notices if the SDK has none any more
    made._use_default_failure_error_function = False  # noqa: SLF001 - as above


def _same_kind(inner: Invoker, invoke: Invoker) -> Invoker:
    """Return an invoker that the SDK treats like the inner one: it looks at the type of those that it made."""
    if inspect.isroutine(inner):
        return functools.wraps(inner)(invoke)
    made = copy.copy(inner)
    kind = type(inner)

    async def call(_: object, context: Any, arguments: str) -> Any:
        return await invoke(context, arguments)

    made.__class__ = type(kind.__name__, (kind,), {"__call__": call})
    return made


def _function_of(tool: FunctionTool) -> Callable[..., Any] | None:
    try:
        return tool.__wrapped__
    except AttributeError:
        return None


def _arguments(given: str) -> dict[str, Any]:
    try:
        said = json.loads(given or "{}")
    except ValueError:
        return {"arguments": given}
    return said if isinstance(said, dict) else {"arguments": said}
