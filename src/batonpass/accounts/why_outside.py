"""How it is told that a run did more than it was granted: by which command, and what that changed."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from batonpass.accounts.why_constraints import BrokenResult
from batonpass.accounts.why_hops import GONE, name_of
from batonpass.accounts.why_values import Fact, Verdict
from batonpass.audit.lookup import ending, read_receipt
from batonpass.handoff.calls.shell import OUTSIDE
from batonpass.handoff.calls.written_files import read_written
from batonpass.model.bodies import ToolCompleted, ToolFailed
from batonpass.model.ids import CallId, StreamId
from batonpass.model.receipt import Mode, Receipt
from batonpass.model.run import Run
from batonpass.store.port import LedgerView, ReceiptQuery

_MOST: Final = 5


def explain_outside(view: LedgerView, run: Run) -> BrokenResult | None:
    """Return what there is to say of a run whose commands changed what it may not write; None if none did."""
    stored = view.find_receipts(ReceiptQuery(stream=StreamId(run.id)))
    found = [receipt for receipt in map(read_receipt, stored) if is_outside(receipt)]
    if not found:
        return None
    enforced = found[0].mode is Mode.ENFORCED
    told = "that was found once it was done" if enforced else "its grant is only tried out, so nothing was enforced"
    return BrokenResult(
        verdict=Verdict.EXCEEDED if enforced else Verdict.ALLOWED,
        answer=f"a command of {name_of(run)} changed what its grant does not let it write; {told}",
        facts=tuple(islice(outside_facts(view, found), _MOST)),
        item=None,
        rule="grant",
    )


def outside_facts(view: LedgerView, outcomes: Iterable[Receipt], of: CallId | None = None) -> Iterator[Fact]:
    """Yield for each outcome that says so, or for that of one call, which files the command changed."""
    for receipt in outcomes:
        body = receipt.body
        if is_outside(receipt) and isinstance(body, ToolCompleted | ToolFailed) and of in (None, body.call):
            files = [call.resource for call in read_written(view, receipt, str)]
            more = f" and {len(files) - _MOST} more" if len(files) > _MOST else ""
            named = f"{', '.join(files[:_MOST])}{more}" if files else GONE
            text = f"call {ending(body.call)} changed {named}: not all of it may be written"
            yield Fact(label="outside", text=text, receipt=receipt.id, at=receipt.at)


def is_outside(receipt: Receipt) -> bool:
    """Return whether a receipt is the outcome of a command that changed what its run may not write."""
    return isinstance(receipt.body, ToolCompleted | ToolFailed) and OUTSIDE in receipt.body.flags
