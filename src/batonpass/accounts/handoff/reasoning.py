"""Where a sender's reasoning stood when it handed work on, as far as receipts say and the words are still here."""

from msgspec import Struct

from batonpass.audit.short_ids import ending
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.handoff.transfer.reasoning import REASONING, WORDS
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
    """What a run kept so that the next attempt can go on: all that its model had been told and had said by then."""

    receipt: ReceiptId
    run: RunId  # the sender's, or that of an earlier attempt which it went on from
    messages: ContentRef | None  # not read here: it may be a whole conversation


class Reasoning(Struct, frozen=True, kw_only=True):
    """What an offer points to: what is signed, and what of it can be read here."""

    pointer: ReasoningPointer
    checkpoint: RunCheckpoint | None
    place: ReasoningPlace | None  # None: there is no message, or where it stands was erased
    message: Text | None  # None: the message is kept by the program that wrote it, and not here
    erased: bool = False  # there was a place, and nobody can read it here any more

    @property
    def sentence(self) -> str:
        """Return where it stands, on one line."""
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
            said.append("(where it stands was erased)")
        parts = [" ".join(said) or "a message"] if pointer.digest is not None else []
        if pointer.checkpoint is not None:
            parts.append(f"checkpoint {ending(pointer.checkpoint, 6)}")
        return " · ".join(parts)


def read_reasoning(view: LedgerView, offer: Receipt) -> Reasoning | None:
    """Return what an offer points to; None if it points to nothing."""
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
        return None  # it is not what was written; the verifier says so


def _checkpoint(view: LedgerView, receipt: ReceiptId) -> RunCheckpoint | None:
    try:
        saved = read_receipt(view.get_receipt(receipt))
    except NotFoundError:
        return None
    if not isinstance(saved.body, CheckpointSaved):
        return None
    return RunCheckpoint(receipt=receipt, run=saved.body.run, messages=saved.content.get(MESSAGES))
