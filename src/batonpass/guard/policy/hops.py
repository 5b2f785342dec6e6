"""Hops: whether work may go one agent further.

Decided from the signed lineage, never from a number that a caller passes.
"""

from batonpass.errors import AgentNotAllowedError, HandoffDepthExceededError, HandoffLoopError
from batonpass.model.base.ids import AgentId
from batonpass.model.base.value import Value
from batonpass.model.policy.handoff_policy import HandoffPolicy


class Lineage(Value, frozen=True, kw_only=True):
    """Who works for whom, from the sender up to the root, with the task of each. A root has no task."""

    hops: tuple[tuple[AgentId, str | None], ...]
    before: int = 0  # agents of other ledgers above the root

    @property
    def depth(self) -> int:
        """Return the number of agents in it, those of other ledgers included."""
        return len(self.hops) + self.before


def requires_lineage(policy: HandoffPolicy) -> bool:
    """Return whether the policy needs the lineage. Reading it costs a lookup for every hop."""
    return policy.max_depth is not None or policy.refuse_loops


def require_hop(to: AgentId, task: str, lineage: Lineage | None, policy: HandoffPolicy) -> None:
    """Refuse an offer that the policy does not allow to go one agent further.

    Raises `AgentNotAllowedError`, `HandoffDepthExceededError` and `HandoffLoopError`.
    """
    if policy.allowed_agents is not None and to not in policy.allowed_agents:
        raise AgentNotAllowedError(to, tuple(policy.allowed_agents))
    if lineage is None:
        return
    if policy.max_depth is not None and lineage.depth >= policy.max_depth:
        raise HandoffDepthExceededError(lineage.depth, policy.max_depth)
    if policy.refuse_loops and (to, task) in lineage.hops:
        raise HandoffLoopError(to)
