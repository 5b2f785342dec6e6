"""A sender's reasoning at the time of its offer, as far as it is recorded and still readable."""

from msgspec import Struct

from batonpass.audit.short_ids import ending
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.handoff.runtime.reasoning import REASONING, WORDS
from batonpass.model.base.content_names import MESSAGES
from batonpass.model.base.ids import ReceiptId, RunId
from batonpass.model.bodies.body import CheckpointSaved, HandoffInitiated
from batonpass.model.bodies.reasoning import ReasoningPlace, ReasoningPointer
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.text import Found, Text, read_contents, read_receipt
from batonpass.store.port import LedgerView
from batonpass.wire.documents import decode_reasoning


class RunCheckpoint(Struct, frozen=True, kw_only=True):
    """A checkpoint from which the next attempt can continue: the model's whole conversation so far."""

    receipt: ReceiptId
    run: RunId  # the sender's run, or an earlier attempt that it continued
    messages: ContentRef | None  # not read here; it may be a whole conversation


class Reasoning(Struct, frozen=True, kw_only=True):
    """The reasoning that an offer points to: the signed pointer, and the text if it can be read here."""

    pointer: ReasoningPointer
    checkpoint: RunCheckpoint | None
    place: ReasoningPlace | None  # None if there is no message, or its place was erased
    message: Text | None  # None if only the program that wrote the message has it
    erased: bool = False  # it had a place that can no longer be read here

    @property
    def sentence(self) -> str:
        """Return on one line where it can be found."""
        pointer, place = self.pointer, self.place
        numbers = (("message", pointer.message), ("line", pointer.line), ("byte", pointer.offset))
        said = [f"{name} {number}" for name, number in numbers if number is not None]
        if place is not None and place.path is not None:
            said.append(f"of {place.path}")
        if place is not None and place.uuid is not None:
            said.append(f"({place.uuid})")
        if self.message is not None:
            said.append("kept with the offer" if self.message.found is Found.KEPT else str(self.message.found))
        if self.erased:
            said.append("(its place was erased)")
        parts = [" ".join(said) or "a message"] if pointer.digest is not None else []
        if pointer.checkpoint is not None:
            parts.append(f"checkpoint {ending(pointer.checkpoint, 6)}")
        return " · ".join(parts)


def read_reasoning(view: LedgerView, offer: Receipt) -> Reasoning | None:
    """Return the reasoning that an offer points to; None if it has none."""
    body = offer.body
    if not isinstance(body, HandoffInitiated) or body.reasoning is None:
        return None
    texts = read_contents(view, {name: ref for name, ref in offer.content.items() if name in {REASONING, WORDS}})
    kept = texts.get(REASONING)
    return Reasoning(
        pointer=body.reasoning,
        checkpoint=None if body.reasoning.checkpoint is None else _checkpoint(view, body.reasoning.checkpoint),
        place=_place(kept),
        message=texts.get(WORDS),
        erased=kept is not None and kept.body is None,
    )


def _place(kept: Text | None) -> ReasoningPlace | None:
    try:
        return None if kept is None or kept.body is None else decode_reasoning(kept.body)
    except InvalidValueError:
        return None  # altered; verification reports it


def _checkpoint(view: LedgerView, receipt: ReceiptId) -> RunCheckpoint | None:
    try:
        saved = read_receipt(view.get_receipt(receipt))
    except NotFoundError:
        return None
    if not isinstance(saved.body, CheckpointSaved):
        return None
    return RunCheckpoint(receipt=receipt, run=saved.body.run, messages=saved.content.get(MESSAGES))
