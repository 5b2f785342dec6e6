"""A policy that travels with an offer is read back as it was given, whatever fields a policy has."""

from datetime import timedelta

from batonpass.model.base.kinds import Relation
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.wire.documents import decode_policy, encode_policy

FULL = HandoffPolicy(
    require={Relation.WORKER_TO_LEAD: ("completed",)},
    verified_only=True,
    asks=True,
    questions=3,
    hops_between_questions=2,
    oldest=timedelta(hours=5),
    max_depth=4,
    max_attempts=2,
    allowed_agents=("editor",),
    known_agents=True,
    refuse_loops=True,
    sanitize_context=False,
    trust_degradation=False,
)


def test_a_policy_is_read_back_as_it_was_given() -> None:
    """Every field: a new one that is forgotten here fails, because the example differs from the default everywhere."""
    plain = HandoffPolicy()

    assert [] == [name for name in plain.__struct_fields__ if getattr(plain, name) == getattr(FULL, name)]
    assert (plain, FULL) == (decode_policy(encode_policy(plain)), decode_policy(encode_policy(FULL)))


def test_two_policies_together_are_as_strict_as_either() -> None:
    """No field is lost when the policy of an offer is joined with that of the relay."""
    plain = HandoffPolicy(sanitize_context=False, trust_degradation=False, questions=9, hops_between_questions=0)

    assert FULL == plain.joined(FULL) == FULL.joined(plain)
