"""The checks of a constraint along the way: where, on which value, and the result.

Receipts say whether a constraint stopped a call or a result, or would have. Which one, and why, is worked out again
from their contents. If those are gone, nothing more is claimed.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from batonpass.errors import ConstraintViolatedError, InvalidValueError
from batonpass.guard.constraints.constraints import (
    RETURNED,
    Check,
    find_checks_of_call,
    find_checks_of_result,
    find_checks_of_return,
)
from batonpass.handoff.calls.constraints import BROKEN
from batonpass.handoff.history.offers import read_items, read_offer
from batonpass.model.base.content_names import ARGUMENTS, REPORT, RESULT
from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.baton.items import Constraint, Item, Report
from batonpass.model.bodies.body import (
    Carried,
    HandoffCompleted,
    HandoffFailed,
    Part,
    RunClosed,
    RunRecorded,
    RunRelaxed,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.records.call import Asked, CallOutcome, Ended, arguments_in, call_of, read_call
from batonpass.records.lineage import find_ancestors
from batonpass.records.text import read_receipt, read_stream, read_texts
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_report


class BoundConstraints:
    """The constraints of one run, from its receipts."""

    def __init__(self, view: LedgerView, run: Run, receipts: Iterable[Receipt]) -> None:
        self._bound: list[tuple[int, Item]] = []  # each with the receipt after which it binds
        self._released: dict[str, int] = {}  # by item: the receipt after which it no longer binds
        if run.handoff is not None:
            given = read_offer(view, view.get_handoff(run.handoff)).baton.of(Part.CONSTRAINT)
            self._bound += ((0, item) for item in given)
        for receipt in receipts:
            if isinstance(receipt.body, RunRecorded):
                recorded = [ref for ref in receipt.body.items if ref.part is Part.CONSTRAINT]
                self._bound += ((receipt.seq, item) for item in read_carried(view, recorded))
            elif isinstance(receipt.body, RunRelaxed):
                self._released.setdefault(receipt.body.item, receipt.seq)

    def at(self, receipt: Receipt) -> Iterator[Item]:
        """Yield the constraints that bound the run when it wrote a receipt."""
        for since, item in self._bound:
            if since < receipt.seq <= self._released.get(item.id, receipt.seq):
                yield item


def read_carried(view: LedgerView, refs: Sequence[Carried]) -> Iterable[Item]:
    """Return the items that a receipt names, as far as they still exist."""
    contents = {content.id: content for content in view.find_contents([ref.item for ref in refs])}
    return read_items(view, refs, contents)[0]


RULE: Final = "constraint"

_FLAG: Final = f"would_deny.{RULE}"
_CLOSES: Final = (HandoffCompleted, HandoffFailed, RunClosed)


class Checked(Struct, frozen=True, kw_only=True):
    """One check of a constraint in a run."""

    run: Run
    receipt: Receipt
    item: Item | None = None  # None if a constraint was broken, but we can no longer tell which
    check: Check | None = None

    @property
    def holds(self) -> bool:
        """Return whether the constraint was kept."""
        return self.check is not None and self.check.holds

    @property
    def where(self) -> str:
        """Return the object of the check: a tool call, its return value, or the result of the run."""
        if isinstance(self.receipt.body, Ended):
            return "what a call returned"
        return getattr(self.receipt.body, "tool", None) or "its result"

    @property
    def found(self) -> str:
        """Return the value that was found."""
        return "the words are no longer here" if self.check is None else self.check.found


def find_broken_by_close(view: LedgerView, run: Run) -> tuple[Checked, ...]:
    """Return the constraints that a run's final result broke."""
    stream = read_stream(view, StreamId(run.id))
    if not isinstance(stream[-1].body, _CLOSES) or not _is_broken(stream[-1]):
        return ()
    binding = BoundConstraints(view, run, stream)
    return tuple(checked for checked in _checks(view, run, stream[-1], binding) if not checked.holds)


def find_broken(view: LedgerView, run: Run, stream: Sequence[Receipt]) -> Iterator[Checked]:
    """Yield the constraints that the calls and the result of a run broke, in the order of writing."""
    broken = [receipt for receipt in stream if _is_broken(receipt)]
    if broken:
        binding = BoundConstraints(view, run, stream)
        for receipt in broken:
            yield from (checked for checked in _checks(view, run, receipt, binding) if not checked.holds)


def find_way(view: LedgerView, run: Run, demand: Constraint) -> Iterator[Checked]:
    """Yield each check of the same demand in a run, those above it and those below it, in the order of writing.

    The same demand may bind several places, each by its own constraint: arguments, and the result.
    """
    runs = {known.id: known for known in _family(view, run)}
    streams: dict[RunId, list[Receipt]] = defaultdict(list)
    written: list[tuple[RunId, Receipt]] = []
    for stored in view.find_receipts(ReceiptQuery(root=run.root)):
        of = RunId(stored.stream)
        if of in runs:
            receipt = read_receipt(stored)
            streams[of].append(receipt)
            written.append((of, receipt))
    bindings = {of: BoundConstraints(view, runs[of], receipts) for of, receipts in streams.items()}
    for of, receipt in written:
        for checked in _checks(view, runs[of], receipt, bindings[of]):
            if checked.check is None or _demand(checked.check.constraint) == _demand(demand):
                yield checked


def _demand(constraint: Constraint) -> tuple[str | None, ...]:
    return (constraint.key, constraint.operator, constraint.value, constraint.unit)


def _family(view: LedgerView, run: Run) -> Iterator[Run]:
    """Yield a run with all runs above and below it, but not beside it."""
    yield run
    yield from find_ancestors(view, run)
    children: dict[RunId | None, list[Run]] = defaultdict(list)
    for known in view.find_runs(root=run.root):
        children[known.parent].append(known)
    below = children.pop(run.id, [])
    while below:
        known = below.pop()
        yield known
        below += children.pop(known.id, [])


def _checks(view: LedgerView, run: Run, receipt: Receipt, binding: BoundConstraints) -> Iterator[Checked]:
    """Yield the constraints that a receipt's call or result was checked against."""
    items = {item.value: item for item in binding.at(receipt) if isinstance(item.value, Constraint)}
    checks = list(_compared(view, receipt, items))
    broken = _is_broken(receipt)
    for check in checks:
        # The recorded verdict counts: some values were redacted since, so checking again could fail.
        if broken or check.holds:
            yield Checked(run=run, receipt=receipt, item=items[check.constraint], check=check)
    # A failed handoff may only repeat the failure of a call, which has its own receipt.
    if broken and all(check.holds for check in checks) and not isinstance(receipt.body, HandoffFailed):
        yield Checked(run=run, receipt=receipt)


def _compared(view: LedgerView, receipt: Receipt, constraints: Iterable[Constraint]) -> Iterator[Check]:
    match receipt.body:
        case body if isinstance(body, Asked) and call_of(receipt) is not None:
            if (given := arguments_in(_bytes(view, receipt, ARGUMENTS))) is not None and body.kind != Kind.TOOL_HELD:
                yield from find_checks_of_call(constraints, body.tool, given)
        case body if isinstance(body, Ended):
            bound = [one for one in constraints if (one.binds_to or "").startswith(RETURNED)]
            call = read_call(view, receipt) if bound else None
            if call is not None and call.outcome is CallOutcome.COMPLETED:
                yield from find_checks_of_return(bound, call.tool, _read(view, receipt, RESULT))
        case HandoffCompleted() | HandoffFailed() | RunClosed():
            report = report_of(view, receipt)
            if report is not None and report.value is not None:
                yield from find_checks_of_result(constraints, json.loads(report.value))
        case _:
            return


def _is_broken(receipt: Receipt) -> bool:
    match receipt.body:
        case body if body.kind == Kind.TOOL_DENIED:
            return getattr(body, "rule", None) == RULE
        case HandoffFailed() as body:
            return body.error == ConstraintViolatedError.code
        case body if isinstance(body, Ended):
            return BROKEN in body.flags
        case body:
            return _FLAG in getattr(body, "flags", ())


def _read(view: LedgerView, receipt: Receipt, name: str) -> Any:  # noqa: ANN401 - JSON
    body = _bytes(view, receipt, name)
    try:
        return None if body is None else json.loads(body)
    except (ValueError, RecursionError):
        return None


def _bytes(view: LedgerView, receipt: Receipt, name: str) -> bytes | None:
    text = read_texts(view, receipt).get(name)
    return None if text is None else text.body


def report_of(view: LedgerView, receipt: Receipt) -> Report | None:
    """Return the report of a receipt; None if it has none, or it cannot be read."""
    text = read_texts(view, receipt).get(REPORT)
    try:
        report = None if text is None or text.body is None else decode_report(text.body)
        json.loads("null" if report is None or report.value is None else report.value)
    except (InvalidValueError, ValueError, RecursionError):
        return None
    return report
