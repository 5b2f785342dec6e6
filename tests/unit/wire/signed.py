"""Receipts of every kind, signed with keys that are always the same."""

from typing import Final

from msgspec.structs import replace

from batonpass.model.bodies.body import (
    Body,
    HandoffAccepted,
    Kind,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RunRekeyed,
    RunStarted,
)
from batonpass.model.ledger.receipt import SIGNED_BY_ROOT, SIGNED_BY_RUN, Receipt, SignedReceipt
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.wire.canonical import digest
from batonpass.wire.receipt_codec import encode_receipt, signing_bytes
from tests.unit.model.examples import BODIES, a_receipt

ROOT: Final = Ed25519Signer(b"r" * 32)
RELAY: Final = Ed25519Signer(b"y" * 32)
RUN: Final = Ed25519Signer(b"u" * 32)
NEXT: Final = Ed25519Signer(b"n" * 32)


def cosigner_of(kind: str) -> Ed25519Signer | None:
    """Return who signs a kind of receipt besides the relay."""
    if kind in SIGNED_BY_ROOT:
        return ROOT
    if kind == Kind.RUN_REKEYED:
        return NEXT
    return RUN if kind in SIGNED_BY_RUN else None


def with_real_keys(body: Body) -> Body:
    """Return a body whose public keys are those of the signers above."""
    match body:
        case RunStarted() | HandoffAccepted():
            return replace(body, run_key=RUN.public_key)
        case RunRekeyed():
            return replace(body, run_key=NEXT.public_key)
        case RelayRotated():
            return replace(body, old_key=RELAY.public_key, public_key=NEXT.public_key)
        case RelayEnrolled() | RelayRevoked():
            return replace(body, public_key=RELAY.public_key)
        case _:
            return body


def receipt_of(kind: Kind) -> Receipt:
    """Return the example of a kind, naming the keys that sign it."""
    cosigner = cosigner_of(kind)
    return a_receipt(
        with_real_keys(BODIES[kind]),
        relay_key=RELAY.key,
        cosigner=None if cosigner is None else cosigner.key,
    )


def sign(receipt: Receipt, payload: bytes | None = None) -> SignedReceipt:
    """Return a receipt signed by those whom it names; a payload given as well is signed instead of its own."""
    payload = encode_receipt(receipt) if payload is None else payload
    message = signing_bytes(payload)
    cosigner = next((signer for signer in (ROOT, RUN, NEXT) if signer.key == receipt.cosigner), None)
    return SignedReceipt(
        receipt=receipt,
        payload=payload,
        digest=digest(payload),
        relay_signature=RELAY.sign(message),
        cosignature=None if cosigner is None else cosigner.sign(message),
    )
