"""The plugin that records: it sees invocations, agents, requests to models, tools and events. It needs the extra."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from google.adk.agents import BaseAgent, InvocationContext, LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import LlmRequest, LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, BaseTool, ToolContext
from google.genai.types import Content, FunctionCall, Part

from batonpass.adapters.frameworks.agent_seat import AgentSeat, SeatEnd, cause_of, take_offer
from batonpass.adapters.frameworks.agent_work import Makeup
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import begin_work, reopen, resume_work
from batonpass.adapters.google_adk.adk_call import PLAN, PlannedCall, record_tool, refused
from batonpass.adapters.google_adk.adk_invocation import (
    CALLER,
    EXPECTED,
    FRAMEWORK,
    NO_WORDS,
    AdkInvocation,
    task_of,
    text_of,
    words_of,
)
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.errors import BatonpassError, GrantError, GuardFailedError, HandoffError, NotFoundError
from batonpass.handoff.programs.agent_makeup import makeup
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.model.base.ids import as_agent

# The framework names its callbacks' parameters, and calls them by name.
# ruff: noqa: ARG002

# A task that is refused has to be taken out of the model's answer, because the framework asks nobody before it begins.
_NOT_GIVEN: Final = "task_not_given"
_NAME: Final = "batonpass"

Done = TypeVar("Done")


class AdkPlugin(BasePlugin):
    """Records the agents of an app. One plugin serves all agents, and the runners that its tools start."""

    def __init__(self, ledger: FrameworkLedger) -> None:
        super().__init__(name=_NAME)
        self._ledger = ledger
        self._invocations: dict[str, AdkInvocation] = {}
        self._paused: dict[tuple[str, str, str], AdkInvocation] = {}  # by session: a task waits for its user
        self._turns: dict[AgentSeat, asyncio.Lock] = {}

    async def resume(self, agent: BaseAgent | App, which: str = LAST, **services: Any) -> list[Event]:
        """Go on with a handoff that failed or waited for somebody, or with a root run whose process is gone.

        `agent` is an app or an agent from which the one that goes on can be reached. Only that one works, from its last
        messages on, and its finished work is not repeated. `services` are those of its runner. Return its events.
        Raises `NotFoundError` if there is no such agent, and `CallSuspendedError` if it waits for somebody again.
        """
        run = await in_thread(lambda: reopen(self._ledger, which))
        target = _find(agent.root_agent if isinstance(agent, App) else agent, run.agent)
        kept = run.messages()
        messages = [Content.model_validate(one) for one in kept["contents"]] if isinstance(kept, dict) else ()
        work = await in_thread(lambda: resume_work(self._ledger, run))
        seat = AgentSeat(target.name, work, SeatEnd.RUN, kept=messages)
        # The framework lets no agent that answers once be a root.
        alone = target.clone({"mode": "chat"} if getattr(target, "mode", None) == "single_turn" else None)
        app = App(name=FRAMEWORK.replace("-", "_"), root_agent=alone, plugins=[self])
        runner = Runner(app=app, **{"session_service": InMemorySessionService(), **services})
        session = await runner.session_service.create_session(app_name=app.name, user_id=_NAME)
        message = Content(role="user", parts=[Part(text=run.task)])
        expected = EXPECTED.set(seat)
        try:
            going = runner.run_async(user_id=session.user_id, session_id=session.id, new_message=message)
            events = [event async for event in going]
        except RuntimeError as error:
            if (cause := cause_of(error)) is error:
                raise
            raise cause from error
        finally:
            EXPECTED.reset(expected)
        if work.waits is not None:
            raise work.waits
        return events

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Open the record of an invocation; if its task is cancelled, nothing of it stays open."""
        session = invocation_context.session
        paused = self._paused.pop((session.app_name, session.user_id, session.id), None)
        words = words_of(invocation_context.user_content) or NO_WORDS
        invocation = paused or AdkInvocation(words, session.user_id)
        self._invocations[invocation_context.invocation_id] = invocation
        invocation.watch(functools.partial(self._abandon, invocation_context.invocation_id, invocation))

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> Content | None:
        """Give an agent that begins its seat."""
        invocation = self._invocations.get(callback_context.invocation_id)
        if invocation is None:
            return None
        place = (callback_context.branch, agent.name)
        if (seat := invocation.seats.get(place)) is not None and not seat.ended:
            return None  # it was here before: a task that it had given is answered
        try:
            seat = await self._seat(invocation, agent)
        except (GrantError, HandoffError) as error:
            return Content(role="model", parts=[Part(text=sentence_for(error))])
        if seat is None:
            return None
        seat.source = agent
        invocation.seats.pop(place, None)
        invocation.seats[place] = seat
        if not isinstance(agent, LlmAgent):  # nobody asks its model
            await self._safely(seat.work.open)
        return None

    async def _seat(self, invocation: AdkInvocation, agent: BaseAgent) -> AgentSeat | None:
        """Return the seat of an agent that begins: the one that waits for it, else one that is handed on to it."""
        expected = EXPECTED.get()
        if expected is not None and expected.agent == agent.name and expected.source is None:
            return expected
        offered, dropped = take_offer(invocation.offered, agent.name)
        for other in dropped:
            await self._safely(other.work.drop)
        if offered is not None:
            return offered
        if (sender := invocation.sender_of(agent)) is not None:
            return await self._hand_on(sender, agent, invocation.words, SeatEnd.AGENT)
        if (caller := CALLER.get()) is not None:
            return await self._hand_on(caller, agent, invocation.words, SeatEnd.RUN)
        work = await self._safely(lambda: begin_work(self._ledger, agent.name, invocation.words, user=invocation.user))
        return None if work is None else AgentSeat(agent.name, work, SeatEnd.RUN)

    async def _hand_on(self, sender: AgentSeat, agent: BaseAgent, words: str, ends: SeatEnd) -> AgentSeat | None:
        seat = await self._safely(lambda: sender.offer(agent.name, words, ends))
        if seat is not None:
            seat.take(words)
        return seat

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Start the run or accept the handoff, with a checkpoint; add the briefing to its request."""
        seat = self._find_seat(callback_context)
        if seat is None:
            return None
        self._leave_uncovered(seat, llm_request)
        if seat.kept:
            llm_request.contents = [*seat.kept, *llm_request.contents[1:]]
        work, contents = seat.work, llm_request.contents

        def prepare() -> str:
            work.open(lambda: _made_of(seat.source, llm_request))
            if work.waits is not None:
                raise work.waits
            work.checkpoint({"framework": FRAMEWORK, "agent": seat.agent, "contents": _kept(contents)})
            return work.briefing()

        try:
            briefing = await self._safely(prepare, enforced=work.enforced)
        except BatonpassError as error:
            if error is not work.waits and seat.ends not in {SeatEnd.TOOL, SeatEnd.TASK}:
                raise
            seat.refusal = error
            return LlmResponse(error_code=error.code, error_message=sentence_for(error))
        if briefing:
            # In the user's role: the words are the sender's, and never the operator's.
            llm_request.contents = [Content(role="user", parts=[Part(text=briefing)]), *contents]
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Offer the tasks that a model gives to others. The framework gives those that are left in the answer."""
        seat = self._find_seat(callback_context)
        invocation = self._invocations.get(callback_context.invocation_id)
        content = llm_response.content
        if seat is None or invocation is None or seat.source is None or content is None or llm_response.partial:
            return None
        takers = {one.name for one in seat.source.sub_agents if getattr(one, "mode", None) == "task"}
        parts: list[Part] = []
        refusals = 0
        for part in content.parts or ():
            call = part.function_call
            if call is not None and call.name in takers:
                try:
                    if (offered := await self._offer_task(seat, call)) is not None:
                        invocation.offered.append(offered)
                except (GrantError, HandoffError) as error:
                    seat.refused.append(sentence_for(error))
                    refusals += 1
                    kept = FunctionCall(id=call.id, name=_NOT_GIVEN, args={"agent": call.name, **(call.args or {})})
                    parts.append(part.model_copy(update={"function_call": kept}))
                    continue
            parts.append(part)
        if not refusals:
            return None
        return llm_response.model_copy(update={"content": content.model_copy(update={"parts": parts})})

    async def _offer_task(self, seat: AgentSeat, call: FunctionCall) -> AgentSeat | None:
        name, task = call.name or "", task_of(call.args or {})

        child = await self._safely(lambda: seat.offer(name, task, SeatEnd.TASK), enforced=seat.work.enforced)
        if child is not None:
            child.take(task)
        return child

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Let a call pass through us when it is made."""
        seat = self._find_seat(tool_context)
        invocation = self._invocations.get(tool_context.invocation_id)
        if seat is None or invocation is None:
            if self._ledger.enforces:
                return refused(GuardFailedError(tool.name, "nobody knows whose call it is"))
            self._ledger.miss()
            return None
        if tool.name == _NOT_GIVEN and seat.refused:
            return {"error": seat.refused.pop(0)}
        if inspect.isasyncgenfunction(getattr(tool, "func", None)):  # of live sessions; they are not awaited
            if seat.work.enforced:
                return refused(GuardFailedError(tool.name, "the results of a streaming tool cannot be judged"))
            self._ledger.leave_uncovered([tool.name], "streams its results")
        self._ledger.attempt(lambda: record_tool(tool), enforced=seat.work.enforced)
        turn = self._turns.setdefault(seat, asyncio.Lock())
        PLAN.set(PlannedCall(self._ledger, invocation, seat, tool_context, turn))
        return None

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """Note the words of agents, and end the work on a task when the framework answers the call that gave it."""
        invocation = self._invocations.get(invocation_context.invocation_id)
        if invocation is None or event.partial:
            return
        said = words_of(event.content) or ("" if event.output is None else text_of(event.output))
        seat = invocation.seats.get((event.branch, event.author))
        if said and seat is not None:
            seat.said = invocation.said = said
        for answer in event.get_function_responses():
            for one in invocation.open_seats():
                if one.ends is SeatEnd.TASK and one.agent == answer.name and not one.ended:
                    result = (answer.response or {}).get("output", answer.response)
                    await self._safely(functools.partial(one.close, text_of(result)))
                    break

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        """End the work of an agent that a workflow agent had given."""
        seat = self._find_seat(callback_context)
        if seat is not None and seat.ends is SeatEnd.AGENT:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                await self._safely(lambda: seat.abort(asyncio.CancelledError()))
            else:
                await self._safely(lambda: seat.close(seat.said))

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """End everything that is still at work. If a task waits for its user, all of it waits."""
        invocation = self._invocations.pop(invocation_context.invocation_id, None)
        if invocation is None:
            return
        invocation.leave()
        waits = any(one.ends is SeatEnd.TASK and one.work.waits is None for one in invocation.open_seats())
        if waits:
            session = invocation_context.session
            self._paused[session.app_name, session.user_id, session.id] = invocation
            return
        self._forget(invocation)
        await self._safely(invocation.close)

    async def on_agent_error_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext, error: Exception
    ) -> None:
        """End the work of an agent by its error."""
        seat = self._find_seat(callback_context)
        if seat is not None:
            await self._safely(lambda: seat.abort(error))

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """End everything that is still at work by an error."""
        invocation = self._invocations.pop(invocation_context.invocation_id, None)
        if invocation is not None:
            invocation.leave()
            self._forget(invocation)
            await self._safely(lambda: invocation.abort(error))

    async def close(self) -> None:
        """End all work that waits for its user: its runner is closed, so nobody can answer."""
        for paused in self._paused.values():
            self._forget(paused)
            await self._safely(paused.close)
        self._paused.clear()

    def _find_seat(self, context: CallbackContext | ToolContext) -> AgentSeat | None:
        invocation = self._invocations.get(context.invocation_id)
        if invocation is None:
            return None
        try:
            return invocation.seats.get((context.branch, context.agent_name))
        except AttributeError:  # a tool that is a node of a workflow belongs to no agent
            return None

    async def _safely(self, act: Callable[[], Done], *, enforced: bool | None = None) -> Done | None:
        """Run a step of the recorder in a thread. Its errors do not reach an observed program."""
        return await in_thread(lambda: self._ledger.attempt(act, enforced=enforced))

    def _leave_uncovered(self, seat: AgentSeat, request: LlmRequest) -> None:
        given = request.config.tools or ()
        names = [name for tool in given for name in _provided(tool)]
        if names:
            self._ledger.leave_uncovered(names)
        if getattr(seat.source, "code_executor", None) is not None:
            self._ledger.leave_uncovered(["code_executor"], "runs code of the model")

    def _forget(self, invocation: AdkInvocation) -> None:
        for seat in invocation.seats.values():
            self._turns.pop(seat, None)

    def _abandon(self, name: str, invocation: AdkInvocation, _: object) -> None:
        """End the open work of a cancelled task: the framework does not tell plugins of it."""
        if self._invocations.get(name) is invocation:
            del self._invocations[name]
            self._forget(invocation)
            invocation.abort(asyncio.CancelledError())


def _made_of(agent: Any, asked: LlmRequest) -> Makeup:
    # Templates and functions, as the agent was made: the filled-in text differs from task to task.
    names = ("static_instruction", "global_instruction", "instruction")
    prompt = (getattr(agent, name, None) for name in names)
    return makeup(model=asked.model, prompt=prompt, tools=asked.tools_dict)


def _kept(contents: Sequence[Content]) -> list[Any]:
    return [one.model_dump(mode="json", exclude_none=True) for one in contents]


def _provided(tool: object) -> list[str]:
    """Return the tools of the provider in one entry of a request: all that are not functions of the program."""
    dump = getattr(tool, "model_dump", None)
    return [] if dump is None else [name for name in dump(exclude_none=True) if name != "function_declarations"]


def _find(start: BaseAgent, name: str) -> BaseAgent:
    """Return the agent of a name among those that can be reached from another: below it, and as its tools."""
    queue, seen = [start.root_agent], set[int]()
    while queue:
        agent = queue.pop()
        if id(agent) in seen:
            continue
        seen.add(id(agent))
        if as_agent(agent.name) == name:
            return agent
        queue += agent.sub_agents
        queue += [tool.agent for tool in getattr(agent, "tools", ()) if isinstance(tool, AgentTool)]
    raise NotFoundError("agent", name)
