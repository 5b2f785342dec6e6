"""A review: the checklist and the findings of one tree or of many, the worst first."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from batonpass.audit.session_roots import find_roots
from batonpass.model.base.content_names import INTENT
from batonpass.model.base.ids import HandoffId, PrincipalId, RunId, SessionId, StreamId
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.records.source import run_between
from batonpass.records.text import read_receipt
from batonpass.review.acknowledged import Acknowledgement, find_acknowledged
from batonpass.review.catalogue import find_all
from batonpass.review.checklist import ChecklistRow, find_rows
from batonpass.review.finding import Finding, Severity
from batonpass.review.reviewed_tree import EarlierTrees, ReviewedTree
from batonpass.store.port import LedgerView, ReceiptQuery


class ReviewedRoot(Struct, frozen=True, kw_only=True):
    """The review of one tree, or of the part below a run or a handoff."""

    root: Run
    intent: str  # the human's own words; empty once they were erased
    receipts: int
    rows: tuple[ChecklistRow, ...]
    findings: tuple[Finding, ...]
    acknowledged: tuple[tuple[Finding, Acknowledgement], ...] = ()  # which somebody has seen and left as they are
    mark: str | None = None  # set if a part of it was imported, and so is unsigned


class Review(Struct, frozen=True, kw_only=True):
    """The checklists and findings of one tree or of several."""

    at: datetime
    roots: tuple[ReviewedRoot, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all findings, the worst first, then the oldest."""
        found = (finding for root in self.roots for finding in root.findings)
        return tuple(sorted(found, key=lambda finding: (finding.severity.rank, finding.at, finding.key)))

    @property
    def shown(self) -> tuple[ReviewedRoot, ...]:
        """Return the trees that people are shown: those with findings, the worst first, then the oldest; or the one."""
        if len(self.roots) == 1:
            return self.roots
        found = (root for root in self.roots if root.findings)
        return tuple(sorted(found, key=lambda root: min(one.severity.rank for one in root.findings)))

    @property
    def counts(self) -> Mapping[Severity, int]:
        """Return the number of findings by severity."""
        counted = Counter(finding.severity for finding in self.findings)
        return {severity: counted[severity] for severity in Severity}

    def at_least(self, severity: Severity) -> "Review":
        """Return the review with only the findings that are at least this bad."""
        kept = (
            replace(root, findings=tuple(one for one in root.findings if one.severity.reaches(severity)))
            for root in self.roots
        )
        return replace(self, roots=tuple(kept))


def review_root(view: LedgerView, root: RunId, now: datetime, earlier: EarlierTrees | None = None) -> ReviewedRoot:
    """Review one tree. `earlier` has the past that other trees have read already. Raises `NotFoundError`."""
    return review_tree(ReviewedTree(view, view.get_run(root).root, earlier), now)


def review_tree(tree: ReviewedTree, now: datetime) -> ReviewedRoot:
    """Review a tree that was read already."""
    stream = tree.streams[tree.root]
    found = find_all(tree, now)
    seen = find_acknowledged(tree.view, tree.root)
    return ReviewedRoot(
        root=run_between(tree.runs[tree.root], stream[0], stream[-1]),
        intent=tree.words(stream[0], INTENT),
        receipts=len(tree.receipts),
        rows=tuple(find_rows(tree)),
        findings=tuple(one for one in found if one.key not in seen),
        acknowledged=tuple((one, seen[one.key]) for one in found if one.key in seen),
        mark=tree.mark,
    )


def review_roots(view: LedgerView, roots: Iterable[RunId], now: datetime) -> Review:
    """Review several trees."""
    earlier = EarlierTrees(view)
    return Review(at=now, roots=_with_habits_once([review_root(view, root, now, earlier) for root in roots]))


def _with_habits_once(roots: list[ReviewedRoot]) -> tuple[ReviewedRoot, ...]:
    """Leave the habit of a person only in the latest tree that shows it: there it has all of its evidence."""
    told: set[tuple[str, PrincipalId]] = set()
    kept: dict[RunId, ReviewedRoot] = {}
    for root in sorted(roots, key=lambda one: one.root.id, reverse=True):
        habits = {(one.kind.code, one.person) for one in root.findings if one.person is not None}
        left = tuple(one for one in root.findings if one.person is None or (one.kind.code, one.person) not in told)
        kept[root.root.id] = replace(root, findings=left)
        told |= habits
    return tuple(kept[root.root.id] for root in roots)


def review_below(view: LedgerView, top: RunId | HandoffId, now: datetime) -> Review:
    """Review the part of a tree below a run or a handoff; for a root, the whole tree. Raises `NotFoundError`."""
    asked = view.get_run(RunId(top)) if top.startswith("run_") else view.get_handoff(HandoffId(top))
    root = asked.root
    tree = ReviewedTree(view, root)
    whole = review_tree(tree, now)
    if top == root:
        return Review(at=now, roots=(whole,))
    below = {*_below(tree, asked.id)}
    # What a run did itself is told in the row of its handoff.
    answered = {*below, *([asked.handoff] if isinstance(asked, Run) else [])}
    part = replace(
        whole,
        rows=tuple(row for row in whole.rows if row.handoff in answered),
        findings=tuple(one for one in whole.findings if one.subject in below),
        acknowledged=tuple(pair for pair in whole.acknowledged if pair[0].subject in below),
    )
    return Review(at=now, roots=(part,))


def _below(tree: ReviewedTree, top: RunId | HandoffId) -> Iterator[str]:
    """Yield the ids of a run or a handoff, of everything below it, and of all calls there."""
    pending: list[str] = [top]
    while pending:
        at = pending.pop()
        yield at
        if at in tree.runs:
            yield from (call.id for call in tree.calls_of.get(RunId(at), ()))
            pending += [child.id for child in tree.children.get(RunId(at), ())]
        else:
            pending += [run.id for run in tree.attempts.get(HandoffId(at), ())]


def find_reviewed(view: LedgerView, since: datetime) -> Iterator[RunId]:
    """Yield the roots of the trees in which something was recorded since a moment, the oldest first.

    Not only of those that began then: a session of many days may go wrong on its last.
    """
    streams: set[StreamId] = set()
    found: set[RunId] = set()
    for stored in view.find_receipts(ReceiptQuery(since=since)):
        if stored.stream not in streams:
            root = view.get_stream(stored.stream).root
            if root is None:  # of a relay: each receipt may be about another tree
                root = root_of(view, read_receipt(stored))
            else:
                streams.add(stored.stream)
            found |= set() if root is None else {root}
    yield from sorted(found)


def root_of(view: LedgerView, receipt: Receipt) -> RunId | None:
    """Return the tree that a receipt is about. A ruling on a call is in the stream of a relay, and names its run."""
    if receipt.root is not None:
        return receipt.root
    run: RunId | None = getattr(receipt.body, "run", None)
    return None if run is None else view.get_run(run).root


def review_session(view: LedgerView, session: SessionId, now: datetime) -> Review:
    """Review all trees of a session, the oldest first."""
    return review_roots(view, (root.id for root in find_roots(view, session)), now)
