"""What a run may do now: what is left of its grant after every hop above it, as whoever works on it is told."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.ids import AgentId, PrincipalId
from batonpass.model.base.kinds import Mode


class GrantStanding(StrEnum):
    """Whether a grant holds at this moment."""

    IN_FORCE = "in force"
    ENDED = "ended"
    REVOKED = "revoked"


class LimitLeft(Struct, frozen=True, kw_only=True):
    """How much of a limit is left. Amounts are whole numbers; those of `spend` are decimal texts."""

    unit: str
    most: int | str
    used: int | str
    left: int | str
    shared_with: AgentId | None = None  # everybody who works under this agent's grant uses it too; None: of a permit
    budget: bool = False  # a brief says it; else a grant does


class PermitLeft(Struct, frozen=True, kw_only=True):
    """One permit, and what is left of the limits that it has of its own."""

    text: str
    left: tuple[LimitLeft, ...] = ()


class GrantStep(Struct, frozen=True, kw_only=True):
    """Who granted what to whom; the first of a chain stands in the principal's name."""

    by: str
    to: AgentId
    at: datetime
    may: tuple[str, ...]
    may_delegate: tuple[str, ...]
    limits: str = ""
    until: datetime | None = None
    standing: GrantStanding = GrantStanding.IN_FORCE


class EffectiveGrant(Struct, frozen=True, kw_only=True):
    """What a run may do at a moment. Without a grant, `may` and `may_delegate` are None: nothing is enumerated."""

    agent: AgentId
    principal: PrincipalId
    mode: Mode
    at: datetime  # when it was counted: limits are shared, so this changes without the run
    standing: GrantStanding = GrantStanding.IN_FORCE
    may: tuple[PermitLeft, ...] | None = None  # what every hop above lets it use; nothing once the grant has ended
    may_delegate: tuple[str, ...] | None = None
    limits: tuple[LimitLeft, ...] = ()  # of each unit that which has least left
    until: datetime | None = None
    depth_left: int | None = None  # so many hops may still hang from it; None: nobody said
    chain: tuple[GrantStep, ...] = ()  # from the principal down
    policy_stops: bool = False  # what rules and tiers refuse is refused, also where a run is only observed

    @property
    def is_observed(self) -> bool:
        """Return whether nothing is blocked: what goes beyond the grant is recorded, and flagged."""
        return self.mode is Mode.OBSERVED

    @property
    def is_bound(self) -> bool:
        """Return whether there is anything to be held to, or to be counted."""
        return self.may is not None or bool(self.limits)
