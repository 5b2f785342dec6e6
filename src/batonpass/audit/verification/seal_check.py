"""Seals: rebuilds the Merkle tree receipt by receipt and compares it at the size of each seal."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from batonpass.errors import InvalidValueError, SealError
from batonpass.ledger.merkle import Frontier, leaf_hash
from batonpass.ledger.note import Note, parse_note
from batonpass.ledger.seals import origin_of, shortened
from batonpass.model.base.ids import KeyId
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.seal import Seal
from batonpass.signing.ed25519 import is_signed
from batonpass.store.port import LedgerInfo


class SealCheck:
    """Compares each seal with the tree of its size. Raises `SealError`."""

    def __init__(self, info: LedgerInfo, *, notes: Iterable[str] = (), kept: Iterable[Seal] = ()) -> None:
        self.checked = 0
        self._origin = origin_of(info.id)
        self._frontier = Frontier.empty()
        self._wanted: defaultdict[int, list[tuple[Note, Seal | None]]] = defaultdict(list)
        for text in notes:
            note = parse_seal(text, "the given seal")
            if note.checkpoint.size == 0:
                raise SealError("it covers no receipts, so it proves nothing", stream="seal 0", field="size")
            self._wanted[note.checkpoint.size].append((note, None))
        previous = 0
        for seal in kept:
            # Each seal names the one before it, so a seal cannot be deleted from the middle unnoticed.
            if seal.previous != previous:
                raise SealError(
                    f"it follows the seal of {seal.previous}, and the one before it is of {previous}",
                    stream=f"seal {seal.size}",
                    field="previous",
                )
            previous = seal.size
            note = parse_seal(seal.note, f"the seal of {seal.size}")
            if (note.checkpoint.size, note.checkpoint.root.hex()) != (seal.size, seal.root):
                raise SealError("the row says something else than its note", stream=f"seal {seal.size}", field="root")
            self._wanted[seal.size].append((note, seal))

    def add(self, digest: bytes, keys: Mapping[KeyId, Key]) -> None:
        """Add the next receipt's digest, and check the seals of that size."""
        if not self._wanted:
            return  # no seal is left to compare with, so the tree need not grow any more
        self._frontier.append(leaf_hash(digest))
        if (due := self._wanted.pop(self._frontier.size, None)) is not None:
            for note, seal in due:
                self._require(note, seal, keys)

    def finish(self, receipts: int) -> None:
        """Refuse seals that cover more receipts than there are. Raises `SealError`."""
        if self._wanted:
            raise shortened(max(self._wanted), receipts)

    def _require(self, note: Note, seal: Seal | None, keys: Mapping[KeyId, Key]) -> None:
        place = f"seal {note.checkpoint.size}"
        if note.checkpoint.origin != self._origin:
            raise SealError(f"it is of {note.checkpoint.origin}, not of {self._origin}", stream=place, field="origin")
        if not any(_signed(note, key) for key in keys.values()):
            raise SealError("no relay that was enrolled then has signed it", stream=place, field="signature")
        if note.checkpoint.root != self._frontier.root():
            raise SealError(
                f"the first {note.checkpoint.size} receipts are not those that were sealed: "
                "some were deleted, replaced or reordered",
                stream=place,
                field="root",
            )
        # The next seal is made from this frontier, without reading older receipts. A wrong one would spoil every later
        # seal.
        if seal is not None and seal.frontier != self._frontier.to_bytes():
            raise SealError("its frontier is not that of the tree", stream=place, field="frontier")
        self.checked += 1


def _signed(note: Note, key: Key) -> bool:
    if key.role is not KeyRole.RELAY or key.status is not KeyStatus.ACTIVE:
        return False
    return is_sealed_by(note, bytes.fromhex(key.public_key))


def is_sealed_by(note: Note, public_key: bytes) -> bool:
    """Return whether a key has signed a seal.

    All signatures of this key must be good: a good one beside a bad one means that the note was changed.
    """
    signatures = list(note.find_signatures(note.checkpoint.origin, public_key))
    return bool(signatures) and all(is_signed(public_key, note.signed_bytes, named.signature) for named in signatures)


def parse_seal(text: str, what: str) -> Note:
    """Return a parsed seal. Raises `SealError` if it cannot be read."""
    try:
        return parse_note(text)
    except InvalidValueError as error:
        raise SealError(f"{what} cannot be read: {error}", field=error.field) from None
