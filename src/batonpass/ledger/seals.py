"""Sealing: a signed Merkle root over all sequenced receipts.

It continues from the frontier of the last seal, so that only newer receipts are read.
"""

import contextlib
from hashlib import sha256
from typing import Final

from batonpass.errors import SealError, StaleHeadError, UnknownRelayError
from batonpass.ledger.ledger import Recorder
from batonpass.ledger.merkle import Frontier, consistency_proof, leaf_hash, verify_consistency
from batonpass.ledger.note import Checkpoint, parse_note, sign_checkpoint
from batonpass.ledger.seal_growth import SealGrowth
from batonpass.model.base.ids import Digest, LedgerId
from batonpass.model.ledger.key import KeyStatus
from batonpass.model.ledger.seal import Seal
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery

# If another process sealed in between, somebody made progress.
_TRIES: Final = 16


def origin_of(ledger: LedgerId) -> str:
    """Return the origin under which a ledger's seals are signed."""
    return f"batonpass/{ledger}"


class Sealing:
    """Makes seals."""

    def __init__(self, store: LedgerStore, recorder: Recorder) -> None:
        self._store = store
        self._recorder = recorder

    def seal(self) -> Seal:
        """Seal all receipts so far, store the seal and return it. Without new receipts, return the last seal.

        Raises `UnknownRelayError` if this relay's key is not active.
        """
        self._store.sequence()
        for _ in range(_TRIES):
            with self._store.view() as view:
                last = max(view.find_seals(), key=lambda seal: seal.size, default=None)
                if last is not None and last.size == view.last_position():
                    return last
                self._require_active(view)
                origin = origin_of(view.info().id)
                frontier = _grow(view, last)
            seal = self._signed(origin, frontier, 0 if last is None else last.size)
            with contextlib.suppress(StaleHeadError):
                self._store.add_seal(seal)
                return seal
        raise StaleHeadError("seals", 0)

    def _require_active(self, view: LedgerView) -> None:
        # The key is checked in the view that is sealed. So a seal that covers the revocation of a key is never signed
        # with that key.
        key = self._recorder.signer.key
        if not any(known.id == key and known.status is KeyStatus.ACTIVE for known in view.find_keys()):
            raise UnknownRelayError(key, enrolled=True)

    def _signed(self, origin: str, frontier: Frontier, previous: int) -> Seal:
        signer = self._recorder.signer
        checkpoint = Checkpoint(origin=origin, size=frontier.size, root=frontier.root())
        return Seal(
            size=frontier.size,
            previous=previous,
            root=Digest(checkpoint.root.hex()),
            note=sign_checkpoint(checkpoint, signer.sign, origin, bytes.fromhex(signer.public_key)),
            frontier=frontier.to_bytes(),
        )


def leaves_of(view: LedgerView, seal: Seal) -> list[bytes]:
    """Return the leaf hashes of the tree of a seal, for proofs. Raises `SealError` if sealed receipts are gone."""
    leaves = [
        leaf_hash(sha256(receipt.payload).digest())
        for receipt in view.find_receipts(ReceiptQuery(first=1, last=seal.size))
    ]
    if len(leaves) < seal.size:
        raise shortened(seal.size, len(leaves))
    return leaves


def shortened(size: int, here: int) -> SealError:
    """Return the error for a seal that covers more receipts than there are."""
    return SealError(
        f"it covers {size} receipts and {here} are here: at least {size - here} were deleted",
        stream=f"seal {size}",
        field="size",
    )


def growth_since(view: LedgerView, old: str, seal: Seal) -> SealGrowth:
    """Return the proof that a seal of this ledger covers all that an older one covers.

    Raises `InvalidValueError` for a text that is no seal, and `SealError` for one that this ledger does not extend:
    of another ledger, or of receipts that are gone.
    """
    before = parse_note(old).checkpoint
    origin = origin_of(view.info().id)
    if before.origin != origin:
        raise SealError(f"it is of {before.origin}, not of {origin}", stream=f"seal {before.size}", field="origin")
    if before.size > seal.size:
        raise shortened(before.size, seal.size)
    hashes = consistency_proof(leaves_of(view, seal), before.size)
    verify_consistency(
        old_size=before.size,
        old_root=before.root,
        new_size=seal.size,
        new_root=bytes.fromhex(seal.root),
        proof=hashes,
    )
    return SealGrowth(before.size, tuple(hashes), seal.note)


def _grow(view: LedgerView, last: Seal | None) -> Frontier:
    frontier = Frontier.empty() if last is None else Frontier.from_bytes(last.size, last.frontier)
    for receipt in view.find_receipts(ReceiptQuery(first=frontier.size + 1)):
        frontier.append(leaf_hash(sha256(receipt.payload).digest()))
    return frontier
