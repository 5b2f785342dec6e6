"""Runs that exceeded their grant: by which command, and the files that it changed."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from batonpass.accounts.handoff.grant_chain import Revocation, find_revocation
from batonpass.accounts.why.why_hops import GONE, name_of, quoted
from batonpass.accounts.why.why_values import Explanation, Fact, WhyVerdict
from batonpass.audit.short_ids import ending
from batonpass.handoff.history.written_files import OUTSIDE, read_written
from batonpass.model.base.ids import StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallRecord, read_calls
from batonpass.records.lineage import find_ancestors
from batonpass.store.port import LedgerView

_MOST: Final = 5


def explain_outside(view: LedgerView, run: Run) -> Explanation | None:
    """Return the explanation of a run whose commands changed files that it may not write; None if none did."""
    found = [call for call in read_calls(view, run).values() if is_outside(call)]
    if not found:
        return None
    enforced = found[0].mode is Mode.ENFORCED
    told = "this was found afterwards" if enforced else "its grant is only tried out, so nothing was enforced"
    return Explanation(
        verdict=WhyVerdict.EXCEEDED if enforced else WhyVerdict.ALLOWED,
        answer=f"a command of {name_of(run)} changed files that its grant does not cover; {told}",
        facts=tuple(fact for call in found[:_MOST] for fact in outside_facts(view, call)),
        rule="grant",
    )


def outside_facts(view: LedgerView, call: CallRecord) -> Iterator[Fact]:
    """Yield the files that a command changed, if not all of them may be written."""
    if is_outside(call) and call.ending is not None:
        files = [written.resource for written in read_written(view, call, str)]
        more = f" and {len(files) - _MOST} more" if len(files) > _MOST else ""
        named = f"{', '.join(files[:_MOST])}{more}" if files else GONE
        text = f"call {ending(call.id)} changed {named}: its grant does not cover all of them"
        yield Fact.of("outside", text, call.ending)


def is_outside(call: CallRecord) -> bool:
    """Return whether a command changed files that its run may not write."""
    return call.ended is not None and OUTSIDE in call.ended.flags


def revoked_facts(view: LedgerView, run: Run, until: datetime) -> Iterator[Fact]:
    """Yield the revocations of a run's grant, and of those above that it depends on."""
    for one in (run, *find_ancestors(view, run)):
        revoked = find_revocation(view, StreamId(one.handoff or one.id))
        if revoked is not None and revoked.at <= until:
            told = f"what {name_of(one)} was granted · {revoked_words(revoked)}"
            yield Fact(label="revoked", text=told, receipt=revoked.receipt, at=revoked.at)


def revoked_words(revoked: Revocation) -> str:
    """Return who revoked a grant, and why."""
    return f"by {revoked.by}{'' if revoked.reason is None else f': {quoted(revoked.reason)}'}"
