"""The effective grant: the present rights of a run, after every hop above it. Agents are told this."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.ids import AgentId, PrincipalId
from batonpass.model.base.kinds import Mode


class GrantStanding(StrEnum):
    """Whether a grant is in force at a moment."""

    IN_FORCE = "in force"
    ENDED = "ended"
    REVOKED = "revoked"


class LimitLeft(Struct, frozen=True, kw_only=True):
    """How much of a limit is left. Amounts are whole numbers; for `spend` they are decimal texts."""

    unit: str
    most: int | str
    used: int | str
    left: int | str
    shared_with: AgentId | None = None  # all work under this agent's grant shares it; None: limit of a permit
    budget: bool = False  # it comes from a brief; else from a grant


class PermitLeft(Struct, frozen=True, kw_only=True):
    """One permit, and how much is left of its own limits."""

    text: str
    left: tuple[LimitLeft, ...] = ()


class GrantStep(Struct, frozen=True, kw_only=True):
    """One hop of a chain: giver, receiver and terms. The first one is granted in the principal's name."""

    by: str
    to: AgentId
    at: datetime
    may: tuple[str, ...]
    may_delegate: tuple[str, ...]
    limits: str = ""
    until: datetime | None = None
    standing: GrantStanding = GrantStanding.IN_FORCE


class EffectiveGrant(Struct, frozen=True, kw_only=True):
    """The rights of a run at a moment. Without a grant, `may` and `may_delegate` are None."""

    agent: AgentId
    principal: PrincipalId
    mode: Mode
    at: datetime  # when it was computed; limits are shared, so others change it too
    standing: GrantStanding = GrantStanding.IN_FORCE
    may: tuple[PermitLeft, ...] | None = None  # allowed by every hop above; empty once the grant has ended
    may_delegate: tuple[str, ...] | None = None
    limits: tuple[LimitLeft, ...] = ()  # for each unit, the one with the least left
    until: datetime | None = None
    depth_left: int | None = None  # how many more hops are possible below it; None: no limit
    chain: tuple[GrantStep, ...] = ()  # from the principal down
    policy_stops: bool = False  # rules and tiers are enforced, even if the run is observed

    def __repr__(self) -> str:
        if self.may is None:
            return f"<EffectiveGrant of {self.agent}: none, {self.mode}>"
        may = ", ".join(permit.text for permit in self.may) or "nothing"
        passed = f", may delegate {', '.join(self.may_delegate)}" if self.may_delegate else ""
        left = "".join(f", {limit.left} {limit.unit} left" for limit in self.limits)
        return f"<EffectiveGrant of {self.agent}: may {may}{passed}{left}, {self.mode}, {self.standing}>"

    @property
    def is_observed(self) -> bool:
        """Return whether nothing is stopped: calls beyond the grant are recorded and flagged."""
        return self.mode is Mode.OBSERVED

    @property
    def is_bound(self) -> bool:
        """Return whether there is a grant or a limit at all."""
        return self.may is not None or bool(self.limits)
