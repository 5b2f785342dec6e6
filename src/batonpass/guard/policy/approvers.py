"""Approvers: whether somebody may approve a held call or handoff, and who else may. Decided from values alone."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from batonpass.errors import InvalidValueError
from batonpass.guard.policy.name_patterns import fits
from batonpass.model.base.ids import AgentId, PrincipalId
from batonpass.model.base.value import Value
from batonpass.model.grants.call import Call
from batonpass.model.grants.scope import Scope
from batonpass.model.policy.approver_scope import ApproverScope


class Approvable(Value, frozen=True, kw_only=True):
    """The subject of an approval: the agent that does the work, and its call or everything that its handoff grants."""

    worker: AgentId
    call: Call | None = None
    granted: Scope | None = None  # of a handoff; if there is no call either, nobody knows how much it covers

    def __str__(self) -> str:
        if self.call is not None:
            return f"{self.call} of {self.worker}"
        if self.granted is not None:
            return f"{self.granted} for {self.worker}"
        return f"the work of {self.worker}, whose extent is not on record"


def may_approve(scope: ApproverScope, what: Approvable, at: datetime) -> bool:
    """Return whether an approver's scope covers the held call or handoff."""
    if scope.agents is not None and not any(fits(pattern, what.worker, across=True) for pattern in scope.agents):
        return False
    held = scope.in_force(at)
    if held is None:
        return True
    if what.call is not None:
        try:
            return held.allows(what.call, at)
        except InvalidValueError:
            return False  # a resource that could be mistaken for another is in nobody's scope
    # A grant without bounds exceeds every scope.
    return what.granted is not None and held.covers(what.granted)


def find_approvers(
    approvers: Mapping[PrincipalId, ApproverScope], what: Approvable, at: datetime
) -> Iterator[PrincipalId]:
    """Yield who may approve it, in the order of the policy."""
    return (principal for principal, scope in approvers.items() if may_approve(scope, what, at))
