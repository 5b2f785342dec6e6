"""The plugin that records: it sees agents, their requests to models, tools, swarms and graphs. It needs the extra."""

import asyncio
import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from strands import Agent
from strands.agent import AgentResult
from strands.hooks import (
    AfterInvocationEvent,
    AfterMultiAgentInvocationEvent,
    BeforeInvocationEvent,
    BeforeMultiAgentInvocationEvent,
    BeforeNodeCallEvent,
)
from strands.multiagent.base import MultiAgentBase, Status
from strands.plugins import MultiAgentPlugin, Plugin
from strands.types.session import decode_bytes_values, encode_bytes_values

from batonpass.adapters.frameworks.agent_seat import AgentSeat, SeatEnd, cause_of, take_offer
from batonpass.adapters.frameworks.agent_work import Makeup
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import begin_work, reopen, resume_work
from batonpass.adapters.strands.strands_call import CALLER, EXPECTED, Events, MakeCall, StrandsCall, agent_of
from batonpass.adapters.strands.strands_crew import StrandsCrew, words_of
from batonpass.adapters.strands.strands_stages import (
    ExecuteToolContext,
    InvokeModelContext,
    ModelStopReason,
    ToolResultEvent,
    stand_in,
)
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.errors import BatonpassError, GrantError, GuardFailedError, HandoffError, NotFoundError
from batonpass.handoff.programs.agent_makeup import makeup
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.model.base.ids import as_agent

FRAMEWORK: Final = "strands"

Done = TypeVar("Done")


class StrandsPlugin(Plugin, MultiAgentPlugin):
    """Records agents, swarms and graphs. One plugin serves them and all agents that they use."""

    name: ClassVar[str] = "batonpass"  # type: ignore[assignment,misc,unused-ignore] # a property there

    def __init__(self, ledger: FrameworkLedger) -> None:
        super().__init__()
        self._ledger = ledger
        self._known: WeakSet[Any] = WeakSet()  # agents, swarms and graphs that we hear
        self._layered: WeakSet[Agent] = WeakSet()  # agents whose requests and calls pass through us
        self._seats: dict[tuple[int, int], AgentSeat] = {}  # by agent and the state of its invocation
        self._interrupted: WeakKeyDictionary[Agent, AgentSeat] = WeakKeyDictionary()
        self._crews: WeakKeyDictionary[MultiAgentBase, StrandsCrew] = WeakKeyDictionary()
        self._nodes: WeakKeyDictionary[Any, StrandsCrew] = WeakKeyDictionary()  # who is to begin next, and in what

    def init_agent(self, agent: Agent) -> None:
        """Hear of the invocations of an agent."""
        if agent not in self._known:
            self._known.add(agent)
            agent.add_hook(self._begin, BeforeInvocationEvent)
            agent.add_hook(self._end, AfterInvocationEvent)

    def init_multi_agent(self, orchestrator: MultiAgentBase) -> None:
        """Hear of the nodes of a swarm or a graph."""
        if orchestrator not in self._known:
            self._known.add(orchestrator)
            hear: Any = orchestrator
            hear.add_hook(self._begin_crew, BeforeMultiAgentInvocationEvent)
            hear.add_hook(self._begin_node, BeforeNodeCallEvent)
            hear.add_hook(self._end_crew, AfterMultiAgentInvocationEvent)

    async def resume(self, start: Agent | MultiAgentBase, which: str = LAST, **options: Any) -> AgentResult:
        """Go on with a handoff that failed or waited for somebody, or with a root run whose process is gone.

        `start` is an agent, swarm or graph from which the agent that goes on can be reached. Only that one works, from
        its last messages on, and its finished work is not repeated. Raises `NotFoundError` if there is no such agent,
        and `CallSuspendedError` if it waits for somebody again.
        """
        run = await in_thread(lambda: reopen(self._ledger, which))
        agent = _find(start, run.agent)
        kept = run.messages()
        work = await in_thread(lambda: resume_work(self._ledger, run))
        self.init_agent(agent)
        prompt: str | None = run.task
        if isinstance(kept, dict):
            agent.messages, prompt = decode_bytes_values(kept["messages"]), None
        expected = EXPECTED.set(AgentSeat(agent.name, work, SeatEnd.AGENT))
        try:
            result = await agent.invoke_async(prompt, **options)
        except Exception as error:
            if (cause := cause_of(error)) is error:
                raise
            raise cause from error
        finally:
            EXPECTED.reset(expected)
        if work.waits is not None:
            raise work.waits
        return result

    async def _begin(self, event: BeforeInvocationEvent) -> None:
        """Give an agent that begins its seat."""
        agent = event.agent
        self._layer(agent)
        words = words_of(event.messages or agent.messages)
        try:
            seat = await self._seat(agent, words)
        except (GrantError, HandoffError) as error:
            event.cancel = sentence_for(error)
            return
        if seat is not None:
            seat.source = agent
            self._seats[id(agent), id(event.invocation_state)] = seat

    def _layer(self, agent: Agent) -> None:
        """Let requests and calls pass through us, inside of all that the program has added before its first prompt."""
        if agent not in self._layered:
            self._layered.add(agent)
            stand_in(agent, requests=self._ask_model, calls=self._run_tool)
        for tool in agent.tool_registry.registry.values():
            if (child := agent_of(tool)) is not None:
                self.init_agent(child)

    async def _seat(self, agent: Agent, words: str) -> AgentSeat | None:
        """Return the seat of an agent that begins: the one that waits for it, else one that is handed on to it."""
        if (waiting := self._interrupted.pop(agent, None)) is not None:
            return waiting
        expected = EXPECTED.get()
        if expected is not None and expected.agent == agent.name and expected.source is None:
            return expected
        crew = self._nodes.pop(agent, None)
        if crew is not None:
            return await self._node_seat(crew, agent)
        if (caller := CALLER.get()) is not None:
            return await self._hand_on(caller, agent.name, words, SeatEnd.AGENT)
        work = await self._safely(lambda: begin_work(self._ledger, agent.name, words))
        return None if work is None else AgentSeat(agent.name, work, SeatEnd.AGENT)

    async def _node_seat(self, crew: StrandsCrew, agent: Agent) -> AgentSeat | None:
        if crew.root is not None:
            return await self._hand_on(crew.root, agent.name, crew.words, SeatEnd.AGENT)
        seat, dropped = take_offer(crew.offered, agent.name)
        for other in dropped:
            await self._safely(other.work.drop)
        if seat is None and crew.seats:
            seat = await self._hand_on(crew.seats[-1], agent.name, crew.words, SeatEnd.RUN)
        elif seat is None:
            seat = await self._first(crew, agent.name)
        if seat is not None:
            crew.seats.append(seat)
        return seat

    async def _first(self, crew: StrandsCrew, name: str) -> AgentSeat | None:
        """Return the seat with which a swarm or a graph begins."""
        sender = crew.sender or CALLER.get()
        if sender is not None:
            return await self._hand_on(sender, name, crew.words, SeatEnd.RUN)
        work = await self._safely(lambda: begin_work(self._ledger, name, crew.words))
        return None if work is None else AgentSeat(name, work, SeatEnd.RUN)

    async def _hand_on(self, sender: AgentSeat, name: str, words: str, ends: SeatEnd) -> AgentSeat | None:
        seat = await self._safely(lambda: sender.offer(name, words, ends), enforced=sender.work.enforced)
        if seat is not None:
            seat.take(words)
        return seat

    async def _end(self, event: AfterInvocationEvent) -> None:
        """End the work of an agent, unless a tool or a swarm does."""
        seat = self._seats.pop((id(event.agent), id(event.invocation_state)), None)
        if seat is None:
            return
        result = event.result
        if result is None:
            error = sys.exc_info()[1] or asyncio.CancelledError("it ended without a result")
            await self._safely(functools.partial(seat.abort, error))
        elif result.stop_reason == "interrupt":
            self._interrupted[event.agent] = seat
        else:
            seat.said = str(result).strip()
            if seat.ends is SeatEnd.AGENT:
                await self._safely(lambda: seat.close(seat.said), enforced=seat.work.enforced)

    async def _begin_crew(self, event: BeforeMultiAgentInvocationEvent) -> None:
        """Open the record of a swarm or a graph."""
        source = event.source
        above = self._nodes.pop(source, None)
        if source not in self._crews:  # else it was interrupted, and goes on
            self._crews[source] = StrandsCrew(source, None if above is None else above.root)

    async def _begin_node(self, event: BeforeNodeCallEvent) -> None:
        """Note who begins next in a swarm or a graph, and hear it."""
        crew = self._crews.get(event.source)
        if crew is None:
            return
        if not crew.passes_on and crew.root is None:
            try:
                crew.root = await self._first(crew, crew.name)
                if crew.root is not None:
                    await self._safely(crew.root.work.open)
            except (GrantError, HandoffError) as error:
                event.cancel_node = sentence_for(error)
                return
        executor = crew.executor(event.node_id)
        if isinstance(executor, Agent):
            self.init_agent(executor)
        elif isinstance(executor, MultiAgentBase):
            self.init_multi_agent(executor)
        else:
            self._ledger.leave_uncovered([event.node_id], "is no agent of ours")
            return
        self._nodes[executor] = crew

    async def _end_crew(self, event: AfterMultiAgentInvocationEvent) -> None:
        """End all open work of a swarm or a graph."""
        source: Any = event.source
        if getattr(source.state, "completion_status", None) is Status.INTERRUPTED:
            return
        crew = self._crews.pop(source, None)
        if crew is None:
            return
        seats = [seat for seat in crew.seats if seat.said]
        crew.said = seats[-1].said if seats else _last_words(source)
        crew.failure = sys.exc_info()[1]
        await self._safely(crew.close)

    async def _ask_model(self, context: InvokeModelContext, ask: Callable[[InvokeModelContext], Events]) -> Events:
        """Start the run or accept the handoff, with a checkpoint; add the briefing to its request."""
        seat = self._seats.get((id(context.agent), id(context.invocation_state)))
        if seat is not None:
            try:
                briefing = await self._safely(lambda: _prepare(seat, context), enforced=seat.work.enforced)
            except BatonpassError as error:
                if error is not seat.work.waits and seat.ends is not SeatEnd.TOOL:
                    raise
                seat.refusal = error
                yield _answer(sentence_for(error))
                return
            if briefing:
                context = dataclasses.replace(context, messages=_briefed(briefing, context.messages))
        async for event in ask(context):
            yield event

    async def _run_tool(self, context: ExecuteToolContext, make_it: MakeCall) -> Events:
        """Let a call pass through us."""
        seat = self._seats.get((id(context.agent), id(context.invocation_state)))
        if seat is None:
            if self._ledger.enforces:
                name = context.tool_use["name"]
                sentence = sentence_for(GuardFailedError(name, "nobody knows whose call it is"))
                told = {"toolUseId": str(context.tool_use.get("toolUseId")), "status": "error"}
                yield ToolResultEvent({**told, "content": [{"text": sentence}]})
                return
            self._ledger.miss()
            async for event in make_it(context):
                yield event
            return
        crew = next((one for one in self._crews.values() if seat in one.seats), None)
        child = agent_of(context.tool)
        waiting = None if child is None else self._interrupted.get(child)
        async for event in StrandsCall(self._ledger, seat, crew, context, make_it).make(waiting):
            yield event

    async def _safely(self, act: Callable[[], Done], *, enforced: bool | None = None) -> Done | None:
        """Run a step of the recorder in a thread. Its errors do not reach an observed program."""
        return await in_thread(lambda: self._ledger.attempt(act, enforced=enforced))


def _prepare(seat: AgentSeat, context: InvokeModelContext) -> str:
    work = seat.work
    work.open(lambda: _made_of(context.agent))
    if work.waits is not None:
        raise work.waits
    work.checkpoint({"framework": FRAMEWORK, "agent": seat.agent, "messages": encode_bytes_values(context.messages)})
    return work.briefing()


def _made_of(agent: Any) -> Makeup:
    config = agent.model.get_config()
    model = config.get("model_id") if isinstance(config, dict) else None
    return makeup(model=model or agent.model, prompt=agent.system_prompt, tools=agent.tool_names)


def _briefed(briefing: str, messages: Any) -> Any:
    """Return messages with a briefing before them, in the user's role: the words are the sender's, not the operator's.

    It joins the first message, because some providers take no two messages of one role after another.
    """
    first = messages[0] if messages else {"role": "user", "content": []}
    if first["role"] != "user":
        return [{"role": "user", "content": [{"text": briefing}]}, *messages]
    return [{**first, "content": [{"text": briefing}, *first["content"]]}, *messages[1:]]


def _answer(text: str) -> ModelStopReason:
    """Return an answer in place of the model's."""
    return ModelStopReason(
        stop_reason="end_turn",
        message={"role": "assistant", "content": [{"text": text}]},
        usage={"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
        metrics={"latencyMs": 0},
    )


def _last_words(source: Any) -> str:
    """Return the result of the last node of a graph."""
    results = list(getattr(source.state, "results", {}).values())
    return str(results[-1].result).strip() if results else ""


def _find(start: Agent | MultiAgentBase, name: str) -> Agent:
    """Return the agent of a name among those that can be reached from another, a swarm or a graph."""
    queue: list[Any] = [start]
    seen: set[int] = set()
    while queue:
        one = queue.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Agent):
            if as_agent(one.name) == name:
                return one
            queue += [child for child in map(agent_of, one.tool_registry.registry.values()) if child is not None]
        else:
            queue += [getattr(node, "executor", None) for node in getattr(one, "nodes", {}).values()]
    raise NotFoundError("agent", name)
