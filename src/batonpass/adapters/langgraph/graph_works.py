"""The agents at work in each graph: how they begin, to whom they hand off, and how they end. It needs the extra.

An agent is a graph. It begins when its model or one of its tools is first called, and the next step of its graph
decides how it ends. If the graph ends, the agent has its result. If a command leads out of it into the
graph around it, the agent has transferred the conversation, and waits. If the outer graph runs the agent again, it goes
on. If the outer graph ends, its result is the agent's result too.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphInterrupt, ParentCommand

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import (
    ThreadTurn,
    begin_work,
    find_left,
    resume_senders,
    take_up,
)
from batonpass.adapters.langgraph.graph_watch import WATCH, GraphPlace, SeenRun
from batonpass.errors import BatonpassError
from batonpass.model.base.ids import AgentId, as_agent

NO_WORDS: Final = "(no words of a person)"
_CHECKPOINTER: Final = "__pregel_checkpointer"
_WAITING: Final = "*"  # in place of a namespace: an agent that has passed the conversation on


@dataclass
class Caller:
    """A tool call in which other agents may begin: each is a handoff from the agent whose call it is."""

    work: AgentWork
    key: str  # the same for the same call, also after the graph was resumed
    offered: AgentWork | None = None  # what the call said itself: accepted by the first agent that begins
    begun: dict[SeenRun, int] = field(default_factory=dict)  # the number of each graph that asked to begin here


CALLER: Final[ContextVar[Caller | None]] = ContextVar("batonpass_langgraph_caller", default=None)
# Work that goes on: the first agent of that name in the graph that is invoked here takes it.
RESUMED: Final[ContextVar[list[AgentWork] | None]] = ContextVar("batonpass_langgraph_resumed", default=None)


@contextmanager
def within(caller: Caller) -> Iterator[None]:
    """Let agents that begin here be handoffs from this call."""
    outer = CALLER.set(caller)
    try:
        yield
    finally:
        CALLER.reset(outer)


@dataclass
class Transfer:
    """A conversation that was offered to a node, and has not been taken by it."""

    work: AgentWork
    node: str
    begun_before: int  # how often the node had begun when this was offered


@dataclass
class GraphScope:
    """A graph whose nodes are agents: who was offered the conversation, and who has passed it on and waits."""

    transfers: list[Transfer] = field(default_factory=list)
    waiting: list["tuple[GraphMoment, AgentWork]"] = field(default_factory=list)

    def take(self, node: str) -> AgentWork | None:
        """Return the work that was offered to a node that begins."""
        found = next((one for one in self.transfers if one.node == node), None)
        if found is None:
            return None
        self.transfers.remove(found)
        return found.work

    def go_on(self, agent: AgentId) -> AgentWork | None:
        """Return the work of an agent that had passed the conversation on and is run again."""
        found = next((one for one in reversed(self.waiting) if one[1].agent == agent), None)
        if found is None:
            return None
        self.waiting.remove(found)
        return found[1]


@dataclass(frozen=True)
class GraphMoment:
    """A node of an agent's graph at work, or a node that is an agent: its place and its state."""

    place: GraphPlace
    config: Mapping[str, Any]
    state: Any
    agent: AgentId
    is_agent: bool = False  # the node itself is the agent, and not its graph

    @property
    def space(self) -> str:
        """Return the namespace of the agent: the same when the graph is resumed."""
        own = str(self.configured.get("checkpoint_ns", ""))
        return own if self.is_agent else own.rpartition("|")[0]

    @property
    def is_kept(self) -> bool:
        """Return whether LangGraph keeps the state from which it can go on, if the graph pauses or fails."""
        return self.configured.get(_CHECKPOINTER) not in {None, False}

    @property
    def around(self) -> GraphPlace | None:
        """Return the node in which the agent works: the graph around knows whom it runs next."""
        return self.place if self.is_agent else self.place.around()

    @property
    def configured(self) -> Mapping[str, Any]:
        """Return the configuration by the program and LangGraph."""
        found = self.config.get("configurable")
        return found if isinstance(found, Mapping) else {}

    @property
    def messages(self) -> Sequence[AnyMessage]:
        """Return the messages of the agent so far."""
        return messages_of(self.state)

    @property
    def turn(self) -> ThreadTurn | None:
        """Return which turn of which conversation this is; None if LangGraph keeps none."""
        thread = self.configured.get("thread_id")
        if thread is None:
            return None
        said = [message for message in self.messages if isinstance(message, HumanMessage)]
        return ThreadTurn(thread=f"langgraph:{thread}", name=(said[-1].id if said else None) or self.space or "-")

    def answered(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the calls of this turn whose results the agent's messages have: tool and arguments."""
        since = max((n for n, one in enumerate(self.messages) if isinstance(one, HumanMessage)), default=0)
        turn = self.messages[since:]
        known = {message.tool_call_id for message in turn if isinstance(message, ToolMessage)}
        for message in turn:
            if isinstance(message, AIMessage) and (message.name is None or as_agent(message.name) == self.agent):
                yield from ((call["name"], call["args"]) for call in message.tool_calls if call["id"] in known)


# Of the whole process: agents of one graph may each have a middleware of their own.
_LOCK: Final = threading.RLock()
_SCOPES: Final[dict[SeenRun, GraphScope]] = {}


class GraphWorks:
    """The agents that are at work, by their graphs."""

    def __init__(self, ledger: FrameworkLedger) -> None:
        self.ledger = ledger
        self._lock = _LOCK
        self._works: dict[SeenRun, AgentWork] = {}
        self._scopes = _SCOPES
        self._paused: dict[tuple[str, str, AgentId], tuple[str, AgentWork]] = {}

    def find(self, moment: GraphMoment) -> AgentWork:
        """Return the work of the agent whose graph this is; if it is new, it has not begun.

        Raises `HandoffError` and `GrantError` if it is handed to the agent and must not be.
        """
        graph = moment.place.graph
        with self._lock:
            if (known := self._works.get(graph)) is not None:
                return known
            work = self.begin(moment)
            self._works[graph] = work
        graph.ended.append(lambda output, error: self._end_graph(moment, work, output, error))
        return work

    def begin(self, moment: GraphMoment) -> AgentWork:
        """Return the work of an agent that begins or goes on here. Raises as `find`."""
        with self._lock:
            return self._known(moment) or self._new(moment)

    def _new(self, moment: GraphMoment) -> AgentWork:
        name, words = moment.agent, words_of(moment.state)
        turn, caller = moment.turn, CALLER.get()
        if caller is None:
            left = None if turn is None else self._left(moment, turn, words)
            return left or begin_work(self.ledger, name, words, turn=turn)
        if caller.offered is not None:
            offered, caller.offered = caller.offered, None
            return offered
        number = caller.begun.setdefault(moment.place.graph, len(caller.begun))
        return caller.work.offer(name, words, key=f"{caller.key}:{number}")

    def _known(self, moment: GraphMoment) -> AgentWork | None:
        """Return the work that somebody here knows to be this one."""
        resumed = RESUMED.get()
        if resumed and resumed[0].agent == moment.agent:
            return resumed.pop()
        return self._passed(moment.around, moment.agent) or self._unpause(moment)

    def _passed(self, around: GraphPlace | None, name: AgentId) -> AgentWork | None:
        """Return the work that the graph around passed to this node, or that goes on now in it."""
        scope = None if around is None else self._scopes.get(around.graph)
        return None if scope is None or around is None else scope.take(around.node) or scope.go_on(name)

    def _left(self, moment: GraphMoment, turn: ThreadTurn, words: str) -> AgentWork | None:
        """Return the work that an earlier process left undone: somebody had transferred the conversation to the agent.

        The agent that had transferred it waits again.
        """

        def find() -> AgentWork | None:
            handoff = find_left(self.ledger, turn, moment.agent, words)
            if handoff is None:
                return None
            senders = resume_senders(self.ledger, handoff)
            for sender in reversed(senders):
                self.wait(moment, sender)
            return take_up(self.ledger, handoff, senders[0] if senders else None)

        return self.ledger.attempt(find)

    def offer(
        self, moment: GraphMoment, work: AgentWork, *, to: str, task: str, key: str, agent: AgentId | None = None
    ) -> AgentWork:
        """Offer the conversation to a node of the graph around. Raises `HandoffError` and `GrantError`.

        The agent has the name of the node, unless another is given.
        """
        offered = work.offer(agent or as_agent(to), task, key=key)
        if (around := moment.around) is not None:
            with self._lock:
                self._scope(around.graph).transfers.append(Transfer(offered, to, around.graph.nodes[to]))
        return offered

    def wait(self, moment: GraphMoment, work: AgentWork) -> None:
        """Let an agent wait that has passed the conversation on in the graph around."""
        if (around := moment.around) is None:
            work.leave()
            return
        with self._lock:
            self._scope(around.graph).waiting.append((moment, work))

    def _scope(self, graph: SeenRun) -> GraphScope:
        known = self._scopes.get(graph)
        if known is None:
            known = self._scopes[graph] = GraphScope()
            graph.ended.append(lambda output, error: self._end_scope(graph, output, error))
        return known

    def _unpause(self, moment: GraphMoment) -> AgentWork | None:
        turn = moment.turn
        if turn is None:
            return None
        paused, name = self._paused, moment.agent
        waiting = paused.pop((turn.thread, _WAITING, name), (None, None))
        said, work = paused.pop((turn.thread, moment.space, name), waiting)
        if work is not None and said != turn.name:
            work.abort(InterruptedError("the conversation went on with other words"))
            return None
        return work

    def _end_graph(self, moment: GraphMoment, work: AgentWork, output: Any, error: BaseException | None) -> None:
        graph = moment.place.graph
        with self._lock:
            self._works.pop(graph, None)
        try:
            if _is_paused(graph, output, error):
                self.pause(moment, work, graph.held, moment.space)
            else:
                self.end(moment, work, output, error)
        except Exception as failed:  # noqa: BLE001 - LangChain would only log it
            self.ledger.complain(failed)

    def end(self, moment: GraphMoment, work: AgentWork, output: Any, error: BaseException | None) -> None:
        """End the work of an agent, or let it wait if it has passed the conversation on."""
        if isinstance(error, ParentCommand):
            self.wait(moment, work)
        elif error is None:
            work.close(result_of(output))
        elif work.handoff is None and moment.is_kept:
            work.leave()  # LangGraph goes on here if it is invoked again, and nothing of it is done twice
        else:
            work.abort(error)

    def pause(self, moment: GraphMoment, work: AgentWork, held: BatonpassError | None, space: str) -> None:
        """Leave an agent that waits for somebody: for a person whom we ask, or for its program."""
        turn = moment.turn
        if held is not None:
            work.abort(held)
        elif turn is not None and work.run is not None:
            with self._lock:
                self._paused[turn.thread, space, work.agent] = turn.name, work

    def _end_scope(self, graph: SeenRun, output: Any, error: BaseException | None) -> None:
        with self._lock:
            scope = self._scopes.pop(graph)
        paused = _is_paused(graph, output, error)
        try:
            for transfer in scope.transfers if error is None and not paused else ():
                if graph.nodes[transfer.node] == transfer.begun_before:
                    transfer.work.drop()
            for moment, work in reversed(scope.waiting):
                if paused:
                    self.pause(moment, work, graph.held, _WAITING)
                elif error is None or isinstance(error, ParentCommand):
                    work.close(result_of(output))
                elif moment.is_kept:
                    work.leave()
                else:
                    work.abort(error)
        except Exception as failed:  # noqa: BLE001 - as above
            self.ledger.complain(failed)


def _is_paused(graph: SeenRun, output: Any, error: BaseException | None) -> bool:
    """Return whether a graph stopped in the middle, and may go on later."""
    if isinstance(error, GraphInterrupt):
        return True
    return error is None and (graph.interrupted or _is_open(messages_of(output)))


def _is_open(messages: Sequence[AnyMessage]) -> bool:
    """Return whether calls of the last answer have no result, as in a graph that stops before its tools."""
    last = messages[-1] if messages else None
    return isinstance(last, AIMessage) and bool(last.tool_calls)


def moment_of(
    config: Mapping[str, Any], state: Any, agent: str | None = None, *, is_agent: bool = False
) -> GraphMoment:
    """Return the moment at which a node of an agent's graph runs."""
    place = WATCH.find(config)
    return GraphMoment(place, config, state, as_agent(agent or place.graph.agent), is_agent)


def recognised(ledger: FrameworkLedger, moment: GraphMoment) -> Iterator[FrameworkCall]:
    """Yield the calls whose results LangGraph has kept: an agent that goes on does so after them."""
    for name, arguments in moment.answered():
        yield framework_call(ledger.tools.find(name), arguments)


def messages_of(state: Any) -> Sequence[AnyMessage]:
    """Return the messages in a state or an output of a graph."""
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", state)
    return found if isinstance(found, Sequence) and not isinstance(found, str) else ()


def words_of(state: Any) -> str:
    """Return the last words of a person in a state; if it has no messages, the state itself."""
    messages = messages_of(state)
    if not messages and isinstance(state, Mapping) and state:
        return json.dumps(state, ensure_ascii=False, default=str)
    said = [message for message in messages if isinstance(message, HumanMessage)]
    return (text_of(said[-1]) if said else "") or NO_WORDS


def text_of(message: Any) -> str:
    """Return the text of a message."""
    content = message.content
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else part.get("text", "") for part in content]
    return "\n".join(part for part in parts if part)


def result_of(output: Any) -> str:
    """Return the result of an agent: the text of its last message; if there are no messages, the output itself."""
    messages = messages_of(output)
    if messages and hasattr(messages[-1], "content"):
        return text_of(messages[-1])
    return "" if output is None else json.dumps(output, ensure_ascii=False, default=str)
