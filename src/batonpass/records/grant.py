"""Grants and credentials as receipts name them. Nothing is checked here; the verifier does that."""

import json
from typing import Final

from msgspec import Struct

from batonpass.errors import BatonpassError, InvalidValueError
from batonpass.model.base.content_names import BRIEF, CREDENTIAL, PERMIT, TERMS
from batonpass.model.base.ids import Digest, PrincipalId, RunId, StreamId
from batonpass.model.baton.baton import Brief
from batonpass.model.bodies.body import HandoffAccepted, RunStarted
from batonpass.model.grants.grant import Terms
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import CallRecord
from batonpass.records.text import Found, Text, read_contents, read_receipt
from batonpass.store.port import LedgerView
from batonpass.wire.documents import decode_brief
from batonpass.wire.token import decode_part

# Flag of an offer that its grant would have refused, had it been enforced.
WOULD_DENY: Final = "would_deny.grant"

_MAY = " may "


class PermittedHop(Struct, frozen=True, kw_only=True):
    """One hop of a grant, and its permit that covered a call."""

    agent: str
    permit: str


class UsedCredential(Struct, frozen=True, kw_only=True):
    """The secret that a call used: its name and owner, never the secret itself."""

    key: Digest  # equal for two calls that used the same secret
    name: str | None  # None if it was erased
    identity: str | None


def grants(receipt: Receipt) -> bool:
    """Return whether a receipt starts or passes on a grant."""
    return TERMS in receipt.content


def terms_in(view: LedgerView, receipt: Receipt) -> Terms | None:
    """Return the terms in a receipt; None if it has none, or they can no longer be read."""
    ref = receipt.content.get(TERMS)
    try:
        return None if ref is None else terms_from(view.get_content(ref.id).body)
    except BatonpassError:
        return None


def terms_from(body: bytes | None) -> Terms | None:
    """Return the terms that a content says; None if it is gone, or can no longer be read."""
    try:
        return None if body is None else decode_part(body, Terms).said
    except BatonpassError:
        return None


def may_under(view: LedgerView, receipt: Receipt, asked: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the permits under a receipt: those granted, else those asked for."""
    if not grants(receipt):
        return asked
    terms = terms_in(view, receipt)
    return None if terms is None else terms.may.lines


def brief_of(view: LedgerView, offer: Receipt) -> Brief | None:
    """Return the brief of an offer; None if it is gone."""
    if BRIEF not in offer.content:
        return Brief()
    text = read_contents(view, {BRIEF: offer.content[BRIEF]})[BRIEF]
    try:
        return None if text.body is None else decode_brief(text.body)
    except InvalidValueError:
        return None


def given_by(terms: Terms | None, sender: str, principal: PrincipalId) -> str:
    """Return who granted the terms of an offer: its sender, acting for its principal if it holds no grant itself."""
    return f"{sender} for {principal}" if terms is not None and terms.parent is None else sender


def has_grant(view: LedgerView, run: RunId) -> bool:
    """Return whether a run's key was bound to a grant at its start."""
    body = read_receipt(view.get_receipt_at(StreamId(run), 1)).body
    return isinstance(body, RunStarted | HandoffAccepted) and body.certificate is not None


def read_permits(view: LedgerView, call: CallRecord) -> tuple[PermittedHop, ...] | None:
    """Return the permits that covered a call, one for each hop, its own run first; None if they are gone."""
    if PERMIT not in call.content:
        return ()
    return permits_in(read_contents(view, {PERMIT: call.content[PERMIT]})[PERMIT])


def permits_in(text: Text | None) -> tuple[PermittedHop, ...] | None:
    """Return the permits listed in a content, one `AGENT may PERMIT` a line; None if it is gone."""
    if text is None or text.words is None:
        return None
    lines = (line.partition(_MAY) for line in text.words.splitlines())  # agent names have no spaces
    return tuple(PermittedHop(agent=agent, permit=permit) for agent, _, permit in lines if permit)


def read_credential(view: LedgerView, call: CallRecord) -> UsedCredential | None:
    """Return the secret that a call used; None if it used none."""
    if call.credential is None:
        return None
    ref = call.content.get(CREDENTIAL)
    text = None if ref is None else read_contents(view, {CREDENTIAL: ref})[CREDENTIAL]
    body = None if text is None or text.found is not Found.KEPT else text.body
    return credential_in(call.credential, body)


def credential_in(key: Digest, body: bytes | None) -> UsedCredential:
    """Return a credential from its content; without a name if that is gone."""
    try:
        document = None if body is None else json.loads(body)
        if document is not None:
            return UsedCredential(key=key, name=document["name"], identity=document["identity"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # unreadable; `batonpass ledger verify` reports it
    return UsedCredential(key=key, name=None, identity=None)
