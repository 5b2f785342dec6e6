"""A held call whose ledger is elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from batonpass.client.absent_ledger import AbsentDesk
from batonpass.client.exchange import PlaneExchange
from batonpass.client.remote_handoff import decide, read_sheet
from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.handoff.live.held_call import LiveCall
from batonpass.model.base.ids import CallId
from batonpass.signing.approver_key import Approver

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk


class RemoteCallHeld(LiveCall):
    """A held call, to be approved or denied through a control plane."""

    def __init__(self, exchange: PlaneExchange, call: str) -> None:
        super().__init__(cast("Desk", AbsentDesk(Path.cwd())), CallId(call))
        self._exchange = exchange

    def material(self) -> Material:
        """Return the decision sheet that an approver has to read first."""
        return read_sheet(self._exchange, self.id)

    def _decide(
        self, *, approved: bool, by: str | Approver, reason: str | None, shown: Material | None, looked_ms: int | None
    ) -> None:
        decide(self._exchange, self.id, approved=approved, by=by, reason=reason, shown=shown, looked_ms=looked_ms)
