"""Earlier rulings of people, read once for all trees of a review."""

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from batonpass.model.base.ids import PrincipalId, ReceiptId, RunId
from batonpass.model.bodies.body import HandoffApproved, HandoffBacked, HandoffDenied
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.remark import RemarkKind
from batonpass.model.ledger.ruling import Decided
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView


class EarlierRuling(Struct, frozen=True):
    """One ruling of somebody, and its tree."""

    receipt: Receipt
    body: Decided
    root: RunId


class EarlierRulings:
    """Finds the rulings of a person. Trees of one day have much of their past in common."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self._receipts: dict[PrincipalId, tuple[ReceiptId, ...]] = {}
        self._known: dict[ReceiptId, EarlierRuling | None] = {}

    def find(self, person: PrincipalId, *, until: ReceiptId, most: int) -> Iterator[EarlierRuling]:
        """Yield the latest rulings of a person up to one of them, the latest first."""
        if person not in self._receipts:
            remarks = self._view.find_remarks(RemarkKind.RULED, person)
            self._receipts[person] = tuple(remark.receipt for remark in remarks)
        for receipt in islice((one for one in self._receipts[person] if one <= until), most):
            if receipt not in self._known:
                self._known[receipt] = self._read(receipt)
            if (ruling := self._known[receipt]) is not None:
                yield ruling

    def _read(self, receipt: ReceiptId) -> EarlierRuling | None:
        found = read_receipt(self._view.get_receipt(receipt))
        return EarlierRuling(found, found.body, self._root(found.body)) if isinstance(found.body, Decided) else None

    def _root(self, body: Decided) -> RunId:
        """Return the tree that a ruling is about. One about a call is in the stream of a relay, which has no root."""
        if isinstance(body, HandoffBacked | HandoffApproved | HandoffDenied):
            return self._view.get_handoff(body.handoff).root
        return self._view.get_run(body.run).root
