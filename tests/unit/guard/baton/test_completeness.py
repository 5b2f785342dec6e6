"""The policy says what a handoff must say."""

import pytest

from batonpass.errors import IncompleteBatonError
from batonpass.guard.baton.gaps import require_complete, required_parts
from batonpass.model.base.kinds import Relation
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import LAX

STRICT = HandoffPolicy(require={Relation.LEAD_TO_WORKER: ("rationale", "criteria")})


def test_what_the_policy_requires_is_refused_when_missing() -> None:
    """The error names the required parts that are missing, and no others."""
    with pytest.raises(IncompleteBatonError) as error:
        require_complete(Relation.LEAD_TO_WORKER, ("rationale", "question"), STRICT)

    assert ("rationale",) == error.value.missing


@pytest.mark.parametrize(
    ("relation", "missing", "policy"),
    [
        pytest.param(Relation.LEAD_TO_WORKER, ("question",), STRICT, id="what is missing is not required"),
        pytest.param(Relation.PEER_TO_PEER, ("rationale",), STRICT, id="it is required of another kind of handoff"),
        pytest.param(Relation.LEAD_TO_WORKER, ("rationale",), LAX, id="nothing is required"),
        pytest.param(Relation.LEAD_TO_WORKER, (), STRICT, id="nothing is missing"),
    ],
)
def test_everything_else_is_only_reported(relation: Relation, missing: tuple[str, ...], policy: HandoffPolicy) -> None:
    """Without a policy that requires it, a missing part refuses nothing."""
    require_complete(relation, missing, policy)

    assert not set(missing) & set(required_parts(relation, policy))
