"""What one person may approve: whose work, and which calls."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, require_texts
from batonpass.model.grants.limits import UNLIMITED
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope


class ApproverScope(Struct, frozen=True, kw_only=True):
    """What somebody may approve; what is not given bounds nothing."""

    agents: tuple[str, ...] | None = None  # patterns: whose work
    may: Scope | None = None  # what that work does, to what, with which arguments

    def __post_init__(self) -> None:
        if self.agents is not None:
            force_setattr(self, "agents", require_texts("agents", self.agents))
        if self.may is None:
            return
        for permit in require_instance("may", self.may, Scope).permits:
            # Nobody counts what a person approves: such a limit would look like protection, and be none.
            if permit.limits != UNLIMITED:
                raise InvalidValueError("may", f"{permit} has limits; an approval is for one call, so leave them out")

    def in_force(self, at: datetime) -> Scope | None:
        """Return what they may approve at a moment; None bounds nothing."""
        if self.may is None:
            return None
        # When somebody's right to approve ends says nothing about how long what they approve may last.
        permits = (permit for permit in self.may.permits if permit.until is None or at < permit.until)
        return Scope(tuple(Permit(permit.pattern, permit.where) for permit in permits))
