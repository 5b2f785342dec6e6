"""The middleware that records each run of an agent that has it. It needs the extra."""

import atexit
import functools
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from agent_framework import (
    AgentContext,
    AgentMiddleware,
    AgentResponse,
    AgentResponseUpdate,
    Content,
    Message,
    ResponseStream,
)

from batonpass.adapters.agent_framework.agent_run import (
    CALLER,
    FRAMEWORK,
    ModelRequests,
    ToolCalls,
    TransferTools,
    words_of,
)
from batonpass.adapters.agent_framework.open_transfers import OpenTransfer, OpenTransfers
from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import begin_work, reopen, resume_work
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import AgentId, as_agent

_MIDDLEWARE: Final = "middleware"  # where the framework keeps the middleware of one run for its client


class RecordedAgents(AgentMiddleware):
    """Records the agents that have it. One middleware serves an agent and all that it uses or hands off to."""

    def __init__(self, ledger: FrameworkLedger) -> None:
        self._ledger = ledger
        self._transfers = OpenTransfers()
        self._resumed: dict[int, AgentWork] = {}  # by the list of messages with which its agent goes on
        atexit.register(_give_up, weakref.ref(self._transfers))

    async def resume(self, agent: Any, which: str = LAST, **options: Any) -> AgentResponse[Any]:
        """Go on with a handoff that failed or waited for somebody, or with a root run whose process is gone.

        Only its own agent runs, from its last messages on, and its finished work is not repeated. Raises
        `InvalidValueError` if it is the work of another agent than the one given.
        """
        run = await in_thread(lambda: reopen(self._ledger, which))
        if run.agent != _name_of(agent):
            raise InvalidValueError("agent", f"is {_name_of(agent)}, and {run.id} is a run of {run.agent}")
        messages = _kept_messages(run) or [Message(role="user", contents=[run.task])]
        work = await in_thread(lambda: resume_work(self._ledger, run))
        self._resumed[id(messages[0])] = work
        response: AgentResponse[Any] = await agent.run(messages, **options)
        return response

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Let an agent run, and record it as a run."""
        caller = CALLER.get()
        enforced = None if caller is None else caller.enforced
        begun = await in_thread(lambda: self._ledger.attempt(lambda: self._begin(context), enforced=enforced))
        if begun is None:  # it works unrecorded
            await call_next()
            return
        work, before = begun
        if await in_thread(lambda: self._ledger.attempt(lambda: _go_on(work, context), enforced=work.enforced)):
            return
        words = words_of(context.messages)
        transfers = TransferTools(work, words)
        given = context.client_kwargs.get(_MIDDLEWARE) or []
        added = [transfers, *given, ModelRequests(self._ledger, work), ToolCalls(self._ledger, work)]
        context.client_kwargs = {**context.client_kwargs, _MIDDLEWARE: added}
        ending = _Ending(self._ledger, self._transfers, transfers, (*before, work), words)
        try:
            await call_next()
        except BaseException as error:
            await in_thread(functools.partial(ending.fail, error))
            raise
        if context.stream:
            # The framework returns a stream before anything has happened; it ends where somebody reads it.
            context.stream_cleanup_hooks.append(functools.partial(_end_stream, context, ending))
        else:
            result = context.result
            await in_thread(lambda: ending.finish(result))

    def _begin(self, context: AgentContext) -> tuple[AgentWork, tuple[AgentWork, ...]]:
        """Return the work of an agent, and those who had its conversation before."""
        name, messages = _name_of(context.agent), context.messages
        if messages and (resumed := self._resumed.pop(id(messages[0]), None)) is not None:
            return resumed, ()
        words, caller = words_of(messages), CALLER.get()
        if (taken := self._transfers.take(name, words)) is not None:
            return taken
        return (begin_work(self._ledger, name, words) if caller is None else caller.offer(name, words)), ()


class _Ending:
    """How one run of an agent ends: with its result, by an error, or by handing the conversation on."""

    def __init__(
        self,
        ledger: FrameworkLedger,
        open_transfers: OpenTransfers,
        tools: TransferTools,
        works: tuple[AgentWork, ...],
        words: str,
    ) -> None:
        self._ledger = ledger
        self._open_transfers = open_transfers
        self._tools = tools
        self._works = works
        self._words = words

    def finish(self, response: Any) -> None:
        """Close the run and those before it; or leave them open for the agent that gets the conversation."""
        self._ledger.attempt(lambda: self._finish(response), enforced=self._works[-1].enforced)

    def _finish(self, response: Any) -> None:
        result = str(getattr(response, "text", None) or "")
        if self._tools.offered:
            offered = tuple(self._tools.offered)
            self._open_transfers.add(OpenTransfer(offered, self._works, self._words, result))
        elif getattr(response, "user_input_requests", None):
            self._works[-1].suspend()
        else:
            self._works[-1].open()  # it did work, even if its client takes no middleware
            for work in reversed(self._works):
                work.close(result)

    def fail(self, error: BaseException) -> None:
        """End the run and those before it by an error."""

        def abort() -> None:
            for work in reversed(self._works):
                work.abort(error)

        self._ledger.attempt(abort, enforced=self._works[-1].enforced)


async def _end_stream(context: AgentContext, ending: _Ending) -> None:
    stream: Any = context.result
    error = getattr(stream, "_stream_error", None)
    if error is not None:
        await in_thread(lambda: ending.fail(error))
        return
    response: AgentResponse[Any] = AgentResponse.from_updates(list(stream.updates))
    await in_thread(lambda: ending.finish(response))


def _go_on(work: AgentWork, context: AgentContext) -> bool:
    """Let the child of a resumed run go on from its last messages; return whether its result is known already."""
    if work.parent is None or not work.parent.resumed:
        return False
    if (known := work.finished()) is not None:
        context.result = _answer(str(known.value), stream=context.stream)
        return True
    work.open()
    if work.run is not None and (kept := _kept_messages(work.run)):
        context.messages = kept
    return False


def _answer(text: str, *, stream: bool) -> Any:
    if not stream:
        return AgentResponse(messages=[Message(role="assistant", contents=[text])])

    async def updates() -> AsyncIterator[AgentResponseUpdate]:
        yield AgentResponseUpdate(role="assistant", contents=[Content.from_text(text)])

    return ResponseStream(updates(), finalizer=AgentResponse.from_updates)


def _kept_messages(run: LiveRun) -> list[Message]:
    found = run.messages()
    kept = found.get("messages", ()) if isinstance(found, dict) and found.get("framework") == FRAMEWORK else ()
    messages = [Message.from_dict(one) for one in kept]
    return [one for one in messages if one.role != "system"]  # the agent says its instructions itself


def _name_of(agent: Any) -> AgentId:
    return as_agent(getattr(agent, "name", None) or getattr(agent, "id", None) or "agent")


def _give_up(transfers: "weakref.ref[OpenTransfers]") -> None:
    if (known := transfers()) is not None:
        known.give_up()
