"""Whoever builds on results that nobody verified is refused where the policy says so."""

import pytest

from batonpass.errors import UnverifiedError
from batonpass.guard.policy.unverified_results import require_verified
from batonpass.model.base.ids import HandoffId
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import LAX

UNVERIFIED = (HandoffId("handoff_01jd2m0000000000000000ha1f"),)


def test_unverified_results_are_refused() -> None:
    """The error names the handoffs that wait for somebody."""
    with pytest.raises(UnverifiedError) as error:
        require_verified(UNVERIFIED, HandoffPolicy(verified_only=True))

    assert UNVERIFIED == error.value.handoffs


def test_other_policies_and_verified_results_pass() -> None:
    """Nothing is refused without that rule, or when nothing is unverified."""
    require_verified(UNVERIFIED, LAX)
    require_verified((), HandoffPolicy(verified_only=True))
