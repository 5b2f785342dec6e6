"""One run of an agent: three middlewares that know whose work they see. It needs the extra.

The framework makes a list of middleware for each run of an agent, and ours adds these to it. So no state has to follow
a stream, which is consumed wherever the program likes.
"""

import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareTermination,
)

from batonpass.adapters.frameworks.agent_work import AgentWork, Makeup
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.aio.threads import in_thread
from batonpass.errors import BatonpassError, CallError, GrantError, HandoffError
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.programs.agent_makeup import makeup
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.model.base.ids import as_agent

FRAMEWORK: Final = "agent-framework"
NO_WORDS: Final = "(no words of a person)"
HANDOFF_TOOL: Final = "handoff_to_"  # how the framework names the tools of its handoff workflows
_AGENT_TOOL: Final = "BaseAgent.as_tool.<locals>."

Next = Callable[[], Awaitable[None]]

# The work whose tool is being made: an agent that runs there is a handoff from it.
CALLER: Final[ContextVar[AgentWork | None]] = ContextVar("batonpass_agent_framework_caller", default=None)


class ModelRequests(ChatMiddleware):
    """Sees each request to the model of one run. With the first request, its agent has begun."""

    def __init__(self, ledger: FrameworkLedger, work: AgentWork) -> None:
        self._ledger = ledger
        self._work = work

    async def process(self, context: ChatContext, call_next: Next) -> None:
        """Start the run or accept the handoff, with a checkpoint; add the briefing to its request."""
        work, messages = self._work, list(context.messages)
        offered = (context.options or {}).get("tools") or ()
        self._ledger.leave_uncovered([_tool_name(one) for one in offered if not isinstance(one, FunctionTool)])

        def prepare() -> str:
            work.open(lambda: _made_of(context))
            if work.waits is not None:
                raise work.waits
            work.checkpoint({"framework": FRAMEWORK, "messages": [one.to_dict() for one in messages]})
            return work.briefing()

        if briefing := await in_thread(lambda: self._ledger.attempt(prepare, enforced=work.enforced)):
            # In the user's role: the words are the sender's, and never the operator's.
            place = next((number for number, one in enumerate(messages) if one.role != "system"), len(messages))
            messages.insert(place, Message(role="user", contents=[briefing]))
            context.messages = messages
        await call_next()


def _made_of(context: ChatContext) -> Makeup:
    options = context.options or {}
    model = options.get("model") or options.get("model_id") or context.client
    return makeup(model=model, prompt=options.get("instructions"), tools=options.get("tools") or ())


class TransferTools(FunctionMiddleware):
    """Sees the tools by which a workflow hands the conversation on, before the framework carries them out."""

    def __init__(self, work: AgentWork, words: str) -> None:
        self._work = work
        self._words = words
        self.offered: list[AgentWork] = []

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        """Offer the conversation to the other agent. A refused one stays where it is, and the model is told why."""
        name = context.function.name
        if not name.startswith(HANDOFF_TOOL):
            await call_next()
            return
        to = as_agent(name.removeprefix(HANDOFF_TOOL))
        key = context.metadata.get("call_id")
        try:
            child = await in_thread(lambda: self._work.offer(to, self._words, key=key))
        except (HandoffError, GrantError) as error:
            context.result = sentence_for(error)
            return
        try:
            await call_next()
        except MiddlewareTermination:
            self.offered.append(child)
            raise
        child.drop()  # it is a tool of that name, and no workflow took it


class ToolCalls(FunctionMiddleware):
    """Makes the calls of one run: judged and recorded before, recorded after. It stands next to the tool."""

    def __init__(self, ledger: FrameworkLedger, work: AgentWork) -> None:
        self._ledger = ledger
        self._work = work

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        """Make a call, or let an agent that is used as a tool work: that is a handoff, and recorded as that alone."""
        tool, work = context.function, self._work
        function = getattr(tool, "func", None)
        if getattr(function, "__qualname__", "").startswith(_AGENT_TOOL):
            await self._ask_agent(context, call_next)
            return

        def judge() -> tuple[FrameworkCall, Begun | None, Replayed | BatonpassError | None]:
            call = framework_call(self._ledger.tools.find(tool.name, function), _arguments(context.arguments))
            return call, *work.ask(call)

        judged = await in_thread(lambda: self._ledger.attempt(judge, enforced=work.enforced))
        if judged is None:  # it is made unrecorded
            self._ledger.miss()
            await call_next()
            return
        call, begun, told = judged
        if told is not None:
            context.result = _spelled(told.value) if isinstance(told, Replayed) else sentence_for(told)
            return
        await self._make(context, call_next, call, begun)

    async def _make(
        self, context: FunctionInvocationContext, call_next: Next, call: FrameworkCall, begun: Begun | None
    ) -> None:
        work = self._work
        try:
            with self._within(), contextlib.nullcontext() if work.run is None else work.run.as_current():
                await call_next()
        except BaseException as error:
            if begun is not None:
                await in_thread(functools.partial(work.fail, begun, call, error))
            if isinstance(error, CallError | GrantError | HandoffError):
                context.result = await in_thread(functools.partial(work.tell_refusal, error))
                return
            raise
        if begun is None:
            return
        given = context.result

        def end() -> list[object]:
            value = _plain(given)
            shown = work.end(begun, call, value)
            return [] if shown is value else [shown]

        for shown in await in_thread(lambda: self._ledger.attempt(end, enforced=work.enforced)) or ():
            context.result = shown

    async def _ask_agent(self, context: FunctionInvocationContext, call_next: Next) -> None:
        try:
            with self._within():
                await call_next()
        except (CallError, GrantError, HandoffError) as error:
            context.result = await in_thread(functools.partial(self._work.tell_refusal, error))

    @contextlib.contextmanager
    def _within(self) -> Iterator[None]:
        caller = CALLER.set(self._work)
        try:
            yield
        finally:
            CALLER.reset(caller)


def words_of(messages: Sequence[Any]) -> str:
    """Return the last words of the user in the messages of a run."""
    said = [one.text for one in messages if one.role == "user" and one.text]
    return said[-1] if said else NO_WORDS


def _tool_name(tool: Any) -> str:
    said = tool.get("name") or tool.get("type") if isinstance(tool, Mapping) else getattr(tool, "name", None)
    return str(said or type(tool).__name__)


def _arguments(given: Any) -> dict[str, Any]:
    dump = getattr(given, "model_dump", None)
    return dict(dump() if callable(dump) else given or {})


def _plain(result: Any) -> Any:
    """Return a result as it is recorded: the text of contents that are texts, else their JSON."""
    if isinstance(result, list) and all(isinstance(one, Content) for one in result):
        if all(one.type == "text" for one in result):
            return "".join(one.text or "" for one in result)
        return [one.to_dict() for one in result]
    return result


def _spelled(value: Any) -> Any:
    """Return a recorded result as the framework takes it."""
    if isinstance(value, list) and value and all(isinstance(one, dict) and "type" in one for one in value):
        return [Content.from_dict(one) for one in value]
    return value
