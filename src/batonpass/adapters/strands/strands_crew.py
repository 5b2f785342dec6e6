"""A swarm or a graph at work: its agents at work, and the open offers of each. It needs the extra.

A swarm is the agent that it begins with, which passes the work on; a graph is a run of its own, and its nodes are
handed their work.
"""

from typing import Any

from strands.multiagent import Swarm
from strands.multiagent.base import MultiAgentBase

from batonpass.adapters.frameworks.agent_seat import AgentSeat

NO_WORDS = "(no words of a person)"


class StrandsCrew:
    """The agents of one invocation of a swarm or a graph."""

    def __init__(self, source: MultiAgentBase, sender: AgentSeat | None) -> None:
        self.source = source
        self.sender = sender  # the seat of the graph of which this is a node
        self.root: AgentSeat | None = None  # of a graph
        self.seats: list[AgentSeat] = []  # the agents of a swarm, the latest last
        self.offered: list[AgentSeat] = []
        self.said = ""
        self.failure: BaseException | None = None

    @property
    def passes_on(self) -> bool:
        """Return whether its agents pass the work on themselves."""
        return isinstance(self.source, Swarm)

    @property
    def name(self) -> str:
        """Return its name."""
        return str(getattr(self.source, "id", None) or type(self.source).__name__)

    @property
    def words(self) -> str:
        """Return the words for which it works."""
        state = getattr(self.source, "state", None)
        return words_of(getattr(state, "task", None))

    def executor(self, node: str) -> Any:
        """Return the worker at a node: an agent, or another swarm or graph."""
        found = self.source.nodes.get(node)  # type: ignore[attr-defined,unused-ignore] # swarms and graphs have it
        return getattr(found, "executor", None)

    def has(self, node: object) -> bool:
        """Return whether there is such a node."""
        return isinstance(node, str) and self.executor(node) is not None

    def name_of(self, node: str) -> str:
        """Return the name of the agent at a node."""
        return str(getattr(self.executor(node), "name", None) or node)

    def close(self) -> None:
        """End all open work, the latest first, with the last words as its result."""
        for seat in self._open():
            if self.failure is not None or not self.said:
                seat.abort(self.failure or RuntimeError(f"{self.name} ended without a result"))
            else:
                seat.close(self.said)

    def _open(self) -> list[AgentSeat]:
        seats = [*([] if self.root is None else [self.root]), *self.seats]
        return [seat for seat in reversed(seats) if not seat.ended]


def words_of(given: object) -> str:
    """Return the words in a prompt: a text, blocks of content, or messages, of which the user's last counts."""
    if isinstance(given, str):
        return given or NO_WORDS
    blocks = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    said = [one for one in blocks if one.get("role") == "user"]
    if said:
        return words_of(said[-1]["content"])
    return "\n".join(one["text"] for one in blocks if isinstance(one.get("text"), str)) or NO_WORDS
