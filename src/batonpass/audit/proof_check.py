"""Checks with a key and a few files, without a ledger: a receipt under a seal, and two seals.

docs/spec/seal.md, section 5. The key has to come from elsewhere: a forger of a receipt can make up a key as well.
"""

from collections.abc import Sequence

from msgspec import Struct

from batonpass.audit.verification.seal_check import is_sealed_by
from batonpass.errors import InvalidValueError, SealError, SignatureError, UntrustedKeyError
from batonpass.ledger.merkle import verify_consistency
from batonpass.ledger.note import Checkpoint, Note, SealKey, parse_note
from batonpass.ledger.seal_growth import SealGrowth
from batonpass.ledger.seal_proof import parse_proof, verify_proof
from batonpass.model.base.ids import Digest, PublicKey
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.receipt import Receipt
from batonpass.signing.ed25519 import is_signed
from batonpass.wire.receipt_codec import decode_envelope, signing_bytes


class ProvenReceipt(Struct, frozen=True, kw_only=True):
    """A receipt that one of the given keys signed, and the seal that covers it."""

    receipt: Receipt
    digest: Digest
    position: int
    seal: Checkpoint


def verify_receipt(envelope: bytes, proof: str, keys: Sequence[SealKey]) -> ProvenReceipt:
    """Return a receipt if one of these keys signed it, and a seal signed by one of them covers it.

    The signature of its run is not checked: the run's key is in another receipt. Raises `InvalidValueError` for
    unreadable input, `UntrustedKeyError`, `SignatureError`, and `SealError` if the proof does not lead to the seal.
    """
    signed = decode_envelope(envelope)
    # The signature before the path: a path from bytes that nobody signed proves nothing worth knowing.
    relay = next((key for key in keys if key_id(PublicKey(key.public_key.hex())) == signed.receipt.relay_key), None)
    if relay is None:
        raise UntrustedKeyError(
            f"it is signed by key {signed.receipt.relay_key[:16]}, which is none of the given ones", field="signature"
        )
    if not is_signed(relay.public_key, signing_bytes(signed.payload), signed.relay_signature):
        raise SignatureError("the signature of the relay does not match", field="signature")
    path = parse_proof(proof)
    note = verify_proof(path, bytes.fromhex(signed.digest))
    _require_signed(note, keys)
    return ProvenReceipt(receipt=signed.receipt, digest=signed.digest, position=path.index + 1, seal=note.checkpoint)


def verify_growth(old: str, growth: SealGrowth, keys: Sequence[SealKey]) -> tuple[Checkpoint, Checkpoint]:
    """Return two seals, the older first, if the newer one covers all that the older one covers, unchanged.

    Both have to be signed by given keys. Raises `InvalidValueError` for unreadable input, and `SealError`.
    """
    before, after = parse_note(old), parse_note(growth.seal)
    for note in (before, after):
        _require_signed(note, keys)
    first, last = before.checkpoint, after.checkpoint
    if first.origin != last.origin:
        raise SealError(f"one is of {first.origin}, the other of {last.origin}", field="origin")
    if first.size != growth.old_size:
        raise SealError(f"the proof begins at {growth.old_size} receipts, the older seal at {first.size}", field="size")
    verify_consistency(
        old_size=first.size, old_root=first.root, new_size=last.size, new_root=last.root, proof=growth.hashes
    )
    return first, last


def _require_signed(note: Note, keys: Sequence[SealKey]) -> None:
    origin = note.checkpoint.origin
    if not any(key.origin in {None, origin} and is_sealed_by(note, key.public_key) for key in keys):
        raise UntrustedKeyError(
            "none of the given keys has signed it", stream=f"seal {note.checkpoint.size}", field="signature"
        )


def read_keys(texts: Sequence[str]) -> list[SealKey]:
    """Return keys as people give them. Raises `InvalidValueError`."""
    if not texts:
        raise InvalidValueError("key", "is needed: the public key of the relay, from somebody whom you trust")
    return [SealKey.parse(text) for text in texts]
