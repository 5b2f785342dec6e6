"""A held call as an approver uses it: read the decision sheet, then approve or deny."""

from batonpass.handoff.approvals.decision import decide_call
from batonpass.handoff.approvals.decision_sheet import Material, show_call
from batonpass.handoff.runtime.desk import Desk
from batonpass.model.base.ids import CallId
from batonpass.signing.approver_key import Approver


class LiveCall:
    """A held call of a run that goes on meanwhile: a root run, or an attempt that stays open, in whichever process."""

    def __init__(self, desk: Desk, call: CallId) -> None:
        self._desk = desk
        self.id = call

    def __repr__(self) -> str:
        return f"<Call {self.id}, held>"

    def material(self) -> Material:
        """Return the decision sheet that an approver has to read first. Raises `NotFoundError`."""
        return show_call(self._desk, self.id)

    def approve(
        self,
        *,
        by: str | Approver,
        reason: str | None = None,
        shown: Material | None = None,
        looked_ms: int | None = None,
    ) -> None:
        """Approve the call. An `Approver` signs the ruling; from anybody else it is recorded as unproven.

        Raises `NotApproverError`, `OutOfScopeError`, `FourEyesError`, `UnprovenError`, and `CallDecidedError` if
        somebody ruled before.
        """
        self._decide(approved=True, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def deny(
        self,
        *,
        by: str | Approver,
        reason: str,
        shown: Material | None = None,
        looked_ms: int | None = None,
    ) -> None:
        """Deny the call for good. Raises `CallDecidedError` if somebody ruled before."""
        self._decide(approved=False, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def _decide(
        self, *, approved: bool, by: str | Approver, reason: str | None, shown: Material | None, looked_ms: int | None
    ) -> None:
        decide_call(self._desk, self.id, approved=approved, by=by, reason=reason, shown=shown, looked_ms=looked_ms)
