"""Proof for single receipts: enough for an answer that uses ten receipts of a million.

`ledger verify` checks the whole ledger. Here each receipt is checked by itself: its bytes and signatures, the keys that
gave them, its neighbours in the stream, and its contents. This cannot notice a deleted tree.
"""

from collections.abc import Iterable
from functools import cache
from hashlib import sha256

from batonpass.accounts.blame.blame_values import BlameProof
from batonpass.errors import (
    ChainError,
    ContentMismatchError,
    EditedError,
    MissingError,
    NotFoundError,
    RevokedKeyError,
    SignatureError,
    UnknownKeyError,
    UnlinkedError,
    VerificationError,
)
from batonpass.model.base.ids import KeyId, PublicKey, ReceiptId, RelayId, StreamId
from batonpass.model.bodies.body import (
    HandoffAccepted,
    Kind,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RunRekeyed,
    RunStarted,
)
from batonpass.model.ledger.content import Place, content_digest
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.receipt import SIGNED_BY_ROOT, Receipt, StoredReceipt
from batonpass.records.text import read_receipt
from batonpass.signing.ed25519 import is_signed
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import signing_bytes


class Witness:
    """Checks receipts of one view, each only once."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self._info = view.info()
        self._checked: dict[ReceiptId, VerificationError | None] = {}
        self._relay_key = cache(self._read_relay_key)

    def prove(self, receipts: Iterable[StoredReceipt]) -> BlameProof:
        """Return whether these receipts are correct, or the first problem."""
        count = 0
        for stored in receipts:
            count += 1
            if stored.id not in self._checked:
                self._checked[stored.id] = self._finding(stored)
            if (finding := self._checked[stored.id]) is not None:
                where = f" (receipt {stored.id}, {stored.stream} {stored.seq})"
                return BlameProof(receipts=count, problem=f"{finding.problem}{where}", code=finding.code)
        return BlameProof(receipts=count)

    def _finding(self, stored: StoredReceipt) -> VerificationError | None:
        try:
            self._require(stored)
        except VerificationError as error:
            return error
        except NotFoundError as error:
            return MissingError(str(error))
        return None

    def _require(self, stored: StoredReceipt) -> None:
        receipt = read_receipt(stored)
        said = receipt.id, receipt.stream, receipt.seq, receipt.kind
        if said != (stored.id, stored.stream, stored.seq, stored.kind):
            raise EditedError("the columns of a receipt say something else than its signed bytes")
        self._require_signatures(stored, receipt)
        self._require_neighbours(stored, receipt)
        self._require_words(receipt)

    def _require_signatures(self, stored: StoredReceipt, receipt: Receipt) -> None:
        message = signing_bytes(stored.payload)
        public_key, ended_at = self._relay_key(receipt.relay, receipt.relay_key)
        if ended_at is not None and stored.position is not None and stored.position > ended_at:
            raise RevokedKeyError(f"key {receipt.relay_key[:16]} had ended before this was recorded")
        if not is_signed(bytes.fromhex(public_key), message, stored.relay_signature):
            raise SignatureError("a signature does not match the signed bytes")
        if (receipt.cosigner is None) != (stored.cosignature is None):
            raise SignatureError("the second signature is not the one that the receipt names")
        if receipt.cosigner is None or stored.cosignature is None:
            return
        second = self._cosigner(receipt)
        if key_id(second) != receipt.cosigner:
            raise UnknownKeyError(f"key {receipt.cosigner[:16]} may not sign this")
        if not is_signed(bytes.fromhex(second), message, stored.cosignature):
            raise SignatureError("a signature does not match the signed bytes")

    def _cosigner(self, receipt: Receipt) -> PublicKey:
        """Return the key that must sign besides the relay: the root key, or the run's key of that epoch."""
        if receipt.kind in SIGNED_BY_ROOT:
            return self._info.root_key
        if isinstance(receipt.body, RunStarted | HandoffAccepted | RunRekeyed):
            return receipt.body.run_key
        first = read_receipt(self._view.get_receipt_at(receipt.stream, 1)).body
        if not isinstance(first, RunStarted | HandoffAccepted):
            raise UnlinkedError("the stream does not begin with a run")
        key = first.run_key
        if receipt.epoch > 1:
            for stored in self._view.find_receipts(ReceiptQuery(stream=receipt.stream, kind=Kind.RUN_REKEYED)):
                body = read_receipt(stored).body
                if stored.seq < receipt.seq and isinstance(body, RunRekeyed):
                    key = body.run_key
        return key

    def _read_relay_key(self, relay: RelayId, wanted: KeyId) -> tuple[PublicKey, int | None]:
        """Return the recording relay's key, which the root must have enrolled, and the position where it ended."""
        # The relay's own stream first: most keys are enrolled there.
        relays = dict.fromkeys((relay, *(key.relay for key in self._view.find_keys() if key.relay is not None)))
        found: PublicKey | None = None
        ended: int | None = None
        for stream in relays:
            for stored in self._view.find_receipts(ReceiptQuery(stream=StreamId(stream), kind="relay")):
                body = read_receipt(stored).body
                if not isinstance(body, RelayEnrolled | RelayRotated | RelayRevoked) or not self._by_root(stored):
                    continue
                if key_id(body.public_key) == wanted and not isinstance(body, RelayRevoked):
                    found = body.public_key if body.relay == relay else found
                elif _ends(body, wanted):
                    ended = stored.position
        if found is None:
            raise UnknownKeyError(f"key {wanted[:16]} was never enrolled for {relay}")
        return found, ended

    def _by_root(self, stored: StoredReceipt) -> bool:
        root = bytes.fromhex(self._info.root_key)
        signature = stored.cosignature
        return signature is not None and is_signed(root, signing_bytes(stored.payload), signature)

    def _require_neighbours(self, stored: StoredReceipt, receipt: Receipt) -> None:
        own = sha256(stored.payload).hexdigest()
        stream = self._view.get_stream(receipt.stream)
        if receipt.seq > 1:
            before = self._view.get_receipt_at(receipt.stream, receipt.seq - 1)
            if sha256(before.payload).hexdigest() != receipt.previous:
                raise ChainError("it does not hang from the receipt before it")
        elif isinstance(receipt.body, RunStarted) and receipt.previous != self._info.genesis:
            raise UnlinkedError("it does not hang from where its stream must begin")
        if receipt.seq < stream.seq:
            after = read_receipt(self._view.get_receipt_at(receipt.stream, receipt.seq + 1))
            if after.previous != own:
                raise ChainError("the receipt after it does not hang from it")
        elif own != stream.head:
            raise ChainError("it is not the head of its stream")

    def _require_words(self, receipt: Receipt) -> None:
        stored = {one.id: one for one in self._view.find_contents([ref.id for ref in receipt.content.values()])}
        for name, ref in receipt.content.items():
            content = stored.get(ref.id)
            if content is not None and content.place is Place.ERASED:
                continue
            if content is None or content.salt is None or content.body is None:
                raise ContentMismatchError(f"the {name} is gone, and was not erased")
            if (len(content.body), content_digest(content.salt, content.body)) != (ref.size, ref.digest):
                raise ContentMismatchError(f"the {name} is not what the receipt committed to")


def _ends(body: RelayEnrolled | RelayRotated | RelayRevoked, wanted: KeyId) -> bool:
    """Return whether a receipt revokes or replaces a key."""
    if isinstance(body, RelayRevoked):
        return key_id(body.public_key) == wanted
    return isinstance(body, RelayRotated) and key_id(body.old_key) == wanted
