"""The agents that work can be handed to, by stable id."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, Final, Protocol

from batonpass.agents.agent_tools import Work, folded
from batonpass.agents.definition import AgentDefinition
from batonpass.agents.runner import AgentRunner
from batonpass.aio import AsyncRelay
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.ids import AgentId, require_agent
from batonpass.model.baton.card import Card
from batonpass.relay import Relay

PROTOCOL: Final = "a2a/1.0"
CREW: Final = "crew"  # stands for the model of a crew, which has none


class AgentWorker(Protocol):
    """The worker behind a registered agent: the runner of its model, or a crew."""

    async def introduce(self, card: Card) -> None:
        """Register the card of the agent in its relay."""

    def working(self, agent_def: AgentDefinition) -> Work:
        """Return the function that works on handoffs to the agent."""


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
    """An agent that work can be handed to: its card, its definition, and who works for it."""

    card: AgentCard
    definition: AgentDefinition
    worker: AgentWorker

    @property
    def runner(self) -> AgentRunner:
        """Return the runner of its model. Raises `InvalidValueError` for a crew, which has none of its own."""
        if not isinstance(self.worker, AgentRunner):
            raise InvalidValueError("runner", f"{self.card.id} is a crew; its members have runners")
        return self.worker

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

    def __repr__(self) -> str:
        return f"<AgentRegistry of {', '.join(self._agents) or 'no agent'}>"

    def register(
        self,
        agent_id: str,
        runner: AgentWorker,
        agent_def: AgentDefinition | None = None,
        description: str = "",
        skills: Iterable[str] = (),
        *,
        version: str = "1.0.0",
    ) -> AgentCard:
        """Register an agent, or a crew in place of its runner, so that work can be handed to it.

        A crew needs no definition; if it has one, its permits hold for the crew. Raises `InvalidValueError` if the id
        is taken, or if the definition of an agent is missing.
        """
        stable = require_agent("agent_id", AgentId(agent_id))
        if stable in self._agents:
            raise InvalidValueError("agent_id", f"{agent_id} is already registered")
        words = agent_id.replace("-", " ").replace("_", " ")
        card = AgentCard(
            id=agent_id, name=words.title(), description=description, version=version, skills=tuple(skills)
        )
        if agent_def is None:
            if isinstance(runner, AgentRunner):
                raise InvalidValueError("agent_def", f"is missing: it has the model and instructions of {agent_id}")
            agent_def = AgentDefinition(name=agent_id, model=CREW)
        self._agents[stable] = Registered(card=card, definition=agent_def, worker=runner)
        return card

    def get(self, agent_id: str) -> Registered:
        """Return an agent by its stable id. Raises `NotFoundError`, which names ids that look alike."""
        found = self._agents.get(AgentId(agent_id))
        if found is None:
            near = self.find_near(agent_id)
            raise NotFoundError("agent", f"{agent_id}; did you mean {' or '.join(near)}?" if near else agent_id)
        return found

    def find_near(self, agent_id: str) -> tuple[AgentId, ...]:
        """Return the ids that look like a given one, the most similar first."""
        spelled = {folded(known).casefold(): known for known in self._agents}
        return tuple(spelled[found] for found in get_close_matches(folded(agent_id).casefold(), spelled))

    def work_of(self, agent_id: str) -> Work:
        """Return the function that works on handoffs to an agent. Raises `NotFoundError`."""
        agent = self.get(agent_id)
        return agent.worker.working(agent.definition)

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
            asynchronous.register(agent_id, self.work_of(agent_id), card=agent.held_to)

    def __contains__(self, agent_id: object) -> bool:
        return agent_id in self._agents

    def __iter__(self) -> Iterator[AgentId]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)
