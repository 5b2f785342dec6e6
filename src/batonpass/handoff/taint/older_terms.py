"""The permits of a run that are older than its taint.

Content from outside cannot have chosen them. So a call that they name goes on although its run is tainted.
"""

from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.content_names import BRIEF, TERMS
from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.bodies.body import HandoffInitiated
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope_text import read_permit
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.receipt_taint import offered_taint
from batonpass.store.port import LedgerView
from batonpass.wire.documents import decode_brief
from batonpass.wire.receipt_codec import decode_receipt
from batonpass.wire.token import decode_part

_DEEPEST: Final = 100


def older_terms(view: LedgerView, run: RunId, depth: int = 0) -> tuple[Permit, ...]:
    """Return the permits of a run that are older than its taint, without anything that a tainted parent added."""
    known = view.get_run(run)
    if depth > _DEEPEST:
        return ()
    if known.handoff is None or known.parent is None:
        # Whoever started the root run gave this grant, so no content that reached the run later has chosen it.
        return _granted_in(view, decode_receipt(view.get_receipt_at(StreamId(run), 1).payload))
    handoff = view.get_handoff(known.handoff)
    receipt = decode_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq).payload)
    if not isinstance(receipt.body, HandoffInitiated):
        return ()
    given = _granted_in(view, receipt)
    return _of_both(given, older_terms(view, known.parent, depth + 1)) if offered_taint(receipt.body) else given


def _of_both(given: tuple[Permit, ...], own: tuple[Permit, ...]) -> tuple[Permit, ...]:
    """Return the given permits that the parent's own older permits name too, under the conditions of both."""
    pairs = ((one, other) for one in given for other in own if one.pattern == other.pattern)
    met = (one.meet(other) for one, other in pairs)
    return tuple(permit for permit in met if permit is not None)


def _granted_in(view: LedgerView, receipt: Receipt) -> tuple[Permit, ...]:
    """Return the permits in the terms of a receipt; without terms, those in its brief."""
    name = next((name for name in (TERMS, BRIEF) if name in receipt.content), None)
    body = None if name is None else view.get_content(receipt.content[name].id).body
    if body is None:
        return ()
    if name == TERMS:
        return decode_part(body, Terms).said.may.permits
    return tuple(permit for line in decode_brief(body).may if (permit := _read(line)) is not None)


def _read(line: str) -> Permit | None:
    """Return the permit that a line spells; None if it is free text, which is allowed where no grant is enforced."""
    try:
        return read_permit(line)
    except InvalidValueError:
        return None
