"""`batonpass review --watch`: each finding as it comes, until an interrupt."""

from collections.abc import Iterator
from datetime import UTC, datetime

from batonpass.audit.feed import Feed
from batonpass.cli.output.terminal import say, say_json
from batonpass.cli.review.review_lines import say_finding
from batonpass.cli.trail.live_events import repeat
from batonpass.model.base.ids import ReceiptId, RunId
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.records.text import read_receipt
from batonpass.review.finding import Finding, Severity, finding_shape
from batonpass.review.review import review_root
from batonpass.store.port import LedgerStore, LedgerView


class FindingWatch:
    """Prints each finding once. Of trees that were there before, only what is new."""

    def __init__(self, severity: Severity, *, as_json: bool) -> None:
        self._severity, self._as_json = severity, as_json
        self._told: dict[RunId, set[str]] = {}

    def look(self, view: LedgerView, found: Iterator[StoredReceipt]) -> None:
        """Review the trees that new receipts belong to."""
        new: dict[RunId, set[ReceiptId]] = {}
        for stored in found:
            receipt = read_receipt(stored)
            if receipt.root is not None:
                new.setdefault(receipt.root, set()).add(receipt.id)
        for root, receipts in new.items():
            for finding in self._find_new(view, root, receipts):
                self._tell(finding)

    def _find_new(self, view: LedgerView, root: RunId, receipts: set[ReceiptId]) -> Iterator[Finding]:
        known = self._told.get(root)
        findings = review_root(view, root, datetime.now(UTC)).findings
        self._told[root] = {finding.key for finding in findings} | (known or set())
        for finding in findings:
            # What was there before somebody began to watch has older evidence only.
            is_new = finding.key not in known if known is not None else not receipts.isdisjoint(finding.receipts)
            if is_new and finding.severity.reaches(self._severity):
                yield finding

    def _tell(self, finding: Finding) -> None:
        if self._as_json:
            say_json(finding_shape(finding), line=True)
        else:
            say_finding(finding)
            say()


def watch(store: LedgerStore, severity: Severity, *, as_json: bool) -> None:
    """Print findings from now on."""
    repeat(store, Feed(store), FindingWatch(severity, as_json=as_json).look, lambda _: None)
