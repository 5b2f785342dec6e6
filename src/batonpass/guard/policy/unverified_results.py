"""Unverified results: whether somebody may go on with results that nobody has verified or accepted."""

from batonpass.errors import UnverifiedError
from batonpass.model.base.ids import HandoffId
from batonpass.model.policy.handoff_policy import HandoffPolicy


def require_verified(unverified: tuple[HandoffId, ...], policy: HandoffPolicy) -> None:
    """Refuse unverified results where the policy requires verified ones. Raises `UnverifiedError`."""
    if policy.verified_only and unverified:
        raise UnverifiedError(unverified)
