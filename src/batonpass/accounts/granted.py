"""What receipts grant, as it is told. Nothing is checked here: whoever has to know runs the verifier."""

from batonpass.audit.lookup import read_receipt
from batonpass.errors import BatonpassError
from batonpass.handoff.bounds import TERMS
from batonpass.model.bodies import HandoffAccepted, RunStarted
from batonpass.model.grant import Terms
from batonpass.model.ids import PrincipalId, RunId, StreamId
from batonpass.model.receipt import Receipt
from batonpass.store.port import LedgerView
from batonpass.wire.token import decode_part


def grants(receipt: Receipt) -> bool:
    """Return whether a receipt begins a grant or hands one on."""
    return TERMS in receipt.content


def terms_in(view: LedgerView, receipt: Receipt) -> Terms | None:
    """Return what a receipt grants; None if it grants nothing, or what it granted can no longer be read."""
    ref = receipt.content.get(TERMS)
    try:
        body = None if ref is None else view.get_content(ref.id).body
        return None if body is None else decode_part(body, Terms).said
    except BatonpassError:
        return None


def may_under(view: LedgerView, receipt: Receipt, asked: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return what may be used under a receipt: what it grants, or if it grants nothing, what was asked for."""
    if not grants(receipt):
        return asked
    terms = terms_in(view, receipt)
    return None if terms is None else terms.may.lines


def given_by(terms: Terms | None, sender: str, principal: PrincipalId) -> str:
    """Return who gave what an offer grants: its sender; one that holds no grant itself, on behalf of its principal."""
    return f"{sender} for {principal}" if terms is not None and terms.parent is None else sender


def has_grant(view: LedgerView, run: RunId) -> bool:
    """Return whether a run's key was bound to a grant when it began."""
    body = read_receipt(view.get_receipt_at(StreamId(run), 1)).body
    return isinstance(body, RunStarted | HandoffAccepted) and body.certificate is not None
