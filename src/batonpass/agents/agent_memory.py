"""Memory of native agents: the texts that an agent kept in earlier runs, with their labels."""

from batonpass.agents.agent_relay import Place, shown_place, store_of
from batonpass.aio.threads import in_thread
from batonpass.handoff.sessions.agent_memory import Memory, find_memories
from batonpass.model.base.ids import AgentId

__all__ = ["AgentMemory", "Memory"]


class AgentMemory:
    """Reads the memory of agents. They write it in a run, and the relay labels it."""

    def __init__(self, place: Place = None) -> None:
        self._place = place

    def __repr__(self) -> str:
        return f"<AgentMemory of {shown_place(self._place)}>"

    async def entries(self, agent_id: str) -> list[Memory]:
        """Return all memories of an agent, the oldest first."""
        return await in_thread(lambda: self._entries(agent_id))

    async def find(self, agent_id: str, query: str, *, limit: int = 10) -> list[Memory]:
        """Return the memories that share most words with a query, the latest first among equals."""
        wanted = {word.casefold() for word in query.split()}
        scored = [
            (len(wanted & {word.casefold().strip(".,;:!?") for word in entry.text.split()}), number, entry)
            for number, entry in enumerate(await self.entries(agent_id))
        ]
        found = [one for one in scored if one[0] or not wanted]
        return [entry for _, _, entry in sorted(found, key=lambda one: one[:2], reverse=True)[:limit]]

    def _entries(self, agent_id: str) -> list[Memory]:
        with store_of(self._place).view() as view:
            return list(find_memories(view, AgentId(agent_id)))
