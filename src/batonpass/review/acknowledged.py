"""Findings that somebody has acknowledged, and answers for leaving as they are."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import PrincipalId, ReceiptId, RunId
from batonpass.model.bodies.body import FindingAcknowledged
from batonpass.model.ledger.remark import RemarkKind
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView


class Acknowledgement(Struct, frozen=True, kw_only=True):
    """Who acknowledged a finding, when, and why."""

    by: PrincipalId
    at: datetime
    reason: str  # empty once it was erased
    receipt: ReceiptId

    @property
    def sentence(self) -> str:
        """Return who acknowledged it, on which day, and why."""
        return f"acknowledged by {self.by} on {self.at:%Y-%m-%d}: {self.reason or 'erased'}"


def find_acknowledged(view: LedgerView, root: RunId) -> Mapping[str, Acknowledgement]:
    """Return the acknowledged findings of a tree by their keys; the first acknowledgement counts."""
    found: dict[str, Acknowledgement] = {}
    for remark in view.find_remarks(RemarkKind.ACKNOWLEDGED, root):  # the latest first
        receipt = read_receipt(view.get_receipt(remark.receipt))
        if isinstance(receipt.body, FindingAcknowledged) and receipt.body.root == root:
            reason = read_texts(view, receipt).get(REASON)
            words = None if reason is None else reason.words
            found[receipt.body.finding] = Acknowledgement(
                by=receipt.body.by, at=receipt.at, reason=words or "", receipt=receipt.id
            )
    return found
