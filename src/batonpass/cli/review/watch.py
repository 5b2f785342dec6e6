"""`batonpass review --watch`: each finding as it comes, until an interrupt."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from batonpass.audit.feed import Feed
from batonpass.cli.output.terminal import say, say_json
from batonpass.cli.review.review_lines import say_finding
from batonpass.cli.trail.live_events import repeat
from batonpass.clock import Clock, SystemClock
from batonpass.model.base.ids import ReceiptId, RunId, time_of
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.run import RunState
from batonpass.records.text import read_receipt
from batonpass.review.finding import Finding, Severity, finding_shape
from batonpass.review.review import find_reviewed, review_root, root_of
from batonpass.store.port import LedgerStore, LedgerView

_GOES_ON: Final = frozenset({RunState.OPEN, RunState.SUSPENDED})
_LATEST: Final = 100  # open runs whose trees are read at the start: a second of work in a large ledger
_SILENCE: Final = timedelta(hours=1)


class FindingWatch:
    """Prints each finding once. Of earlier trees, only findings that are new since the command was given."""

    def __init__(self, severity: Severity, since: datetime, *, as_json: bool, clock: Clock | None = None) -> None:
        self._severity, self._since, self._as_json = severity, since, as_json
        self._clock = clock or SystemClock()
        self._silent_since = since
        self._told: dict[RunId, set[str]] = {}
        self._pending: dict[RunId, set[ReceiptId]] = {}

    def begin(self, view: LedgerView) -> None:
        """Note the earlier findings of open trees, and print those that came while the command started."""
        # A tree that goes on may turn out badly by a receipt that proves nothing: the end of a call that was requested
        # before. So it takes a look before to know what is new; the evidence alone does not tell.
        going_on = (run.root for run in view.find_runs(states=_GOES_ON, limit=_LATEST))
        for root in dict.fromkeys((*going_on, *find_reviewed(view, self._since))):
            self._told[root] = set()
            for finding in self._find_new(view, root, set()):
                if any(time_of(receipt) >= self._since for receipt in finding.receipts):
                    self._tell(finding)

    def look(self, view: LedgerView, found: Iterator[StoredReceipt]) -> None:
        """Review the trees that new receipts belong to."""
        for stored in found:
            receipt = read_receipt(stored)
            if (root := root_of(view, receipt)) is not None:
                self._pending.setdefault(root, set()).add(receipt.id)
        self._await_silent(view)
        # The receipts do not come again. If the store fails here, their trees are looked at the next time.
        for root in [*self._pending]:
            for finding in self._find_new(view, root, self._pending[root]):
                self._tell(finding)
            del self._pending[root]

    def _await_silent(self, view: LedgerView) -> None:
        """Let open trees be reviewed once an hour: a run that says nothing any more is found by no receipt."""
        now = self._clock.now()
        if now - self._silent_since >= _SILENCE:
            self._silent_since = now
            for root in view.find_runs(roots=True, states=_GOES_ON, limit=_LATEST):
                self._pending.setdefault(root.id, set())

    def _find_new(self, view: LedgerView, root: RunId, receipts: set[ReceiptId]) -> Iterator[Finding]:
        known = self._told.get(root)
        findings = review_root(view, root, self._clock.now()).findings
        self._told[root] = {finding.key for finding in findings} | (known or set())
        for finding in findings:
            # A tree that had ended before somebody began to watch: what was there has older evidence only.
            is_new = finding.key not in known if known is not None else not receipts.isdisjoint(finding.receipts)
            if is_new and finding.severity.reaches(self._severity):
                yield finding

    def _tell(self, finding: Finding) -> None:
        if self._as_json:
            say_json(finding_shape(finding), line=True)
        else:
            say_finding(finding)
            say()


def watch(store: LedgerStore, severity: Severity, since: datetime, *, as_json: bool) -> None:
    """Print findings from a moment on: the one at which the command was given."""
    watching = FindingWatch(severity, since, as_json=as_json)
    repeat(store, Feed(store), watching.look, watching.begin)
