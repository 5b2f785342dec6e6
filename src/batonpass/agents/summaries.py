"""A receipt in a line of words."""

from typing import Final

from batonpass.handoff.transfer.read_offer import read_words
from batonpass.model.bodies import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffContextSanitized,
    HandoffFailed,
    HandoffInitiated,
    RunStarted,
)
from batonpass.model.checks import shorten
from batonpass.model.content_names import ANSWER, QUESTION, REPORT, TASK
from batonpass.model.ids import RunId
from batonpass.model.receipt import Receipt
from batonpass.records.call import read_call
from batonpass.store.port import LedgerView
from batonpass.wire.documents import decode_report

_SAID: Final = (QUESTION, ANSWER, "reason", "message", "intent")


def summarise(view: LedgerView, receipt: Receipt) -> str:
    """Return what a receipt says, in one line; what was erased is said to be so."""
    match receipt.body:
        case RunStarted() as body:
            told = f"{body.principal} asks {body.agent}: {_words(view, receipt, 'intent')}"
        case HandoffInitiated() as body:
            told = f"{_agent(view, body.run)} hands to {body.to}: {_words(view, receipt, TASK)}"
        case HandoffContextSanitized() as body:
            found = ", ".join(f"{one.rule} ×{one.count} in {one.place}" for one in body.found) or "nothing"
            told = f"found {found}; {body.action}, as {body.label}"
        case HandoffAccepted() as body:
            told = f"{body.agent} begins attempt {body.attempt}"
        case HandoffCompleted() as body:
            gaps = f" ({', '.join(body.flags)})" if body.flags else ""
            told = f"{_agent(view, body.run)} reports: {_report(view, receipt)}{gaps}"
        case HandoffFailed() as body if body.is_refusal:
            told = f"{_agent(view, body.run)} may not hand to {body.to}: {body.error}"
        case HandoffFailed() as body:
            told = f"{_agent(view, body.run)} failed: {body.error}"
        case _ if (call := read_call(view, receipt)) is not None and call.receipt.id == receipt.id and call.is_made:
            told = f"{_agent(view, call.run)} calls {call.tool}"
        case body:
            by = getattr(body, "by", None)
            said = next((_words(view, receipt, name) for name in _SAID if name in receipt.content), "")
            told = " ".join(part for part in (f"by {by}" if by else "", said) if part) or str(body.kind)
    return told


def _agent(view: LedgerView, run: RunId) -> str:
    return view.get_run(run).agent


def _words(view: LedgerView, receipt: Receipt, name: str) -> str:
    return shorten(read_words(view, receipt.content.get(name)))


def _report(view: LedgerView, receipt: Receipt) -> str:
    ref = receipt.content.get(REPORT)
    stored = None if ref is None else view.get_content(ref.id)
    if stored is None or stored.body is None:
        return "nothing"
    return shorten(decode_report(stored.body).result)
