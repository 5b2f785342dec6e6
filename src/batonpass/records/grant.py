"""What receipts grant, and with whose secret a call acted. Nothing is checked here: that is for the verifier."""

import json
from typing import Final

from msgspec import Struct

from batonpass.errors import BatonpassError
from batonpass.model.base.content_names import CREDENTIAL, PERMIT, TERMS
from batonpass.model.base.ids import Digest, PrincipalId, RunId, StreamId
from batonpass.model.bodies.body import HandoffAccepted, RunStarted
from batonpass.model.grants.grant import Terms
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import CallRecord
from batonpass.records.text import Found, read_contents, read_receipt
from batonpass.store.port import LedgerView
from batonpass.wire.token import decode_part

# The flag of an offer in a tree that tries a grant out: the grant would have refused it.
WOULD_DENY: Final = "would_deny.grant"

_MAY = " may "


class PermittedHop(Struct, frozen=True, kw_only=True):
    """One hop of a grant, and the permit of it that let a call be made."""

    agent: str
    permit: str


class UsedCredential(Struct, frozen=True, kw_only=True):
    """With which secret a call acted: never the secret, but what it is called and whose it is."""

    key: Digest  # tells whether two calls acted with the same
    name: str | None  # None if these words were erased
    identity: str | None


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


def read_permits(view: LedgerView, call: CallRecord) -> tuple[PermittedHop, ...] | None:
    """Return by which permit of each hop a call was made, its own run's first; None if those words are gone."""
    if PERMIT not in call.content:
        return ()
    text = read_contents(view, {PERMIT: call.content[PERMIT]})[PERMIT]
    return None if text.words is None else permits_in(text.words)


def permits_in(words: str) -> tuple[PermittedHop, ...]:
    """Return the permits that a content names, each line as `AGENT may PERMIT`; no agent has a space in its name."""
    lines = (line.partition(_MAY) for line in words.splitlines())
    return tuple(PermittedHop(agent=agent, permit=permit) for agent, _, permit in lines if permit)


def read_credential(view: LedgerView, call: CallRecord) -> UsedCredential | None:
    """Return with which secret a call acted; None if it acted with none."""
    if call.credential is None:
        return None
    ref = call.content.get(CREDENTIAL)
    text = None if ref is None else read_contents(view, {CREDENTIAL: ref})[CREDENTIAL]
    body = None if text is None or text.found is not Found.KEPT else text.body
    return credential_in(call.credential, body)


def credential_in(key: Digest, body: bytes | None) -> UsedCredential:
    """Return a credential by its words, as far as they are there."""
    try:
        document = None if body is None else json.loads(body)
        if document is not None:
            return UsedCredential(key=key, name=document["name"], identity=document["identity"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # not as it was recorded; `batonpass ledger verify` says so
    return UsedCredential(key=key, name=None, identity=None)
