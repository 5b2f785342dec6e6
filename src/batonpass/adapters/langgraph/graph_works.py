"""Which agent is at work in which graph: what begins it, whom it hands to, and what ends it. It needs the extra.

An agent is a graph. It begins when its model or a tool of it is first called, and what its graph does next decides how
it ends. If the graph ends, the agent has its result. If the graph is left by a command to the graph around it, the
agent has transferred the conversation, and waits there: if that graph runs it again, it goes on; if that graph ends,
the result of that graph is its result too.
"""

import itertools
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
from batonpass.adapters.frameworks.framework_recorder import ThreadTurn, begin_work, find_left, take_up
from batonpass.adapters.langgraph.graph_watch import WATCH, GraphPlace, SeenRun
from batonpass.errors import PolicyFileError
from batonpass.model.base.ids import AgentId, as_agent

NO_WORDS: Final = "(no words of a person)"


@dataclass
class Caller:
    """A tool call in which other agents may begin: each is a handoff from the agent whose call it is."""

    work: AgentWork
    key: str  # the same for the same call, also after the graph was resumed
    offered: AgentWork | None = None  # what the call said itself: accepted by the first agent that begins
    begun: Iterator[int] = field(default_factory=itertools.count)


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
    waiting: list[AgentWork] = field(default_factory=list)

    def take(self, node: str) -> AgentWork | None:
        """Return the work that was offered to a node that begins."""
        found = next((one for one in self.transfers if one.node == node), None)
        if found is None:
            return None
        self.transfers.remove(found)
        return found.work

    def go_on(self, agent: AgentId) -> AgentWork | None:
        """Return the work of an agent that had passed the conversation on and is run again."""
        found = next((one for one in reversed(self.waiting) if one.agent == agent), None)
        if found is not None:
            self.waiting.remove(found)
        return found


@dataclass(frozen=True)
class GraphMoment:
    """A node of an agent's graph at work: where it is, and what it sees."""

    place: GraphPlace
    config: Mapping[str, Any]
    state: Any
    agent: AgentId

    @property
    def space(self) -> str:
        """Return the namespace of the agent's graph: the same when the graph is resumed."""
        return str(self.configured.get("checkpoint_ns", "")).rpartition("|")[0]

    @property
    def configured(self) -> Mapping[str, Any]:
        """Return what the program and LangGraph configured."""
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


class GraphWorks:
    """The agents that are at work, by their graphs."""

    def __init__(self, ledger: FrameworkLedger) -> None:
        self.ledger = ledger
        self._lock = threading.RLock()
        self._works: dict[SeenRun, AgentWork] = {}
        self._scopes: dict[SeenRun, GraphScope] = {}
        self._paused: dict[tuple[str, str, AgentId], tuple[str, AgentWork]] = {}

    def find(self, moment: GraphMoment) -> AgentWork:
        """Return the work of the agent whose graph this is; if it is new, it has not begun.

        Raises `HandoffError` and `GrantError` if it is handed to the agent and must not be.
        """
        graph = moment.place.graph
        with self._lock:
            if (known := self._works.get(graph)) is not None:
                return known
            work = self._begin(moment, moment.place.around())
            self._works[graph] = work
        graph.ended.append(lambda output, error: self._end(moment, work, output, error))
        return work

    def _begin(self, moment: GraphMoment, around: GraphPlace | None) -> AgentWork:
        if (known := self._known(moment, around)) is not None:
            return known
        name, words = moment.agent, words_of(moment.messages)
        turn, caller = moment.turn, CALLER.get()
        left = None if turn is None else self._left(turn, name, words, caller)
        if left is not None:
            return left
        if caller is None:
            return begin_work(self.ledger, name, words, turn=turn)
        if caller.offered is not None:
            offered, caller.offered = caller.offered, None
            return offered
        return caller.work.offer(name, words, key=f"{caller.key}:{next(caller.begun)}")

    def _known(self, moment: GraphMoment, around: GraphPlace | None) -> AgentWork | None:
        """Return the work that somebody here knows to be this one."""
        resumed = RESUMED.get()
        if resumed and resumed[0].agent == moment.agent:
            return resumed.pop()
        return self._passed(around, moment.agent) or self._unpause(moment)

    def _passed(self, around: GraphPlace | None, name: AgentId) -> AgentWork | None:
        """Return the work that the graph around passed to this node, or that goes on now in it."""
        scope = None if around is None else self._scopes.get(around.graph)
        return None if scope is None or around is None else scope.take(around.node) or scope.go_on(name)

    def _left(self, turn: ThreadTurn, name: AgentId, words: str, caller: Caller | None) -> AgentWork | None:
        """Return the work that an earlier process left undone.

        Without a caller, somebody had transferred the conversation to the agent. With one, its root had failed.
        """
        if caller is not None and (caller.offered is not None or caller.work.handoff is not None):
            return None  # its key finds it
        try:
            handoff = find_left(self.ledger, turn, name, words)
        except PolicyFileError:
            raise
        except Exception as error:  # noqa: BLE001 - whoever begins anew is told in its own way
            self.ledger.complain(error)
            return None
        return None if handoff is None else take_up(self.ledger, handoff, None if caller is None else caller.work)

    def offer(self, moment: GraphMoment, work: AgentWork, *, to: str, task: str, key: str) -> AgentWork:
        """Offer the conversation to a node of the graph around. Raises `HandoffError` and `GrantError`."""
        offered = work.offer(as_agent(to), task, key=key)
        around = moment.place.around()
        if around is not None:
            self.expect(around.graph, offered, to)
        return offered

    def expect(self, graph: SeenRun, offered: AgentWork, node: str) -> None:
        """Expect a node of a graph to take what was offered to it."""
        with self._lock:
            self._scope(graph).transfers.append(Transfer(offered, node, graph.nodes[node]))

    def wait(self, graph: SeenRun, work: AgentWork) -> None:
        """Let an agent wait that has passed the conversation on in a graph."""
        with self._lock:
            self._scope(graph).waiting.append(work)

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
        said, work = self._paused.pop((turn.thread, moment.space, moment.agent), (None, None))
        if work is not None and said != turn.name:
            work.abort(InterruptedError("the conversation went on with other words"))
            return None
        return work

    def _end(self, moment: GraphMoment, work: AgentWork, output: Any, error: BaseException | None) -> None:
        graph = moment.place.graph
        with self._lock:
            self._works.pop(graph, None)
        around = moment.place.around()
        try:
            if isinstance(error, ParentCommand) and around is not None:
                self.wait(around.graph, work)
            elif _is_paused(graph, output, error):
                self._pause(moment, work)
            elif error is not None:
                work.abort(error)
            else:
                work.close(result_of(output))
        except Exception as failed:  # noqa: BLE001 - LangChain would only log it
            self.ledger.complain(failed)

    def _pause(self, moment: GraphMoment, work: AgentWork) -> None:
        """Leave an agent that waits for somebody: for a person whom we ask, or for its program."""
        held, turn = moment.place.graph.held, moment.turn
        if held is not None:
            work.abort(held)
        elif turn is not None and work.run is not None:
            with self._lock:
                self._paused[turn.thread, moment.space, moment.agent] = turn.name, work

    def _end_scope(self, graph: SeenRun, output: Any, error: BaseException | None) -> None:
        with self._lock:
            scope = self._scopes.pop(graph)
        paused = _is_paused(graph, output, error)
        try:
            for transfer in scope.transfers if error is None and not paused else ():
                if graph.nodes[transfer.node] == transfer.begun_before:
                    transfer.work.drop()
            for work in reversed(scope.waiting):
                if paused:
                    if graph.held is not None:
                        work.abort(graph.held)
                elif error is None or isinstance(error, ParentCommand):
                    work.close(result_of(output))
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


def moment_of(config: Mapping[str, Any], state: Any, agent: str | None = None) -> GraphMoment | None:
    """Return the moment at which a node of an agent's graph runs; None if LangChain told us of no such graph."""
    place = WATCH.find(config)
    return None if place is None else GraphMoment(place, config, state, as_agent(agent or place.graph.agent))


def recognised(ledger: FrameworkLedger, moment: GraphMoment) -> Iterator[FrameworkCall]:
    """Yield the calls whose results LangGraph has kept: an agent that goes on does so after them."""
    for name, arguments in moment.answered():
        yield framework_call(ledger.tools.find(name), arguments)


def messages_of(state: Any) -> Sequence[AnyMessage]:
    """Return the messages in a state or an output of a graph."""
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", state)
    return found if isinstance(found, Sequence) and not isinstance(found, str) else ()


def words_of(messages: Sequence[Any]) -> str:
    """Return the last words of a person in messages."""
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
    """Return what an agent gave back: the text of its last message."""
    messages = messages_of(output)
    return text_of(messages[-1]) if messages and hasattr(messages[-1], "content") else ""
