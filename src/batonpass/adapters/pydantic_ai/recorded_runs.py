"""The capability that records: it sees runs, requests to models and tool calls. It needs the extra."""

import contextlib
import functools
import json
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.capabilities.abstract import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import ToolDefinition as OfferedTool

from batonpass.adapters.frameworks.agent_work import AgentWork, Makeup
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import begin_work, reopen, resume_work
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.errors import CallError, CallSuspendedError, GrantError, HandoffError, InvalidValueError
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.programs.agent_makeup import makeup
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.model.base.ids import as_agent

FRAMEWORK: Final = "pydantic-ai"
NO_WORDS: Final = "(no words of a person)"

# The framework names its hooks' parameters, and calls them by name.
# ruff: noqa: ARG002

_WORK: Final[ContextVar[AgentWork | None]] = ContextVar("batonpass_pydantic_ai_work", default=None)
# The work whose tool is being made: a run that begins there is a handoff from it.
_CALLER: Final[ContextVar[AgentWork | None]] = ContextVar("batonpass_pydantic_ai_caller", default=None)
_RESUMED: Final[ContextVar[AgentWork | None]] = ContextVar("batonpass_pydantic_ai_resumed", default=None)


@dataclass
class RecordedRuns(AbstractCapability[Any]):
    """Records the runs of the agents that have it. One capability serves an agent and all that it runs in its tools."""

    ledger: FrameworkLedger
    delegates: frozenset[str] = field(default_factory=frozenset)

    async def resume(self, agent: Agent[Any, Any], which: str = LAST, **options: Any) -> AgentRunResult[Any]:  # noqa: ANN401 - the framework's own
        """Go on with a handoff that failed or waited for somebody, or with a root run whose process is gone.

        Only its own agent runs, from its last messages on, and its finished work is not repeated. Raises
        `InvalidValueError` if it is the work of another agent than the one given.
        """
        run = await in_thread(lambda: reopen(self.ledger, which))
        if run.agent != _name_of(agent):
            raise InvalidValueError("agent", f"is {_name_of(agent)}, and {run.id} is a run of {run.agent}")
        kept = run.messages()
        work = await in_thread(lambda: resume_work(self.ledger, run))
        resumed = _RESUMED.set(work)
        try:
            if not isinstance(kept, dict):
                return await agent.run(run.task, **options)
            history = ModelMessagesTypeAdapter.validate_python(kept["messages"])
            return await agent.run(**{"message_history": history, **options})
        finally:
            _RESUMED.reset(resumed)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> AgentRunResult[Any]:  # noqa: ANN401 - the framework's own
        """Let an agent run, and record it as a run."""
        work = await in_thread(lambda: self._begin(ctx))
        tokens = _WORK.set(work), _CALLER.set(None), _RESUMED.set(None)
        try:
            result: AgentRunResult[Any] = await handler()
        except BaseException as error:
            await in_thread(functools.partial(work.abort, error))
            raise
        finally:
            for variable, token in zip((_WORK, _CALLER, _RESUMED), tokens, strict=True):
                variable.reset(token)
        await in_thread(lambda: _close(work, result))
        return result

    def _begin(self, ctx: RunContext[Any]) -> AgentWork:
        name = _name_of(ctx.agent)
        if (resumed := _RESUMED.get()) is not None and resumed.agent == name:
            return resumed
        words = _words_of(ctx.prompt)
        caller = _CALLER.get()
        return begin_work(self.ledger, name, words) if caller is None else caller.offer(name, words)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Start the run or accept the handoff, with a checkpoint; add the briefing to its request."""
        work = _WORK.get()
        if work is None:
            return request_context
        checkpoint = _kept(request_context.messages)

        def prepare() -> str:
            work.open(lambda: _made_of(ctx.agent, request_context))
            if work.waits is not None:
                raise work.waits
            work.checkpoint(checkpoint)
            return work.briefing()

        if briefing := await in_thread(prepare):
            # In the user's role: the words are the sender's, and never the operator's.
            told = ModelRequest(parts=[UserPromptPart(briefing)])
            request_context.messages = [told, *request_context.messages]
        return request_context

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: OfferedTool,
        args: dict[str, Any],
        handler: Any,  # noqa: ANN401 - whatever makes the call
    ) -> Any:  # noqa: ANN401 - whatever the tool returns
        """Make a call through the run of its agent: judged and recorded before, recorded after."""
        work = _WORK.get()
        if work is None:
            return await handler(args)
        if call.tool_name in self.delegates:
            return await _delegated(work, args, handler)
        planned = framework_call(self.ledger.tools.find(call.tool_name, _function_of(ctx, call.tool_name)), args)
        begun, told = await in_thread(lambda: work.ask(planned))
        if isinstance(told, CallSuspendedError) and work.handoff is None and _defers(ctx):
            raise ApprovalRequired(metadata={"batonpass": sentence_for(told)}) from told
        if told is not None:
            return told.value if isinstance(told, Replayed) else sentence_for(told)
        return await _made(work, begun, planned, args, handler)


async def _made(work: AgentWork, begun: Begun | None, call: FrameworkCall, args: dict[str, Any], handler: Any) -> Any:  # noqa: ANN401 - as above
    try:
        with _within(work), contextlib.nullcontext() if work.run is None else work.run.as_current():
            value = await handler(args)
    except BaseException as error:
        if begun is not None:
            made = not isinstance(error, CallDeferred | ApprovalRequired)  # a deferred call is made by somebody else
            await in_thread(functools.partial(work.fail, begun, call, error, made=made))
        if isinstance(error, CallError | GrantError | HandoffError):
            return await in_thread(functools.partial(work.tell_refusal, error))
        raise
    return value if begun is None else await in_thread(lambda: work.end(begun, call, value))


async def _delegated(work: AgentWork, args: dict[str, Any], handler: Any) -> Any:  # noqa: ANN401 - as above
    try:
        with _within(work):
            return await handler(args)
    except (CallError, GrantError, HandoffError) as error:
        return await in_thread(functools.partial(work.tell_refusal, error))


@contextlib.contextmanager
def _within(work: AgentWork) -> Iterator[None]:
    """Let runs that begin here be handoffs from this work."""
    caller = _CALLER.set(work)
    try:
        yield
    finally:
        _CALLER.reset(caller)


def _close(work: AgentWork, result: AgentRunResult[Any]) -> None:
    output = result.output
    if isinstance(output, DeferredToolRequests):
        work.checkpoint(_kept(result.all_messages()))
        work.suspend()
    else:
        work.close(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str))


def _kept(messages: list[ModelMessage]) -> dict[str, Any]:
    """Return messages as a checkpoint."""
    return {"framework": FRAMEWORK, "messages": ModelMessagesTypeAdapter.dump_python(messages, mode="json")}


def _defers(ctx: RunContext[Any]) -> bool:
    """Return whether the program of an agent takes calls that wait for an approval as its result."""
    wanted = getattr(ctx.agent, "output_type", None)
    return DeferredToolRequests in (wanted if isinstance(wanted, Sequence) else (wanted,))


def _made_of(agent: object, asked: ModelRequestContext) -> Makeup:
    # Instructions that a function makes differ from task to task, so what the agent was made with is read.
    written = (getattr(one, "instruction", one) for one in getattr(agent, "_instructions", None) or ())
    prompt = (*written, *(getattr(agent, "_system_prompts", None) or ()))
    return makeup(model=asked.model, prompt=prompt, tools=asked.model_request_parameters.function_tools)


def _name_of(agent: Any) -> Any:  # noqa: ANN401 - the framework's own
    return as_agent(getattr(agent, "name", None) or "agent")


def _words_of(prompt: object) -> str:
    if isinstance(prompt, str):
        return prompt
    parts = prompt if isinstance(prompt, Sequence) else ()
    return "\n".join(part for part in parts if isinstance(part, str)) or NO_WORDS


def _function_of(ctx: RunContext[Any], name: str) -> Any:  # noqa: ANN401 - whatever it is
    """Return the function of a tool, if the agent has one under this name: it may be declared as a tool of ours."""
    for toolset in getattr(ctx.agent, "toolsets", ()):
        tool = getattr(toolset, "tools", {}).get(name)
        if tool is not None and hasattr(tool, "function"):
            return tool.function
    return None
