"""Runs that exceeded their grant: by which command, and what it changed."""

from collections.abc import Iterator
from typing import Final

from batonpass.accounts.why.why_constraint import BrokenResult
from batonpass.accounts.why.why_hops import GONE, name_of
from batonpass.accounts.why.why_values import Fact, WhyVerdict
from batonpass.audit.short_ids import ending
from batonpass.handoff.history.written_files import OUTSIDE, read_written
from batonpass.model.base.kinds import Mode
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallRecord, read_calls
from batonpass.store.port import LedgerView

_MOST: Final = 5


def explain_outside(view: LedgerView, run: Run) -> BrokenResult | None:
    """Return the explanation of a run whose commands changed what it may not write; None if none did."""
    found = [call for call in read_calls(view, run).values() if is_outside(call)]
    if not found:
        return None
    enforced = found[0].mode is Mode.ENFORCED
    told = "that was found once it was done" if enforced else "its grant is only tried out, so nothing was enforced"
    return BrokenResult(
        verdict=WhyVerdict.EXCEEDED if enforced else WhyVerdict.ALLOWED,
        answer=f"a command of {name_of(run)} changed what its grant does not let it write; {told}",
        facts=tuple(fact for call in found[:_MOST] for fact in outside_facts(view, call)),
        item=None,
        rule="grant",
    )


def outside_facts(view: LedgerView, call: CallRecord) -> Iterator[Fact]:
    """Yield the files that a command changed, if not all of them may be written."""
    if is_outside(call) and call.ending is not None:
        files = [written.resource for written in read_written(view, call, str)]
        more = f" and {len(files) - _MOST} more" if len(files) > _MOST else ""
        named = f"{', '.join(files[:_MOST])}{more}" if files else GONE
        text = f"call {ending(call.id)} changed {named}: not all of it may be written"
        yield Fact(label="outside", text=text, receipt=call.ending.id, at=call.ending.at)


def is_outside(call: CallRecord) -> bool:
    """Return whether a command changed what its run may not write."""
    return call.ended is not None and OUTSIDE in call.ended.flags
