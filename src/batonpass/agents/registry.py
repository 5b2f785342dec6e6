"""The agents that work can be handed to, by stable id."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from batonpass.agents.definition import AgentDefinition
from batonpass.agents.runner import AgentRunner
from batonpass.aio import AsyncRelay
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.ids import AgentId, require_agent
from batonpass.model.baton.card import Card
from batonpass.relay import Relay

PROTOCOL: Final = "a2a/1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCard:
    """A public description of an agent, for people and for other systems."""

    id: str
    name: str
    description: str = ""
    version: str = "1.0.0"
    skills: tuple[str, ...] = ()
    protocol: str = PROTOCOL
    endpoint: str | None = None  # where it can be reached, if anywhere

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        facts = asdict(self) | {"skills": list(self.skills)}
        return {name: value for name, value in facts.items() if name != "endpoint" or value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """An agent that work can be handed to: its card, its definition and its runner."""

    card: AgentCard
    definition: AgentDefinition
    runner: AgentRunner

    @property
    def held_to(self) -> Card:
        """Return the card for relays: the description, the skills and the ceiling."""
        ceiling = self.definition.ceiling
        return Card(
            agent=AgentId(self.card.id),
            description=self.card.description,
            skills=self.card.skills,
            ceiling=None if ceiling is None else tuple(ceiling),
        )


class AgentRegistry:
    """Agents by stable id. Ids are compared literally: `billing-agent` and `billing_agent` are two agents."""

    def __init__(self) -> None:
        self._agents: dict[AgentId, Registered] = {}

    def register(
        self,
        agent_id: str,
        runner: AgentRunner,
        agent_def: AgentDefinition,
        description: str = "",
        skills: Iterable[str] = (),
        *,
        version: str = "1.0.0",
    ) -> AgentCard:
        """Register an agent, so that work can be handed to it. Raises `InvalidValueError` if its id is taken."""
        stable = require_agent("agent_id", AgentId(agent_id))
        if stable in self._agents:
            raise InvalidValueError("agent_id", f"{agent_id} is already registered")
        words = agent_id.replace("-", " ").replace("_", " ")
        card = AgentCard(
            id=agent_id, name=words.title(), description=description, version=version, skills=tuple(skills)
        )
        self._agents[stable] = Registered(card=card, definition=agent_def, runner=runner)
        return card

    def get(self, agent_id: str) -> Registered:
        """Return an agent by its stable id. Raises `NotFoundError`."""
        found = self._agents.get(AgentId(agent_id))
        if found is None:
            raise NotFoundError("agent", agent_id)
        return found

    def card(self, agent_id: str) -> AgentCard:
        """Return the card of an agent. Raises `NotFoundError`."""
        return self.get(agent_id).card

    def cards(self) -> tuple[AgentCard, ...]:
        """Return the cards of all agents."""
        return tuple(agent.card for agent in self._agents.values())

    def serve(self, relay: Relay | AsyncRelay) -> None:
        """Register these agents with a relay, so that its workers can run and retry their handoffs."""
        asynchronous = relay if isinstance(relay, AsyncRelay) else AsyncRelay(relay)
        for agent_id, agent in self._agents.items():
            asynchronous.register(agent_id, agent.runner.working(agent.definition), card=agent.held_to)

    def __contains__(self, agent_id: object) -> bool:
        return agent_id in self._agents

    def __iter__(self) -> Iterator[AgentId]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)
