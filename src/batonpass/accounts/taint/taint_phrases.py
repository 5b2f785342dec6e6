"""Short phrases for the receipts on a source's way."""

from batonpass.accounts.taint.receipt_texts import path_of
from batonpass.accounts.taint.taint_values import Did, TaintEntry, TaintHop
from batonpass.accounts.trail.first_lines import first_line
from batonpass.accounts.why.outside_content import Outside
from batonpass.accounts.why.why_hops import name_of
from batonpass.audit.short_ids import ending
from batonpass.model.base.content_names import ARGUMENTS, REASON, TARGET
from batonpass.model.base.ids import CALL, HANDOFF, RUN, CallId, HandoffId, RunId
from batonpass.model.base.label import Source, SourceType
from batonpass.model.base.lifecycle import DELIVERED
from batonpass.model.bodies.body import RunTainted
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import find_call
from batonpass.records.text import read_texts
from batonpass.store.port import LedgerView


def whose(view: LedgerView, receipt: Receipt) -> str:
    """Return the run or handoff that a receipt belongs to."""
    if receipt.stream.startswith(f"{RUN}_"):
        return name_of(view.get_run(RunId(receipt.stream)))
    if receipt.stream.startswith(f"{HANDOFF}_"):
        handoff = view.get_handoff(HandoffId(receipt.stream))
        return f"{handoff.to} {ending(handoff.id)}"
    return ""


def entry_of(view: LedgerView, source: Source, also: tuple[Source, ...], receipt: Receipt) -> TaintEntry:
    """Return where a source came in, for people."""
    outside = Outside(view, receipt.root or RunId(receipt.stream))
    outside.brought.update(dict.fromkeys((source, *also), receipt))
    for one in (source, *also):
        if one.startswith(f"{CALL}_"):
            made = find_call(view, CallId(one))
            outside.tools[CallId(one)] = "a call" if made is None else made.tool
    label = getattr(receipt.body, "label", None)
    return TaintEntry(
        source=source,
        also=also,
        name=", also ".join(map(outside.name_of, (source, *also))),
        words=outside.words_of(source),
        label=label.integrity if label is not None and label.is_external else SourceType.EXTERNAL,
        receipt=receipt.id,
        at=receipt.at,
        run=RunId(receipt.stream),
        by=whose(view, receipt),
    )


def hop_at(view: LedgerView, did: Did, receipt: Receipt, what: str = "", about: str | None = None) -> TaintHop:
    """Return a receipt as a hop; `about` is the id of its call or handoff."""
    run = RunId(receipt.stream) if receipt.stream.startswith(f"{RUN}_") else None
    return TaintHop(did=did, receipt=receipt.id, at=receipt.at, run=run, name=whose(view, receipt), what=what, id=about)


def came_with(view: LedgerView, receipt: Receipt, body: RunTainted) -> str:
    """Return how something reached a run, if neither a call nor an offer brought it."""
    if body.handoff is not None:
        known = view.get_handoff(body.handoff)
        what = "the result" if known.state in DELIVERED else "words"
        return f"with {what} of {known.to} {ending(known.id)}"
    if body.wrote is not None:
        return f"from {path_of(view, receipt)}, which call {ending(body.wrote)} wrote"
    return "from a memory or a conversation"


def called_with(view: LedgerView, receipt: Receipt, tool: str) -> str:
    """Return a call on one line."""
    texts = read_texts(view, receipt)
    for name in (TARGET, ARGUMENTS):
        text = texts.get(name)
        if text is not None and text.body is not None:
            return f"{tool} {first_line(name, text.ref.id, text.body).bare}".rstrip()
    return tool


def quoted_reason(view: LedgerView, receipt: Receipt) -> str:
    """Return the reason of a ruling, quoted after a colon; empty if there is none."""
    text = read_texts(view, receipt).get(REASON)
    return "" if text is None or text.body is None else f": {first_line(REASON, text.ref.id, text.body)}"
