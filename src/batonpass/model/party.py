"""Who takes part: the principal work is done for, and the agents that do it."""

from dataclasses import dataclass

from batonpass.model.ids import AgentId, PrincipalId, require_agent, require_principal


@dataclass(frozen=True, slots=True)
class Principal:
    """Who work is done for: `user:ana`, `service:nightly`."""

    id: PrincipalId

    def __post_init__(self) -> None:
        require_principal("principal", self.id)


@dataclass(frozen=True, slots=True)
class Agent:
    """A worker with a stable id; its card comes with the registry that knows it."""

    id: AgentId

    def __post_init__(self) -> None:
        require_agent("agent", self.id)
