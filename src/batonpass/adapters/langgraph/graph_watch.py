"""The nodes that LangGraph runs at this moment, and the graphs around them. It needs the extra.

LangChain tells callback handlers when a run begins and how it ends: graphs, their nodes, and tools. We hear it through
a hook of LangChain's own, so that nobody has to pass a handler. A middleware with `before_agent` and `after_agent`
would add nodes to the graph, which streams show, and is not told of transfers and errors.
"""

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphInterrupt

from batonpass.errors import BatonpassError

_STEP: Final = "graph:step:"  # the tag of a node's run
_AGENT: Final = "lc_agent_name"  # how `create_agent` names its graphs

# What to do when a run ends: with its output, or with its error.
Ended = Callable[[Any, BaseException | None], None]


@dataclass(eq=False)
class SeenRun:
    """A run of LangChain that has not ended."""

    name: str
    parent: "SeenRun | None" = None
    node: str | None = None  # if it is a node: its name
    label: str | None = None  # the agent that its metadata name, which is inherited
    nodes: Counter[str] = field(default_factory=Counter)  # of a graph: how often each node has begun
    interrupted: bool = False  # of a graph: a node of it waits for somebody
    held: BatonpassError | None = None  # of a graph: the hold that we wait for, if we do
    ended: list[Ended] = field(default_factory=list)
    is_told: bool = True  # LangChain tells us of it; else we know only what its config says

    @property
    def agent(self) -> str:
        """Return the name of the agent whose graph this is."""
        inherited = None if self.parent is None else self.parent.label
        return self.label if self.label is not None and self.label != inherited else self.name

    def place(self) -> "GraphPlace | None":
        """Return the innermost node that this run is or is inside of."""
        run: SeenRun | None = self
        while run is not None:
            if run.node is not None and run.parent is not None:
                return GraphPlace(run.parent, run.node, run)
            run = run.parent
        return None

    def hold(self, error: BatonpassError) -> None:
        """Note that this graph, and all graphs around it, wait for a person, as the error says."""
        run: SeenRun | None = self
        while run is not None:
            run.held = run.held or error
            run = run.parent


@dataclass(frozen=True)
class GraphPlace:
    """A node that is running, and its graph."""

    graph: SeenRun
    node: str
    run: SeenRun

    def around(self) -> "GraphPlace | None":
        """Return the node of another graph inside of which this graph runs."""
        return None if self.graph.parent is None else self.graph.parent.place()


class GraphWatch(BaseCallbackHandler):
    """Knows every run of LangChain in this process that has not ended. It changes nothing."""

    def __init__(self) -> None:
        self._seen: dict[UUID, SeenRun] = {}
        self._untold: dict[tuple[Any, str], SeenRun] = {}  # by thread and namespace

    def find(self, config: Mapping[str, Any]) -> GraphPlace:
        """Return the node that a config belongs to. If LangChain tells us nothing, take it from the config.

        Calls are judged and recorded then too. But the end of a graph is guessed, and the next node is not known.
        """
        inside = getattr(config.get("callbacks"), "parent_run_id", None)
        run = None if inside is None else self._seen.get(inside)
        return (None if run is None else run.place()) or self._guess(config)

    def _guess(self, config: Mapping[str, Any]) -> GraphPlace:
        configured, metadata = config.get("configurable") or {}, config.get("metadata") or {}
        space = str(configured.get("checkpoint_ns", "")).rpartition("|")[0]
        graph = self._untold.get((configured.get("thread_id"), space))
        if graph is None:
            warnings.warn(
                "LangChain does not tell of this graph: its calls are recorded, its end is guessed", stacklevel=2
            )
            name = str(metadata.get(_AGENT) or "agent")
            graph = self._untold[configured.get("thread_id"), space] = SeenRun(name, is_told=False)
        node = SeenRun(str(metadata.get("langgraph_node", "")), graph)
        node.node = node.name
        return GraphPlace(graph, node.name, node)

    def end_untold(self, graph: SeenRun, output: Any, error: BaseException | None) -> None:
        """End a graph of which LangChain told us nothing."""
        self._untold = {key: known for key, known in self._untold.items() if known is not graph}
        self._tell(graph, output, error)

    def on_chain_start(
        self,
        serialized: Any,  # noqa: ARG002 - LangChain's own
        inputs: Any,  # noqa: ARG002 - LangChain's own
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **said: Any,
    ) -> None:
        """Note that a graph, a node or another chain has begun."""
        name = str(said.get("name") or "")
        is_node = any(tag.startswith(_STEP) for tag in tags or ())
        parent = None if parent_run_id is None else self._seen.get(parent_run_id)
        self._seen[run_id] = SeenRun(name, parent, name if is_node else None, (metadata or {}).get(_AGENT))
        if is_node and parent is not None:
            parent.nodes[name] += 1

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """Tell whoever waits for the end of a graph."""
        self._end(run_id, outputs, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Tell whoever waits for the end of a graph. A transfer and a pause are errors here too."""
        self._end(run_id, None, error)

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        """Note that a tool has begun: a graph may run inside of it."""
        del input_str
        parent = None if parent_run_id is None else self._seen.get(parent_run_id)
        name = str((serialized or {}).get("name", ""))
        self._seen[run_id] = SeenRun(name, parent, label=None if parent is None else parent.label)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Forget a tool."""
        self._end(run_id, output, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Forget a tool."""
        self._end(run_id, None, error)

    def _end(self, run_id: UUID, output: Any, error: BaseException | None) -> None:
        run = self._seen.pop(run_id, None)
        if run is None:
            return
        if run.node is not None and run.parent is not None and isinstance(error, GraphInterrupt):
            run.parent.interrupted = True
        self._tell(run, output, error)

    @staticmethod
    def _tell(run: SeenRun, output: Any, error: BaseException | None) -> None:
        for tell in run.ended:
            with contextlib.suppress(Exception):  # those who listen tell of their own failures
                tell(output, error)


WATCH: Final = GraphWatch()
_HANDLER: Final[ContextVar[GraphWatch | None]] = ContextVar("batonpass_langgraph_watch", default=WATCH)
register_configure_hook(_HANDLER, inheritable=True)
