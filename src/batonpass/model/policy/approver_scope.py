"""The right of one person to approve: for which agents, and for which calls."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, require_texts
from batonpass.model.grants.limits import UNLIMITED
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope


class ApproverScope(Struct, frozen=True, kw_only=True):
    """The scope in which one person may approve. A field that is None sets no bound."""

    agents: tuple[str, ...] | None = None  # patterns of the agents whose work they may approve
    may: Scope | None = None  # the calls that they may approve

    def __post_init__(self) -> None:
        if self.agents is not None:
            force_setattr(self, "agents", require_texts("agents", self.agents))
        if self.may is None:
            return
        for permit in require_instance("may", self.may, Scope).permits:
            # Nobody counts a person's approvals: a limit here would look like protection, and protect nothing.
            if permit.limits != UNLIMITED:
                raise InvalidValueError("may", f"{permit} has limits; an approval is for one call, so leave them out")

    def in_force(self, at: datetime) -> Scope | None:
        """Return the calls that they may approve at a moment; None sets no bound."""
        if self.may is None:
            return None
        # The end of a permit is dropped: it ends the right to approve, and not the life of what is approved.
        permits = (permit for permit in self.may.permits if permit.until is None or at < permit.until)
        return Scope(tuple(Permit(permit.pattern, permit.where) for permit in permits))
