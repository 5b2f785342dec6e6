"""Taint: which content from outside reached a run, receipt by receipt, and who has endorsed it since."""

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
    """Return what a receipt brings from outside to the run in whose stream it stands."""
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
    """Return what a receipt endorses; None if it endorses nothing."""
    return receipt.body.source if isinstance(receipt.body, RunEndorsed | HandoffEndorsed) else None


def offered_taint(offer: HandoffInitiated) -> tuple[Source, ...]:
    """Return what an offer brings from outside to whoever takes it."""
    if offer.label is not None:
        return offer.taint
    # Whoever wrote it says nothing of labels: what is carried in quarantine came from outside all the same.
    return tuple(item.item for item in offer.carries if item.part is Part.UNTRUSTED)


def is_made_of_outside(receipt: Receipt) -> bool:
    """Return whether what a receipt says counts as content from outside."""
    label = getattr(receipt.body, "label", None)
    return label is not None and getattr(label, "is_external", False)
