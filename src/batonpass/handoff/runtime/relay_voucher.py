"""Signed enrolments: statements of the root key that a key belongs to a relay.

They are kept as content of the enrolling receipt, so that proofs can be made when the root key is not on this machine.
"""

import threading
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import Final

from batonpass.errors import GrantError, NotFoundError
from batonpass.grants.issuer import enrol
from batonpass.handoff.runtime.bounds import STATEMENT
from batonpass.model.base.ids import KeyId, LedgerId, PublicKey, RelayId
from batonpass.model.bodies.body import Kind, RelayEnrolled, RelayRotated
from batonpass.model.grants.grant import RelayEnrolment, Signed
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.receipt import Receipt
from batonpass.signing.ed25519 import is_signed
from batonpass.store.port import LedgerInfo, LedgerStore, LedgerView, ReceiptQuery
from batonpass.wire.grant_statements import signing_bytes
from batonpass.wire.receipt_codec import decode_receipt
from batonpass.wire.token import decode_part, encode_part

ENROLMENT: Final = "enrolment"


def vouch(ledger: LedgerId, relay: RelayId, public_key: PublicKey, *, root: Signer, at: datetime) -> Content:
    """Return the statement of the root key about the key of a relay, as content of the receipt that enrols it."""
    statement = enrol(public_key, ledger=ledger, relay=relay, root=root, at=at)
    return new_content(ENROLMENT, encode_part(statement), at, media_type=STATEMENT)


class Vouched:
    """The signed enrolments of relays. Each is read once and remembered, because it never changes."""

    def __init__(self, store: LedgerStore, root: Callable[[], Signer]) -> None:
        self._store = store
        self._root = root
        self._known: dict[KeyId, Signed[RelayEnrolment]] = {}
        self._reading = threading.Lock()

    def __call__(self, keys: Collection[KeyId]) -> tuple[Signed[RelayEnrolment], ...]:
        """Return the signed enrolment of each of these keys; if one was not kept, the root key signs it now.

        Raises `KeyMissingError` if the root key is not here, and `NotFoundError` for a key that no relay has.
        """
        with self._reading:
            if not self._known.keys() >= set(keys):
                with self._store.view() as view:
                    self._known.update(_read(view))
            for key in sorted(set(keys) - self._known.keys()):
                self._known[key] = self._given(key)
            return tuple(self._known[key] for key in dict.fromkeys(keys))

    def _given(self, key: KeyId) -> Signed[RelayEnrolment]:
        with self._store.view() as view:
            info = view.info()
            for body, receipt in _enrolling(view):
                if key_id(body.public_key) == key:
                    return enrol(body.public_key, ledger=info.id, relay=body.relay, root=self._root(), at=receipt.at)
        raise NotFoundError("relay with key", key)


def _enrolling(view: LedgerView) -> Iterator[tuple[RelayEnrolled | RelayRotated, Receipt]]:
    """Yield the receipts that enrol a key of a relay, with their bodies."""
    for kind in (Kind.RELAY_ENROLLED, Kind.RELAY_ROTATED):
        for stored in view.find_receipts(ReceiptQuery(kind=kind)):
            receipt = decode_receipt(stored.payload)
            if isinstance(receipt.body, RelayEnrolled | RelayRotated):
                yield receipt.body, receipt


def _read(view: LedgerView) -> Iterator[tuple[KeyId, Signed[RelayEnrolment]]]:
    info = view.info()
    for body, receipt in _enrolling(view):
        found = _kept(view, info, body, receipt)
        if found is not None:
            yield key_id(body.public_key), found


def _kept(
    view: LedgerView, info: LedgerInfo, body: RelayEnrolled | RelayRotated, receipt: Receipt
) -> Signed[RelayEnrolment] | None:
    """Return the statement beside a receipt; None unless it is about that key and the root key signed it."""
    ref = receipt.content.get(ENROLMENT)
    kept = None if ref is None else view.get_content(ref.id).body
    if kept is None:
        return None
    try:
        statement = decode_part(kept, RelayEnrolment)
    except GrantError:
        return None  # `batonpass ledger verify` finds the damage
    said = statement.said
    if (said.ledger, said.relay, said.public_key) != (info.id, body.relay, body.public_key):
        return None
    signed = is_signed(bytes.fromhex(info.root_key), signing_bytes(statement.payload), statement.signature)
    return statement if signed and said.key == key_id(info.root_key) else None
