"""Completeness: whether a handoff says what the policy requires of its kind."""

from batonpass.errors import IncompleteBatonError
from batonpass.model.kinds import Relation
from batonpass.model.policy import HandoffPolicy


def required_parts(relation: Relation, policy: HandoffPolicy) -> tuple[str, ...]:
    """Return the parts without which the policy does not let a handoff of this kind go."""
    return tuple(map(str, policy.require.get(relation, ())))


def require_complete(relation: Relation, missing: tuple[str, ...], policy: HandoffPolicy) -> None:
    """Refuse a handoff that leaves out what the policy requires. Raises `IncompleteBatonError`."""
    required = set(required_parts(relation, policy)) if missing else ()
    if refused := tuple([str(part) for part in missing if part in required]):
        raise IncompleteBatonError(refused, relation)
