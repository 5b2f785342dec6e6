"""A call that waits for somebody, as whoever decides about it sees it."""

from batonpass.handoff.approvals.decision import decide_call
from batonpass.handoff.approvals.decision_sheet import Material, show_call
from batonpass.handoff.runtime.desk import Desk
from batonpass.model.base.ids import CallId
from batonpass.signing.approver_key import Approver


class LiveCall:
    """A call of a root, or of an attempt that stays open, that waits for somebody; whichever process has its run."""

    def __init__(self, desk: Desk, call: CallId) -> None:
        self._desk = desk
        self.id = call

    def material(self) -> Material:
        """Return what somebody has to be shown before they decide."""
        return show_call(self._desk, self.id)

    def approve(
        self,
        *,
        by: str | Approver,
        reason: str | None = None,
        shown: Material | None = None,
        looked_ms: int | None = None,
    ) -> None:
        """Let it be made. An `Approver` signs that; of anybody else it is taken as said, and unproven."""
        decide_call(self._desk, self.id, approved=True, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def deny(
        self,
        *,
        by: str | Approver,
        reason: str,
        shown: Material | None = None,
        looked_ms: int | None = None,
    ) -> None:
        """Do not let it be made, for good."""
        decide_call(self._desk, self.id, approved=False, by=by, reason=reason, shown=shown, looked_ms=looked_ms)
