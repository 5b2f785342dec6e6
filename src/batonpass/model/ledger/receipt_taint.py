"""Taint, receipt by receipt: which sources reached a run, and which of them were endorsed."""

from batonpass.model.base.label import Source
from batonpass.model.bodies.body import (
    HandoffEndorsed,
    HandoffInitiated,
    Part,
    RunEndorsed,
    RunRecorded,
    RunTainted,
    SessionResumed,
    ToolCompleted,
    ToolFailed,
)
from batonpass.model.ledger.receipt import Receipt


def brought_by(receipt: Receipt) -> tuple[Source, ...]:
    """Return the sources that a receipt brings to the run whose stream it is in."""
    match receipt.body:
        case ToolCompleted() | ToolFailed() as body:
            return (body.call,) if is_made_of_outside(receipt) else ()
        case RunRecorded(items=items):
            return tuple(item.item for item in items if item.part is Part.UNTRUSTED)
        case RunTainted(sources=sources):
            return sources
        case SessionResumed(taint=taint):
            return taint
        case _:
            return ()


def endorsed_by(receipt: Receipt) -> Source | None:
    """Return the source that a receipt endorses; None if it endorses none."""
    return receipt.body.source if isinstance(receipt.body, RunEndorsed | HandoffEndorsed) else None


def offered_taint(offer: HandoffInitiated) -> tuple[Source, ...]:
    """Return the sources that an offer brings to its receiver."""
    if offer.label is not None:
        return offer.taint
    # Its writer records no labels. Items in quarantine came from outside anyway.
    return tuple(item.item for item in offer.carries if item.part is Part.UNTRUSTED)


def is_made_of_outside(receipt: Receipt) -> bool:
    """Return whether the label of a receipt's body says that its content came from outside."""
    label = getattr(receipt.body, "label", None)
    return label is not None and getattr(label, "is_external", False)
