"""Conversations that one agent of a workflow has handed on, until the next one begins. It needs the extra.

A handoff workflow runs its agents one after another, and tells none of them who was before. So the offer is kept here,
and found by the name of the agent and the words that the conversation is about.
"""

import threading
from dataclasses import dataclass

from batonpass.adapters.frameworks.agent_work import AgentWork


@dataclass(frozen=True)
class OpenTransfer:
    """A conversation that was offered in one turn, to one agent or to several, and those who had it before."""

    offered: tuple[AgentWork, ...]
    before: tuple[AgentWork, ...]  # they end after the last agent has ended
    words: str
    result: str


class OpenTransfers:
    """The transfers that nobody has taken up yet. Workflows may run side by side."""

    def __init__(self) -> None:
        self._open: list[OpenTransfer] = []
        self._lock = threading.Lock()

    def add(self, transfer: OpenTransfer) -> None:
        """Wait for one of the agents to which it was offered."""
        with self._lock:
            self._open.append(transfer)

    def take(self, agent: str, words: str) -> tuple[AgentWork, tuple[AgentWork, ...]] | None:
        """Return the work of an agent to which the conversation was handed, and those before it.

        Offers to others in the same turn are dropped: the framework carries out one transfer.
        """
        with self._lock:
            fitting = [
                one for one in self._open if one.words == words and any(agent == work.agent for work in one.offered)
            ]
            if not fitting:
                return None
            self._open.remove(fitting[0])
        (taken, *_) = [work for work in fitting[0].offered if work.agent == agent]
        for other in fitting[0].offered:
            if other is not taken:
                other.drop()
        return taken, fitting[0].before

    def give_up(self) -> None:
        """End all that still waits: open offers are dropped, and the agents before them end."""
        with self._lock:
            left, self._open = self._open, []
        for transfer in left:
            for work in transfer.offered:
                work.drop()
            for work in reversed(transfer.before):
                work.close(transfer.result)
