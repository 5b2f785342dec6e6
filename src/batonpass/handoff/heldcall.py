"""A root's call that waits, as synchronous programs see it."""

from batonpass.handoff.desk import Desk
from batonpass.handoff.transfer.decision import decide_call
from batonpass.handoff.transfer.decision_sheet import Material, material_of_call
from batonpass.model.ids import CallId
from batonpass.signing.approver import Approver


class LiveCall:
    """A root's call that waits for somebody to let it be made, whichever process has the root."""

    def __init__(self, desk: Desk, call: CallId) -> None:
        self._desk = desk
        self.id = call

    def material(self) -> Material:
        """Return what somebody has to be shown before they decide."""
        with self._desk.store.view() as view:
            return material_of_call(view, self.id)

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
